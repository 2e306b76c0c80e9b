//! Whether lanes get their shares, in simulated time.

use std::collections::BinaryHeap;

use proptest::prelude::*;

use crate::accounts::Terms;
use crate::admission::Admission;
use crate::answer::LaneId;
use crate::bench::{Done, Rank};
use crate::cost::Cost;
use crate::counts::Ended;
use crate::crew::Crew;
use crate::queue::LanePlan;
use crate::sys::clock::Moment;

const CAPACITY: u64 = 1000;
const MILLISECOND: u64 = 1_000_000;

/// What a lane's jobs are like.
#[derive(Clone, Debug)]
struct Load {
    share: u32,
    bytes: u64,
    millis: u64,
    most_workers: usize,
}

/// Lanes with jobs of their kind, all of which always wait, and workers that run them.
struct Machine {
    state: Admission<u64, ()>,
    loads: Vec<Load>,
    now: u64,
    free_workers: usize,
    /// The next to end comes first.
    running: BinaryHeap<(std::cmp::Reverse<u64>, usize, u64, usize)>,
    /// By lane: the larger of bytes and the workers' part of them, over time.
    used: Vec<u128>,
    worker_bytes: u64,
}

impl Machine {
    fn new(workers: usize, loads: Vec<Load>) -> Machine {
        let mut state = Admission::new(CAPACITY, 0);
        let lanes = loads.iter().map(|load| LanePlan {
            name: "".into(),
            limit_jobs: 100,
            limit_input_bytes: 0,
            terms: Terms { share: load.share, most_workers: load.most_workers, ..Terms::PLAIN },
            newest_first_after: None,
            told_together: 1,
        });
        state.attach(Crew::new(0), lanes.collect()).expect("fits");
        (0..workers).for_each(|_| state.start_worker(0, Rank::Normal));
        let used = vec![0; loads.len()];
        Machine {
            state,
            loads,
            now: 0,
            free_workers: workers,
            running: BinaryHeap::new(),
            used,
            worker_bytes: CAPACITY / workers as u64,
        }
    }

    fn top_up(&mut self, lane: usize) {
        while self.state.crew(0).lane(lane).inside.len() < 64 {
            let cost = Cost::new(self.loads[lane].bytes);
            self.state.offer(LaneId { crew: 0, lane }, cost, Moment::at(0), Moment::NEVER, 0);
        }
    }

    fn start(&mut self) {
        while self.free_workers > 0
            && let Some(grant) = self.state.take(0, Rank::Normal)
        {
            self.free_workers -= 1;
            let ends = self.now + self.loads[grant.lane].millis * MILLISECOND;
            self.running.push((std::cmp::Reverse(ends), grant.lane, grant.bytes, grant.slot));
            self.top_up(grant.lane);
        }
    }

    /// Goes on until the next job ends.
    fn step(&mut self, lanes: std::ops::Range<usize>) {
        lanes.for_each(|lane| self.top_up(lane));
        self.start();
        let (std::cmp::Reverse(ends), lane, bytes, slot) =
            self.running.pop().expect("somebody runs");
        for (at, used) in self.used.iter_mut().enumerate() {
            let jobs = self.running.iter().filter(|job| job.1 == at).count() as u64;
            let its = self.running.iter().filter(|job| job.1 == at).map(|job| job.2).sum::<u64>();
            let (jobs, its) = if at == lane { (jobs + 1, its + bytes) } else { (jobs, its) };
            let rate = its.max(jobs * self.worker_bytes);
            *used += u128::from(rate) * u128::from(ends - self.now);
        }
        self.now = ends;
        self.state.set_time(Moment::at(self.now));
        let waited = std::time::Duration::ZERO;
        let done = Done { slot, ended: Ended::Completed, waited, ran: None };
        self.free_workers += 1;
        if let Some(grant) = self.state.finish(0, Rank::Normal, done) {
            self.free_workers -= 1;
            let ends = self.now + self.loads[grant.lane].millis * MILLISECOND;
            self.running.push((std::cmp::Reverse(ends), grant.lane, grant.bytes, grant.slot));
        }
        drop(self.state.take_effects());
    }

    fn check_shares(&self, from: &[u128], lanes: std::ops::Range<usize>) {
        for lane in 0..self.loads.len() {
            let account = self.state.crew(0).lane(lane).account;
            let (used, received) =
                (self.used[lane] as f64, self.state.accounts().received(account));
            assert!((received - used).abs() <= used * 1e-6, "lane {lane}: {received} of {used}");
        }
        let used: Vec<f64> =
            lanes.clone().map(|lane| (self.used[lane] - from[lane]) as f64).collect();
        let all: f64 = used.iter().sum();
        let shares: f64 = lanes.clone().map(|lane| f64::from(self.loads[lane].share)).sum();
        for (lane, used) in lanes.zip(used) {
            let got = used / all;
            let due = f64::from(self.loads[lane].share) / shares;
            assert!((got / due - 1.0).abs() < 0.05, "lane {lane} got {got:.3} of {due:.3} due");
        }
    }

