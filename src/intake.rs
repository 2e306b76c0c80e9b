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

use crate::accounts::Terms;
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
    pub(crate) terms: Terms,
    /// Whether there is a deadline among the jobs.
    pub(crate) has_expiring: bool,
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
    /// Those of them that are guaranteed to lanes.
    pub(crate) guaranteed_bytes: u64,
    pub(crate) crews: Vec<CrewIntake<J, W>>,
}

impl<J, W> LaneIntake<J, W> {
    pub(crate) fn new() -> Self {
        LaneIntake {
            line: Line::new(),
            line_bytes: 0,
            room_jobs: 0,
            room_bytes: 0,
            terms: Terms::PLAIN,
            has_expiring: false,
        }
    }
}

impl<J, W> CrewIntake<J, W> {
    pub(crate) fn new() -> Self {
        CrewIntake { is_open: false, room_bytes: 0, lanes: Vec::new() }
    }
}

impl<J, W> Intake<J, W> {
    pub(crate) fn new() -> Self {
        Intake {
            arrivals: Vec::new(),
            next_seq: 0,
            admissible_bytes: 0,
            guaranteed_bytes: 0,
            crews: Vec::new(),
        }
    }

    /// Takes the job in if there is room on credit.
    pub(crate) fn accept(
        &mut self,
        at: LaneId,
        cost: Cost,
        since: Moment,
        expires: Moment,
        job: J,
    ) -> Result<Ticket, J> {
        let crew = &mut self.crews[at.crew];
        let input_bytes = cost.input_bytes();
        if !crew.is_open || input_bytes > crew.room_bytes {
            return Err(job);
        }
        let Some(lane) = crew.lanes.get_mut(at.lane) else { return Err(job) };
        let largest_bytes = lane.terms.largest_bytes(self.admissible_bytes, self.guaranteed_bytes);
        let Some(bytes) = cost.total_bytes().filter(|bytes| *bytes <= largest_bytes) else {
            return Err(job);
        };
        if lane.room_jobs == 0 || input_bytes > lane.room_bytes {
            return Err(job);
        }
        lane.has_expiring |= expires < Moment::NEVER;
        lane.room_jobs -= 1;
        lane.room_bytes -= input_bytes;
        lane.line_bytes += input_bytes;
        crew.room_bytes -= input_bytes;
        let seq = self.next_seq;
        self.next_seq += 1;
        if lane.line.is_empty() {
            self.arrivals.push(at);
        }
        lane.line.push(seq, Entry { job, input_bytes, bytes, since, expires, submitter: None });
        Ok(Ticket { at, seq })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::Intake;
    use crate::accounts::Terms;
    use crate::admission::Admission;
    use crate::answer::{LaneId, Offer, Ticket};
    use crate::bench::{Done, Grant, Rank};
    use crate::cost::Cost;
    use crate::counts::Ended;
    use crate::crew::Crew;
    use crate::effects::Verdict;
    use crate::queue::LanePlan;
    use crate::sys::clock::Moment;

    const LANES: usize = 2;
    const LIMIT_JOBS: usize = 4;
    const LIMIT_BYTES: u64 = 6;
    const LIMIT_WAITING: u64 = 8;
    /// Stands for whoever waits for a place: all the same to the machine.
    const SUBMITTER: usize = usize::MAX;

    #[derive(Clone, Debug)]
    enum Event {
        Submit {
            lane: usize,
            working: u64,
            input: u64,
            waits: bool,
        },
        /// A worker's next step, whatever it is.
        Step(usize),
        Cancel(usize),
        Resize(u64),
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let event = prop_oneof![
            5 => (0..LANES, 0..5_u64, 0..3_u64, any::<bool>()).prop_map(
                |(lane, working, input, waits)| Event::Submit { lane, working, input, waits }
            ),
            5 => (0..3_usize).prop_map(Event::Step),
            1 => (0..8_usize).prop_map(Event::Cancel),
            1 => (20..30_u64).prop_map(Event::Resize),
        ];
        prop::collection::vec(event, 1..120)
    }

    enum Worker {
        Running(Grant<u64>),
        Benched,
        /// Told, or awake: will look.
        Coming,
    }

    /// What `Gate` and `worker` do, one step after the other in one thread.
    struct Machine {
        state: Admission<u64, usize>,
        intake: Intake<u64, usize>,
        workers: Vec<Worker>,
        tickets: Vec<Ticket>,
        /// For each lane, accepted jobs that have not been admitted, cancelled or evicted.
        expected: Vec<VecDeque<u64>>,
    }

    impl Machine {
        fn new() -> Self {
            let lane = || LanePlan {
                name: std::sync::Arc::from("lane"),
                limit_jobs: LIMIT_JOBS,
                limit_input_bytes: LIMIT_BYTES,
                terms: Terms::PLAIN,
                newest_first_after: None,
                told_together: 1,
            };
            let mut machine = Machine {
                state: Admission::new(30, 0),
                intake: Intake::new(),
                workers: vec![Worker::Coming, Worker::Coming, Worker::Coming],
                tickets: Vec::new(),
                expected: vec![VecDeque::new(); LANES],
            };
            machine.change(None, |state| {
                state.attach(Crew::new(LIMIT_WAITING), vec![lane(), lane()]).expect("fits");
                for _ in 0..3 {
                    state.start_worker(0, Rank::Normal);
                    state.stay_awake(0, Rank::Normal);
                }
            });
            machine
        }

        fn change<R>(
            &mut self,
            lane: Option<LaneId>,
            change: impl FnOnce(&mut Admission<u64, usize>) -> R,
        ) -> R {
            self.state.receive(&mut self.intake);
            let result = change(&mut self.state);
            self.state.give_credit(&mut self.intake, lane);
            self.carry_out();
            result
        }

        fn carry_out(&mut self) {
            let effects = self.state.take_effects();
            for (worker, verdict) in effects.told {
                assert_eq!(verdict, Verdict::Go);
                if worker == SUBMITTER {
                    continue;
                }
                assert!(matches!(self.workers[worker], Worker::Benched), "told once");
                self.workers[worker] = Worker::Coming;
            }
            for gone in effects.gone {
                // One that was admitted is in the order, though it is not started.
                self.forget(gone.place.at().lane, gone.job);
                self.change(None, |state| {
                    state.left(gone.place);
                    state.ended(0);
                });
            }
        }

        fn forget(&mut self, lane: usize, job: u64) {
            let at = self.expected[lane].iter().position(|waiting| *waiting == job);
            self.expected[lane].remove(at.expect("it waits"));
        }

        fn submit(&mut self, lane: usize, cost: Cost, waits: bool) {
            let at = LaneId { crew: 0, lane };
            let job = self.tickets.len() as u64;
            let since = Moment::now();
            self.expected[lane].push_back(job);
            let ticket = match self.intake.accept(at, cost, since, Moment::NEVER, job) {
                Ok(ticket) => Some(ticket),
                Err(job) => self.change(Some(at), |state| {
                    match state.offer(at, cost, since, Moment::NEVER, job) {
                        Offer::Accepted(ticket) => Some(ticket),
                        Offer::Outside(ticket) if waits => {
                            state.wait(ticket, SUBMITTER, true);
                            Some(ticket)
                        }
                        Offer::Outside(ticket) => {
                            state.withdraw(ticket).expect("it stands outside");
                            None
                        }
                        Offer::Refused(_) => None,
                    }
                }),
            };
            match ticket {
                Some(ticket) => self.tickets.push(ticket),
                None => self.forget(lane, job),
            }
        }

        fn step(&mut self, worker: usize) {
            let grant = match std::mem::replace(&mut self.workers[worker], Worker::Benched) {
                Worker::Benched => return,
                Worker::Coming => self.change(None, |state| {
                    state.arrive(0, Rank::Normal);
                    let grant = state.take(0, Rank::Normal);
                    if grant.is_none() {
                        state.bench(0, worker, Rank::Normal);
                    }
                    grant
                }),
                Worker::Running(Grant { slot, .. }) => {
                    let waited = std::time::Duration::ZERO;
                    let done = Done { slot, ended: Ended::Completed, waited, ran: None };
                    let mut grant = self.state.finish(0, Rank::Normal, done);
                    if self.state.wants_arrivals(0) {
                        self.state.receive(&mut self.intake);
                        grant = grant.or_else(|| self.state.take(0, Rank::Normal));
                        self.state.give_credit(&mut self.intake, None);
                    }
                    self.carry_out();
                    if grant.is_none() {
                        self.change(None, |state| state.bench(0, worker, Rank::Normal));
                    }
                    grant
                }
            };
            if let Some(grant) = grant {
                let next = self.expected[grant.lane].pop_front();
                assert_eq!(next, Some(grant.job), "I2: in the order of submission");
                self.workers[worker] = Worker::Running(grant);
            }
        }

        fn check(&mut self) {
            let nobody_comes = !self.workers.iter().any(|it| matches!(it, Worker::Coming));
            let somebody_sleeps = self.workers.iter().any(|it| matches!(it, Worker::Benched));
            if nobody_comes && somebody_sleeps {
                assert!(self.intake.arrivals.is_empty(), "a job lies in the intake, unseen");
                assert!(!self.state.has_ready(), "an admitted job is not fetched");
            }
            let (crew, intake) = (self.state.crew(0), &self.intake.crews[0]);
            let on_credit: u64 = intake.lanes.iter().map(|lane| lane.line_bytes).sum();
            assert!(crew.waiting_bytes() + on_credit <= LIMIT_WAITING);
            for ((_, lane), intake) in crew.lanes().zip(&intake.lanes) {
                assert!(lane.inside.len() + intake.line.len() <= LIMIT_JOBS);
                assert!(lane.inside_bytes + intake.line_bytes <= LIMIT_BYTES);
            }
        }
    }

    #[test]
    fn a_lane_has_not_the_credit_of_the_one_that_had_its_place_before() {
        let mut machine = Machine::new();
        let add = |machine: &mut Machine, name: &str, limit_jobs| {
            let plan = LanePlan {
                name: name.into(),
                limit_jobs,
                limit_input_bytes: 0,
                terms: Terms::PLAIN,
                newest_first_after: None,
                told_together: 1,
            };
            machine.change(None, |state| state.add_lane(0, plan).expect("it fits"))
        };
        let lane = add(&mut machine, "roomy", 100);
        let at = LaneId { crew: 0, lane };
        assert_eq!(machine.intake.crews[0].lanes[lane].room_jobs, 100);
        machine.change(None, |state| state.let_lane_go(at));
        assert_eq!(add(&mut machine, "narrow", 1), lane, "the place is used again");
        assert_eq!(machine.intake.crews[0].lanes[lane].room_jobs, 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn jobs_taken_in_on_credit_are_seen_in_order_and_never_above_the_limits(
            events in events()
        ) {
            let mut machine = Machine::new();
            for event in events {
                match event {
                    Event::Submit { lane, working, input, waits } => {
                        machine.submit(lane, Cost::new(working).input(input), waits);
                    }
                    Event::Step(worker) => machine.step(worker),
                    Event::Cancel(nth) => {
                        let nth = machine.tickets.len().checked_sub(nth + 1);
                        if let Some(ticket) = nth.map(|nth| machine.tickets[nth]) {
                            machine.change(None, |state| state.cancel(ticket));
                        }
                    }
                    Event::Resize(capacity) => {
                        machine.change(None, |state| state.resize(capacity, 0));
                    }
                }
                machine.check();
            }
        }
    }
}
