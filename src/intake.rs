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

use crate::answer::{LaneId, Ticket};
use crate::cost::Cost;
use crate::line::Line;
use crate::queue::Entry;
use crate::sys::clock::Moment;

/// The jobs that have their place in a lane though the admission state does not know yet, and
/// how much more the lane may take in without asking.
#[derive(Debug)]
pub(crate) struct LaneIntake<J, W> {
    pub(crate) line: Line<Entry<J, W>>,
    pub(crate) line_bytes: u64,
    pub(crate) room_jobs: usize,
    pub(crate) room_bytes: u64,
}

/// The same for an executor, over all its lanes.
#[derive(Debug)]
pub(crate) struct CrewIntake<J, W> {
    pub(crate) is_open: bool,
    pub(crate) room_bytes: u64,
    pub(crate) lanes: Vec<LaneIntake<J, W>>,
}

#[derive(Debug)]
pub(crate) struct Intake<J, W> {
    /// The lanes that have taken something in.
    pub(crate) arrivals: Vec<LaneId>,
    /// The number of the next submission, of whatever kind.
    pub(crate) next_seq: u64,
    pub(crate) admissible_bytes: u64,
    pub(crate) crews: Vec<CrewIntake<J, W>>,
}

impl<J, W> LaneIntake<J, W> {
    pub(crate) fn new() -> Self {
        LaneIntake { line: Line::new(), line_bytes: 0, room_jobs: 0, room_bytes: 0 }
    }
}

impl<J, W> CrewIntake<J, W> {
    pub(crate) fn new() -> Self {
        CrewIntake { is_open: false, room_bytes: 0, lanes: Vec::new() }
    }
}

impl<J, W> Intake<J, W> {
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
        if !crew.is_open || input_bytes > crew.room_bytes {
            return Err(job);
        }
        let lane = &mut crew.lanes[at.lane];
        if lane.room_jobs == 0 || input_bytes > lane.room_bytes {
            return Err(job);
        }
        lane.room_jobs -= 1;
        lane.room_bytes -= input_bytes;
        lane.line_bytes += input_bytes;
        crew.room_bytes -= input_bytes;
        let seq = self.next_seq;
        self.next_seq += 1;
        if lane.line.is_empty() {
            self.arrivals.push(at);
        }
        lane.line.push(seq, Entry { job, input_bytes, bytes, since, submitter: None });
        Ok(Ticket { at, seq })
    }
}
