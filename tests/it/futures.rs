//! Submissions and handles as futures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use admit::{Cost, Executor, JoinError, LaneOptions, MIB, Refused};
use crossbeam_channel::bounded;
use pollster::block_on;

use crate::kit::{Blocker, OnDrop, budget, builder, executor, until};
use crate::watchdog::watch;

fn idle() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Does something whenever it is woken.
struct OnWake<F>(F);

impl<F: Fn() + Send + Sync + 'static> OnWake<F> {
    fn waker(f: F) -> Waker {
        Waker::from(Arc::new(OnWake(f)))
    }
}

impl<F: Fn() + Send + Sync + 'static> Wake for OnWake<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

fn blocked(executor: &Executor) -> usize {
    executor.stats().lanes.iter().map(|lane| lane.blocked_submits).sum()
}

async fn sum_of_squares(executor: &Executor) -> u64 {
    let mut handles = Vec::new();
    for number in 0..100_u64 {
        let submitting = executor.submit_async(Cost::new(MIB).input(8), move || number * number);
        handles.push(submitting.await.unwrap());
    }
    let mut sum = 0;
    for handle in handles {
        sum += handle.await.unwrap();
    }
    sum
}

#[test]
fn futures_run_on_any_runtime() {
    let _watchdog = watch!();
    let executor = builder(2, &budget(16 * MIB)).capacity(3).build().unwrap();
    assert_eq!(block_on(sum_of_squares(&executor)), 328_350);
    assert_eq!(smol::block_on(sum_of_squares(&executor)), 328_350);
    let executor = Arc::new(executor);
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    tokio.block_on(async {
        let task = || {
            let executor = Arc::clone(&executor);
            tokio::spawn(async move { sum_of_squares(&executor).await })
        };
        let (one, two) = (task(), task());
        assert_eq!((one.await.unwrap(), two.await.unwrap()), (328_350, 328_350));
    });
}