    fn run_for(&mut self, millis: u64, lanes: std::ops::Range<usize>) {
        let end = self.now + millis * MILLISECOND;
        while self.now < end {
            self.step(lanes.clone());
        }
    }
}

/// Jobs are small enough for every lane to be able to use its share.
fn load() -> impl Strategy<Value = Load> {
    let millis = prop_oneof![1..10_u64, 10..400_u64];
    (1..6_u32, 1..=125_u64, millis).prop_map(|(share, bytes, millis)| Load {
        share,
        bytes,
        millis,
        most_workers: usize::MAX,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..Default::default() })]

    #[test]
    fn lanes_that_all_have_work_get_their_shares_of_what_is_scarce(
        workers in 8..32_usize,
        loads in prop::collection::vec(load(), 2..5),
    ) {
        let mut machine = Machine::new(workers, loads);
        let lanes = 0..machine.loads.len();
        machine.run_for(60_000, lanes.clone());
        machine.check_shares(&vec![0; lanes.len()], lanes);
    }

    #[test]
    fn a_share_that_is_not_used_goes_to_the_others_and_is_not_saved_up(
        workers in 8..32_usize,
        loads in prop::collection::vec(load(), 3),
    ) {
        let mut machine = Machine::new(workers, loads);
        // The last lane has nothing to do at first.
        machine.run_for(60_000, 0..2);
        machine.check_shares(&[0; 3], 0..2);
        let before = machine.used.clone();
        machine.run_for(60_000, 0..3);
        machine.check_shares(&before, 0..3);
    }
}

/// A lane that has as many workers as it may have waits all the same, and has its share.
#[test]
fn a_lane_at_its_ceiling_loses_nothing_of_its_share() {
    let load = |most_workers, millis| Load { share: 1, bytes: 1, millis, most_workers };
    let loads = vec![load(2, 40), load(usize::MAX, 400), load(usize::MAX, 400)];
    let mut machine = Machine::new(4, loads);
    machine.run_for(60_000, 0..3);
    machine.check_shares(&[0; 3], 0..3);
}

/// The lane has had all there was, and holds half of it, so that each new lane comes first at first.
#[test]
fn a_head_gets_its_turn_however_many_lanes_come_after_it() {
    let plan = |name: String| LanePlan {
        name: name.into(),
        limit_jobs: 100,
        limit_input_bytes: 0,
        terms: Terms::PLAIN,
        newest_first_after: None,
        told_together: 1,
    };
    let mut state: Admission<u64, ()> = Admission::new(CAPACITY, 0);
    state.attach(Crew::new(0), vec![plan("old".into())]).expect("fits");
    (0..2).for_each(|_| state.start_worker(0, Rank::Normal));
    let half = Cost::new(CAPACITY / 2);
    let offer = |state: &mut Admission<u64, ()>, lane, job| {
        state.offer(LaneId { crew: 0, lane }, half, Moment::at(0), Moment::NEVER, job)
    };
    let (old, new) = (1, 0);
    let add = |state: &mut Admission<u64, ()>, number: u64| {
        let lane = state.add_lane(0, plan(number.to_string())).expect("fits");
        offer(state, lane, new);
        state.let_lane_go(LaneId { crew: 0, lane });
    };
    // One worker never ends.
    offer(&mut state, 0, old);
    state.take(0, Rank::Normal).expect("a worker is free");
    state.set_time(Moment::at(10_000 * MILLISECOND));
    add(&mut state, 0);
    let mut grant = state.take(0, Rank::Normal).expect("the other worker is free");
    offer(&mut state, 0, old);
    let mut ended: u64 = 0;
    while grant.job == new {
        ended += 1;
        (2 * ended..2 * ended + 2).for_each(|number| add(&mut state, number));
        state.set_time(Moment::at((10_000 + ended) * MILLISECOND));
        let (slot, waited) = (grant.slot, std::time::Duration::ZERO);
        let done = Done { slot, ended: Ended::Completed, waited, ran: None };
        grant = state.finish(0, Rank::Normal, done).expect("jobs of new lanes wait");
        assert!(ended < 1000, "the old lane's job never has its turn");
    }
    assert!(ended > 1, "no new lane came before it");
}
