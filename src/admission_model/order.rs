//! Orders that once were not kept: each history is the shortest that shows it.

use crate::accounts::Terms;
use crate::admission::Admission;
use crate::answer::{LaneId, Offer, Request, Ticket};
use crate::bench::{Done, Grant, Rank};
use crate::cost::Cost;
use crate::counts::Ended;
use crate::crew::Crew;
use crate::queue::LanePlan;
use crate::sys::clock::Moment;

type State = Admission<u64, ()>;

const CAPACITY: u64 = 64;

fn plan(name: &str, terms: Terms) -> LanePlan {
    LanePlan {
        name: name.into(),
        limit_jobs: 100,
        limit_input_bytes: 0,
        terms,
        newest_first_after: None,
        told_together: 1,
    }
}

fn offer(state: &mut State, crew: usize, lane: usize, bytes: u64) -> Offer {
    let at = LaneId { crew, lane };
    state.offer(at, Cost::new(bytes), Moment::START, Moment::NEVER, bytes)
}

fn finish(state: &mut State, crew: usize, grant: Grant<u64>) -> Option<Grant<u64>> {
    let waited = std::time::Duration::ZERO;
    state.finish(
        crew,
        Rank::Normal,
        Done { slot: grant.slot, ended: Ended::Completed, waited, ran: None },
    )
}

fn request(state: &mut State, bytes: u64) -> Option<u64> {
    match state.request(bytes) {
        Request::Granted { seq } => Some(seq),
        Request::Waiting { .. } => None,
        Request::NeverFits { .. } => panic!("it fits"),
    }
}

/// The job waits since there were two lanes to share, and nobody shares any more.
#[test]
fn who_waits_when_the_last_but_one_lane_goes_is_passed_by_nobody() {
    let mut state = State::new(CAPACITY, 0);
    for crew in [0, 1] {
        let lanes = vec![plan("default", Terms::PLAIN)];
        assert_eq!(state.attach(Crew::new(0), lanes), Ok(crew));
        state.start_worker(crew, Rank::Normal);
    }
    offer(&mut state, 0, 0, 32);
    let grant = state.take(0, Rank::Normal).expect("a worker is free");
    state.set_time(Moment::at(100_000_000));
    assert!(finish(&mut state, 0, grant).is_none());
    let permit = request(&mut state, 30).expect("free");
    offer(&mut state, 0, 0, CAPACITY);
    state.close(1);
    assert!(state.may_leave(1, Rank::Normal));
    state.detach(1);
    assert_eq!(request(&mut state, 10), None, "it came after the job");
    state.end_permit(permit);
    assert_eq!(state.take(0, Rank::Normal).map(|grant| grant.bytes), Some(CAPACITY));
}

/// Bytes that are guaranteed bring no worker: the one that is left is for the head that waits.
#[test]
fn a_guarantee_of_bytes_does_not_take_the_worker_of_a_head_that_waits_for_bytes() {
    let guarantee = Terms { guaranteed_bytes: 8, ..Terms::PLAIN };
    for workers in [1, 2] {
        let mut state = State::new(CAPACITY, 0);
        let lanes = vec![plan("default", Terms::PLAIN), plan("guaranteed", guarantee)];
        state.attach(Crew::new(0), lanes).expect("fits");
        (0..workers).for_each(|_| state.start_worker(0, Rank::Normal));
        let permit = request(&mut state, 20).expect("free");
        offer(&mut state, 0, 0, 50);
        offer(&mut state, 0, 1, 1);
        let beside = state.take(0, Rank::Normal).map(|grant| grant.bytes);
        assert_eq!(beside, (workers == 2).then_some(1), "{workers} workers");
        assert_eq!(request(&mut state, 20), None, "the bytes are kept for the job");
        state.end_permit(permit);
        assert_eq!(state.take(0, Rank::Normal).map(|grant| grant.bytes), Some(50));
    }
}

#[test]
fn guarantees_that_cannot_be_added_up_are_refused() {
    let mut state = State::new(u64::MAX, 0);
    let all = Terms { guaranteed_bytes: u64::MAX, ..Terms::PLAIN };
    let lanes = vec![plan("one", all), plan("two", all)];
    assert_eq!(state.attach(Crew::new(0), lanes), Err(u64::MAX));
}

/// An attempt that comes to nothing leaves nothing behind, however far away its deadline is.
#[test]
fn submissions_that_leave_are_not_remembered_until_their_deadlines() {
    let mut state = State::new(CAPACITY, 0);
    let lanes = vec![LanePlan { limit_jobs: 1, ..plan("default", Terms::PLAIN) }];
    state.attach(Crew::new(0), lanes).expect("fits");
    state.start_worker(0, Rank::Normal);
    let at = LaneId { crew: 0, lane: 0 };
    let expires = Moment::at(u64::MAX - 1);
    let offer = |state: &mut State| state.offer(at, Cost::new(CAPACITY), Moment::START, expires, 0);
    request(&mut state, CAPACITY).expect("free");
    let Offer::Accepted(waiting) = offer(&mut state) else { panic!("the lane is empty") };
    let Offer::Outside(outside) = offer(&mut state) else { panic!("the lane is full") };
    assert_eq!(state.crew(0).expiring(), 2);
    state.withdraw(outside).expect("it stands outside");
    assert_eq!(state.crew(0).expiring(), 1);
    assert!(state.cancel(waiting));
    assert_eq!(state.crew(0).expiring(), 0);
    let (Offer::Accepted(_), Offer::Outside(_)) = (offer(&mut state), offer(&mut state)) else {
        panic!("one has a place")
    };
    assert_eq!(state.crew(0).expiring(), 2);
    state.close(0);
    assert_eq!(state.crew(0).expiring(), 1);
    state.abort_waiting(0);
    assert_eq!(state.crew(0).expiring(), 0);
}