#[test]
fn blocking_and_async_producers_are_served_in_the_order_of_their_calls() {
    let _watchdog = watch!();
    let executor = builder(1, &budget(MIB)).capacity(1).build().unwrap();
    let blocker = Blocker::on(executor.default_lane(), MIB);
    let order = Arc::new(Mutex::new(Vec::new()));
    let job = |name: usize| {
        let order = Arc::clone(&order);
        move || order.lock().unwrap().push(name)
    };
    let inside = executor.submit(Cost::new(MIB), job(0)).unwrap();
    thread::scope(|scope| {
        let mut futures = Vec::new();
        for name in 1..10 {
            if name % 2 == 0 {
                let (job, executor) = (job(name), &executor);
                scope.spawn(move || executor.submit(Cost::new(MIB), job).unwrap().join().unwrap());
            } else {
                futures.push(executor.submit_async(Cost::new(MIB), job(name)));
            }
            until(|| blocked(&executor) == name);
        }
        // The first to be polled is the last that came.
        for future in futures.iter_mut().rev() {
            assert!(pin!(future).poll(&mut idle()).is_pending());
        }
        blocker.release();
        inside.join().unwrap();
        for future in futures.into_iter().rev() {
            block_on(block_on(future).unwrap()).unwrap();
        }
    });
    assert_eq!(*order.lock().unwrap(), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_future_that_is_kept_and_not_polled_holds_up_nobody() {
    let _watchdog = watch!();
    let (executor, budget) = executor(1, MIB);
    let lane = executor.add_lane(LaneOptions::new("narrow").capacity(0)).unwrap();
    let blocker = Blocker::on(&lane, MIB);
    let never_polled = lane.submit_async(Cost::new(MIB), || 1);
    let mut polled_once = lane.submit_async(Cost::new(MIB), || 2);
    assert!(pin!(&mut polled_once).poll(&mut idle()).is_pending());
    let after = lane.submit_async(Cost::new(MIB), || 3);
    blocker.release();
    assert_eq!(block_on(async { after.await.unwrap().await.unwrap() }), 3);
    assert_eq!(budget.ledger().held_bytes, 0);
    // Both have run.
    assert_eq!(block_on(async { polled_once.await.unwrap().await.unwrap() }), 2);
    assert_eq!(block_on(async { never_polled.await.unwrap().await.unwrap() }), 1);
}

#[test]
fn a_submission_that_is_dropped_is_cancelled_wherever_it_has_got_to() {
    let _watchdog = watch!();
    let (executor, budget) = executor(1, MIB);
    let lane = executor.add_lane(LaneOptions::new("narrow").capacity(1)).unwrap();
    let blocker = Blocker::on(&lane, MIB);
    let dropped = Arc::new(AtomicUsize::new(0));
    let job = || {
        let count = Arc::clone(&dropped);
        let guard = OnDrop::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
        move || {
            drop(guard);
            unreachable!("it is cancelled")
        }
    };
    let inside = lane.submit_async(Cost::new(MIB), job());
    let outside = lane.submit_async(Cost::new(MIB), job());
    let let_in = lane.submit_async(Cost::new(MIB), job());
    assert_eq!(blocked(&executor), 2);
    drop(outside);
    assert_eq!((dropped.load(Ordering::SeqCst), blocked(&executor)), (1, 1));
    drop(inside);
    let stats = executor.stats();
    assert_eq!((blocked(&executor), stats.waiting_jobs), (0, 1));
    drop(let_in);
    assert_eq!(dropped.load(Ordering::SeqCst), 3);
    let stats = executor.stats();
    assert_eq!((stats.waiting_jobs, stats.counts.cancelled), (0, 3));

    // One that runs goes on, with its bytes.
    blocker.release();
    let (release, wait) = bounded::<()>(0);
    let (started, is_started) = bounded(0);
    let running = lane.submit_async(Cost::new(MIB), move || {
        started.send(()).unwrap();
        let _ = wait.recv();
    });
    is_started.recv().unwrap();
    drop(running);
    assert_eq!(budget.ledger().held_bytes, MIB);
    drop(release);
    executor.drain().unwrap();
    assert_eq!(budget.ledger().held_bytes, 0);
}

#[test]
fn a_handle_that_is_dropped_detaches_its_job_or_cancels_it_as_was_said() {
    let _watchdog = watch!();
    let (executor, budget) = executor(1, 2 * MIB);
    let blocker = Blocker::on(executor.default_lane(), 2 * MIB);
    let runs = Arc::new(AtomicUsize::new(0));
    let job = || {
        let runs = Arc::clone(&runs);
        move || runs.fetch_add(1, Ordering::SeqCst)
    };
    for polled in [false, true] {
        let submit = || executor.submit(Cost::new(MIB), job()).unwrap();
        let (mut detached, mut cancelled) = (submit(), submit().cancel_on_drop());
        if polled {
            assert!(pin!(&mut detached).poll(&mut idle()).is_pending());
            assert!(pin!(&mut cancelled).poll(&mut idle()).is_pending());
        }
        drop((detached, cancelled));
    }
    assert_eq!(executor.stats().counts.cancelled, 2);
    let running = blocker.handle.cancel_on_drop();
    drop(running);
    assert_eq!(budget.ledger().held_bytes, 2 * MIB, "a running job keeps its bytes");
    drop(blocker.release);
    executor.drain().unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}

#[test]
fn wakers_are_woken_and_dropped_under_no_lock() {
    let _watchdog = watch!();
    let executor = Arc::new(builder(1, &budget(MIB)).capacity(1).build().unwrap());
    let looks = Arc::new(AtomicUsize::new(0));

    /// Takes the locks that there are when it is woken, and when its last clone is dropped.
    struct Looking(Arc<Executor>, Arc<AtomicUsize>);
    impl Looking {
        fn look(&self) {
            self.1.fetch_add(1, Ordering::SeqCst);
            let _ = self.0.stats();
            let _ = self.0.try_submit(Cost::new(2 * MIB), || ());
        }
    }
    impl Wake for Looking {
        fn wake(self: Arc<Self>) {
            self.look();
        }
    }
    impl Drop for Looking {
        fn drop(&mut self) {
            self.look();
        }
    }
    let waker = || Waker::from(Arc::new(Looking(Arc::clone(&executor), Arc::clone(&looks))));

    let blocker = Blocker::on(executor.default_lane(), MIB);
    let mut inside = executor.submit(Cost::new(MIB), || ()).unwrap();
    let mut outside = executor.submit_async(Cost::new(MIB), || ());
    let mut given_up = executor.submit_async(Cost::new(MIB), || ());
    for _ in 0..3 {
        let (one, two, three) = (waker(), waker(), waker());
        assert!(pin!(&mut inside).poll(&mut Context::from_waker(&one)).is_pending());
        assert!(pin!(&mut outside).poll(&mut Context::from_waker(&two)).is_pending());
        assert!(pin!(&mut given_up).poll(&mut Context::from_waker(&three)).is_pending());
    }
    drop(given_up);
    blocker.release();
    block_on(async { outside.await.unwrap().await.unwrap() });
    block_on(inside).unwrap();
    // Nine were made, and two of them were woken.
    until(|| looks.load(Ordering::SeqCst) == 11);
}

#[test]
fn the_waker_of_the_last_poll_is_the_one_that_is_woken() {
    let _watchdog = watch!();
    let (executor, _) = executor(1, MIB);
    let blocker = Blocker::on(executor.default_lane(), MIB);
    let mut handle = executor.submit(Cost::new(MIB), || 7).unwrap();
    let first = OnWake::waker(|| unreachable!("it moved to another task"));
    assert!(pin!(&mut handle).poll(&mut Context::from_waker(&first)).is_pending());
    let (woken, is_woken) = bounded(1);
    let second = OnWake::waker(move || woken.send(()).unwrap());
    assert!(pin!(&mut handle).poll(&mut Context::from_waker(&second)).is_pending());
    blocker.release();
    is_woken.recv().unwrap();
    assert!(matches!(pin!(&mut handle).poll(&mut idle()), Poll::Ready(Ok(7))));
    assert!(catch_unwind(AssertUnwindSafe(|| pin!(handle).poll(&mut idle()).is_ready())).is_err());
}

#[test]
fn a_handle_may_be_polled_joined_and_polled_again() {
    let _watchdog = watch!();
    let (executor, _) = executor(1, MIB);
    let blocker = Blocker::on(executor.default_lane(), MIB);
    let mut handle = executor.submit(Cost::new(MIB), || 7).unwrap();
    for _ in 0..3 {
        assert!(pin!(&mut handle).poll(&mut idle()).is_pending());
        handle = handle.join_timeout(Duration::from_millis(1)).unwrap_err();
    }
    assert!(pin!(&mut handle).poll(&mut idle()).is_pending());
    blocker.let_go();
    assert_eq!(block_on(handle).unwrap(), 7);
}

#[test]
fn a_waker_that_panics_kills_no_worker() {
    let _watchdog = watch!();
    let (executor, _) = executor(1, MIB);
    let blocker = Blocker::on(executor.default_lane(), MIB);
    let mut handle = executor.submit(Cost::new(MIB), || ()).unwrap();
    let waker = OnWake::waker(|| panic!("in a waker"));
    assert!(pin!(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    blocker.release();
    until(|| handle.is_finished());
    assert_eq!(executor.submit(Cost::new(MIB), || 7).unwrap().join().unwrap(), 7);
}

#[test]
fn times_that_are_over_are_noticed_where_only_tasks_wait() {
    let _watchdog = watch!();
    let budget = budget(MIB);
    let executor = builder(1, &budget).capacity(1).build().unwrap();
    let permit = budget.acquire(MIB).unwrap(); // so that nothing starts
    let in_time = executor.default_lane().start_within(Duration::from_millis(10));
    // Twice, since the first time is when the looking begins.
    for _ in 0..2 {
        let inside = block_on(in_time.submit_async(Cost::new(MIB), || ())).unwrap();
        assert!(matches!(block_on(inside), Err(JoinError::Expired)));
        let filling = executor.submit(Cost::new(MIB), || ()).unwrap();
        let outside = block_on(in_time.submit_async(Cost::new(MIB), || ()));
        assert_eq!(outside.unwrap_err().reason, Refused::Expired);
        drop(filling.cancel_on_drop());
    }
    drop(permit);

    budget.set_stall_timeout(Some(Duration::from_millis(10)));
    let keep = || admit::Context::current().unwrap().keep(MIB).unwrap();
    let kept = block_on(executor.submit(Cost::new(MIB), keep).unwrap()).unwrap();
    let stalled = executor.submit(Cost::new(MIB), || ()).unwrap();
    assert!(matches!(block_on(stalled), Err(JoinError::Stalled { .. })));
    drop(kept);
}

#[test]
fn awaiting_in_a_job_is_joining() {
    let _watchdog = watch!();
    let executor = Arc::new(builder(1, &budget(MIB)).capacity(1).build().unwrap());
    let outer = {
        let executor = Arc::clone(&executor);
        move || {
            let child = executor.submit_async(Cost::new(MIB), || 7);
            let refused = executor.submit_async(Cost::new(MIB), || 8);
            let refused = block_on(refused).unwrap_err();
            assert_eq!((refused.reason, (refused.work)()), (Refused::OwnWorker, 8));
            block_on(async { child.await.unwrap().await.unwrap() })
        }
    };
    assert_eq!(block_on(executor.submit(Cost::new(MIB), outer).unwrap()).unwrap(), 7);
}

#[test]
fn whoever_waits_for_a_place_when_the_executor_is_closed_gets_the_closure_back() {
    let _watchdog = watch!();
    let executor = builder(1, &budget(MIB)).capacity(0).build().unwrap();
    let blocker = Blocker::on(executor.default_lane(), MIB);
    let submitting = executor.submit_async(Cost::new(MIB), || 7);
    let (unpolled, never) = (
        executor.submit_async(Cost::new(MIB), || 8),
        block_on(executor.submit_async(Cost::new(2 * MIB), || 9)).unwrap_err(),
    );
    assert!(matches!(never.reason, Refused::NeverFits { .. }));
    executor.close();
    let refused = block_on(submitting).unwrap_err();
    assert_eq!((refused.reason, (refused.work)()), (Refused::Closed, 7));
    blocker.release();
    drop(executor);
    assert_eq!(block_on(unpolled).unwrap_err().reason, Refused::Closed);
}

/// A waker is dropped while its successor takes its place, and waits for a job that comes after the one
/// whose end is to be told there.
#[test]
fn a_waker_is_replaced_under_no_lock_that_the_end_of_the_job_needs() {
    let _watchdog = watch!();
    let executor = Arc::new(builder(1, &budget(MIB)).build().unwrap());
    let blocker = Blocker::on(executor.default_lane(), MIB);
    let mut handle = executor.submit(Cost::new(MIB), || 7).unwrap();

    struct OnLastDrop(Mutex<Option<Box<dyn FnOnce() + Send>>>);
    impl Wake for OnLastDrop {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for OnLastDrop {
        fn drop(&mut self) {
            self.0.get_mut().unwrap().take().unwrap()();
        }
    }
    let inner = Arc::clone(&executor);
    let dropped = Box::new(move || {
        blocker.let_go();
        inner.submit(Cost::new(MIB), || ()).unwrap().join().unwrap();
    });
    let waker = Waker::from(Arc::new(OnLastDrop(Mutex::new(Some(dropped)))));
    assert!(pin!(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    // The job may have ended by the time that the second waker is in its place.
    let _ = pin!(&mut handle).poll(&mut idle());
    assert!(handle.is_finished() && !handle.cancel());
}

#[test]
fn submitting_in_a_job_is_refused_where_waiting_would_close_a_circle() {
    let _watchdog = watch!();
    let (mine, my_budget) = executor(1, MIB);
    let mine = Arc::new(mine);
    let other = Arc::new(builder(1, &budget(MIB)).capacity(0).build().unwrap());
    let (started, is_started) = bounded(0);
    let job = {
        let (mine, other) = (Arc::clone(&mine), Arc::clone(&other));
        move || {
            started.send(()).unwrap();
            until(|| mine.stats().blocked_acquires == 1);
            block_on(other.submit_async(Cost::new(MIB), || ())).unwrap_err().reason
        }
    };
    let waits = mine.submit(Cost::new(MIB), job).unwrap();
    is_started.recv().unwrap();
    let holds = other.submit(Cost::new(MIB), move || my_budget.acquire(MIB).map(drop)).unwrap();
    assert_eq!(waits.join().unwrap(), Refused::Circle);
    assert_eq!(holds.join().unwrap(), Ok(()));
}

#[test]
fn a_handle_whose_join_is_refused_cancels_its_job_if_that_was_said() {
    let _watchdog = watch!();
    let executor = Arc::new(builder(1, &budget(MIB)).build().unwrap());
    let inner = Arc::clone(&executor);
    let parent = executor.submit(Cost::new(1), move || {
        let [detached, cancelled] =
            [7, 8].map(|n| inner.submit(Cost::new(MIB), move || n).unwrap());
        let refused = [detached.join(), cancelled.cancel_on_drop().join()];
        refused.into_iter().all(|refused| matches!(refused, Err(JoinError::AboveOwn { .. })))
    });
    assert!(parent.unwrap().join().unwrap());
    executor.drain().unwrap();
    let counts = executor.stats().counts;
    assert_eq!((counts.completed, counts.cancelled), (2, 1));
}

/// Its job was handed to a worker while the submission still stood outside.
#[test]
fn a_submission_that_is_dropped_while_its_job_runs_tells_the_job_and_drops_its_value_there() {
    let _watch = watch!();
    let budget = budget(100);
    let executor = builder(1, &budget).capacity(0).build().unwrap();
    let blocker = Blocker::on(executor.default_lane(), 1);
    let ((started, is_started), (go_on, may_go_on)) = (bounded(1), bounded::<()>(1));
    let (held, is_held) = bounded(1);
    let submitting = executor.default_lane().submit_async(Cost::new(50), move || {
        started.send(()).unwrap();
        may_go_on.recv().unwrap();
        let is_cancelled = admit::Context::current().unwrap().is_cancelled();
        OnDrop::new(move || held.send((is_cancelled, budget.ledger().held_bytes)).unwrap())
    });
    blocker.release();
    is_started.recv().unwrap();
    drop(submitting);
    go_on.send(()).unwrap();
    assert_eq!(is_held.recv().unwrap(), (true, 50));
}

#[test]
fn a_waker_whose_clone_panics_leaves_the_next_poll_as_it_was() {
    #[allow(unsafe_code)]
    fn panics() -> Waker {
        use std::task::{RawWaker, RawWakerVTable};
        static TABLE: RawWakerVTable =
            RawWakerVTable::new(|_| panic!("in a clone"), |_| (), |_| (), |_| ());
        // SAFETY: the functions do nothing with the pointer.
        unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) }
    }
    let _watch = watch!();
    let (executor, _) = executor(1, MIB);
    let blocker = Blocker::on(executor.default_lane(), MIB);
    let mut handle = executor.submit(Cost::new(MIB), || 7).unwrap();
    let waker = panics();
    let poll = || pin!(&mut handle).poll(&mut Context::from_waker(&waker)).is_pending();
    assert!(catch_unwind(AssertUnwindSafe(poll)).is_err());
    assert!(pin!(&mut handle).poll(&mut idle()).is_pending());
    blocker.release();
    assert_eq!(block_on(handle).unwrap(), 7);
}
