//! Where submissions land while all workers are busy, so that producers and workers do not
//! share a lock.
//!
//! The admission state gives a lane some room on credit. As long as that lasts, a submission
//! is added here, under a lock that only producers take often, and the state learns of it when
//! a worker runs out of jobs, or when anything but "a job ended, the next one starts" happens.
//!
//! Credit never exceeds the room there is: waiting jobs only leave lanes, or come from here. A
//! crew with an idle worker gets none, unless a worker is on its way to look: so nothing lies
//! here while somebody sleeps who could run it.

use crate::admission::{LaneId, Ticket};
use crate::cost::Cost;
use crate::sys::clock::Moment;

/// A job that has its place in a lane, though the admission state does not know yet.
#[derive(Debug)]
pub(crate) struct Arrival<J> {
    pub(crate) at: LaneId,
    pub(crate) input_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) since: Moment,
    pub(crate) job: J,
}

/// How much a lane may take in without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) jobs: usize,
    pub(crate) input_bytes: u64,
}

/// The same for an executor, over all its lanes.
#[derive(Debug, Default)]
pub(crate) struct CrewRoom {
    pub(crate) is_open: bool,
    pub(crate) input_bytes: u64,
    pub(crate) lanes: Vec<Room>,
}

#[derive(Debug)]
pub(crate) struct Intake<J> {
    pub(crate) arrivals: Vec<Arrival<J>>,
    /// The number of the next submission, of whatever kind. Arrivals have the numbers before
    /// it, without a gap.
    pub(crate) next_seq: u64,
    pub(crate) admissible_bytes: u64,
    pub(crate) crews: Vec<CrewRoom>,
}

impl<J> Intake<J> {
    pub(crate) fn new() -> Self {
        Intake { arrivals: Vec::new(), next_seq: 0, admissible_bytes: 0, crews: Vec::new() }
    }

    /// Takes the job in if there is room on credit.
    pub(crate) fn accept(
        &mut self,
        at: LaneId,
        cost: Cost,
        since: Moment,
        job: J,
    ) -> Result<Ticket, J> {
        let crew = &mut self.crews[at.crew];
        let input_bytes = cost.input_bytes();
        let Some(bytes) = cost.total_bytes().filter(|bytes| *bytes <= self.admissible_bytes) else {
            return Err(job);
        };
        if !crew.is_open || input_bytes > crew.input_bytes {
            return Err(job);
        }
        let room = &mut crew.lanes[at.lane];
        if room.jobs == 0 || input_bytes > room.input_bytes {
            return Err(job);
        }
        room.jobs -= 1;
        room.input_bytes -= input_bytes;
        crew.input_bytes -= input_bytes;
        let seq = self.next_seq;
        self.next_seq += 1;
        self.arrivals.push(Arrival { at, input_bytes, bytes, since, job });
        Ok(Ticket { at, seq })
    }
}