/// The first of a lane lacked only the executor's room; then a place in that lane grew, and it lacks
/// room there too: it keeps nobody in another lane out.
#[test]
fn who_lacks_room_in_a_lane_keeps_nobody_out_of_others() {
    let mut state = State::new(CAPACITY, 0);
    let lane = |name| LanePlan { limit_input_bytes: 10, ..plan(name, Terms::PLAIN) };
    state.attach(Crew::new(10), vec![lane("grows"), lane("other")]).expect("fits");
    let [grows, other] = [0, 1].map(|lane| LaneId { crew: 0, lane });
    let input = |bytes| Cost::new(0).input(bytes);
    let offer = |state: &mut State, at, bytes| {
        state.offer(at, input(bytes), Moment::START, Moment::NEVER, bytes)
    };
    let seq = state.reserve(grows, input(2), Moment::NEVER).expect("free");
    let Offer::Accepted(_) = offer(&mut state, other, 4) else { panic!("there is room") };
    let Offer::Outside(first) = offer(&mut state, grows, 6) else { panic!("4 bytes are left") };
    let Offer::Outside(_) = offer(&mut state, other, 1) else { panic!("it came after the first") };
    state.change_reserved(Ticket { at: grows, seq }, input(2), input(5)).expect("it came first");
    assert_eq!(state.crew(0).waiting_bytes(), 10, "the other lane's job has moved up");
    assert!(state.withdraw(first).is_some());
    assert_eq!(state.crew(0).waiting_bytes(), 10);
}

/// One worker, a job a second: who comes now waits a second for each before it.
#[test]
fn a_wait_is_predicted_by_the_pace_at_which_jobs_leave() {
    let seconds = |seconds: u64| Moment::at(seconds * 1_000_000_000);
    let wait = std::time::Duration::from_secs;
    let mut state = State::new(CAPACITY, 0);
    state.attach(Crew::new(0), vec![plan("default", Terms::PLAIN)]).expect("fits");
    let at = LaneId { crew: 0, lane: 0 };
    state.start_worker(0, Rank::Normal);
    state.set_time(seconds(1));
    assert_eq!(state.predicted_wait(at), wait(0), "a worker is free");
    (0..10).for_each(|_| _ = offer(&mut state, 0, 0, 1));
    let mut grant = state.take(0, Rank::Normal).expect("a worker is free");
    for second in 2..6 {
        state.set_time(seconds(second));
        grant = finish(&mut state, 0, grant).expect("more wait");
        let (waiting, running) = (10 - second, 1);
        let predicted = state.predicted_wait(at);
        assert_eq!(predicted, wait(waiting + running), "in second {second}");
    }
    state.set_time(seconds(30));
    assert_eq!(state.predicted_wait(at), wait(30), "all began at 0, and what was known is old");
}

/// Half of those who come before are outside, in a lane that has place for five.
#[test]
fn a_predicted_wait_counts_those_outside_and_is_none_when_a_worker_is_free() {
    let seconds = |seconds: u64| Moment::at(seconds * 1_000_000_000);
    let wait = std::time::Duration::from_secs;
    let mut state = State::new(CAPACITY, 0);
    let lanes = vec![LanePlan { limit_jobs: 5, ..plan("default", Terms::PLAIN) }];
    state.attach(Crew::new(0), lanes).expect("fits");
    let at = LaneId { crew: 0, lane: 0 };
    state.start_worker(0, Rank::Normal);
    (0..11).for_each(|_| _ = offer(&mut state, 0, 0, 1));
    let mut grant = state.take(0, Rank::Normal).expect("a worker is free");
    state.set_time(seconds(1));
    assert_eq!(state.predicted_wait(at), wait(1), "the oldest has waited for as long");
    state.set_time(seconds(2));
    grant = finish(&mut state, 0, grant).expect("more wait");
    let (inside, outside, running) = (5, 4, 1);
    assert_eq!(state.predicted_wait(at), wait(inside + outside + running));
    for _ in 0..9 {
        grant = finish(&mut state, 0, grant).expect("more wait");
    }
    assert!(finish(&mut state, 0, grant).is_none());
    for second in 2..6 {
        state.set_time(seconds(second));
        assert_eq!(state.predicted_wait(at), wait(0), "in second {second} the worker is free");
    }
}

/// The look that is measured from is younger than the job that waits.
#[test]
fn a_wait_is_predicted_no_shorter_than_the_oldest_has_waited_if_nobody_leaves() {
    let seconds = |seconds: u64| Moment::at(seconds * 1_000_000_000);
    let mut state = State::new(CAPACITY, 0);
    state.attach(Crew::new(0), vec![plan("default", Terms::PLAIN)]).expect("fits");
    let at = LaneId { crew: 0, lane: 0 };
    state.start_worker(0, Rank::Normal);
    (0..2).for_each(|_| _ = offer(&mut state, 0, 0, 1));
    state.take(0, Rank::Normal).expect("a worker is free");
    for second in [20, 21] {
        state.set_time(seconds(second));
        assert_eq!(state.predicted_wait(at), std::time::Duration::from_secs(second));
    }
}
