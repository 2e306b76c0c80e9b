//! A budget that found its own limit follows it.

use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use admit::{Budget, BuildError, Cost, DetectError, Executor, Fact, JoinError, MIB, Reserve};
use tempfile::TempDir;

use crate::kit::{Blocker, budget, until};
use crate::watchdog::watch;

/// A machine of 1 GiB, on which this process is in a control group with a limit.
struct Machine(TempDir);

impl Machine {
    fn new(limit: &str) -> Machine {
        let machine = Machine(TempDir::new().unwrap());
        for (file, text) in [
            ("proc/meminfo", "MemTotal: 1048576 kB\n"),
            ("proc/self/cgroup", "0::/jobs\n"),
            ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("proc/self/status", "VmSize: 1024 kB\nVmRSS: 512 kB\nCpus_allowed_list: 0-1\n"),
            (
                "proc/self/limits",
                "Limit Soft Hard Units\nMax data size unlimited unlimited bytes\n\
                 Max address space unlimited unlimited bytes\n",
            ),
            ("sys/fs/cgroup/cgroup.controllers", "memory\n"),
            ("sys/fs/cgroup/jobs/memory.high", "max\n"),
        ] {
            machine.write(file, text);
        }
        machine.limit(limit);
        machine
    }

    fn root(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.root().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// In one step, as the kernel does it: a file that is being written may be read half.
    fn limit(&self, text: &str) {
        self.write("sys/fs/cgroup/jobs/new", &format!("{text}\n"));
        let folder = self.root().join("sys/fs/cgroup/jobs");
        fs::rename(folder.join("new"), folder.join("memory.max")).unwrap();
    }
}

fn numbers(budget: &Budget) -> (u64, u64) {
    let ledger = budget.ledger();
    (ledger.capacity_bytes / MIB, ledger.reserve_bytes / MIB)
}

#[test]
fn a_budget_takes_the_limit_it_finds_and_follows_it_on_request() {
    let machine = Machine::new("402653184");
    let budget = Budget::detect_from(machine.root(), Reserve::half()).unwrap();
    assert_eq!(numbers(&budget), (384, 192));
    let permit = budget.try_acquire(192 * MIB).unwrap();

    machine.limit("268435456");
    assert_eq!(numbers(&budget), (384, 192));
    let facts = budget.redetect().unwrap();
    assert_eq!(facts.cgroup_max.limit(), Some(256 * MIB));
    assert_eq!(budget.found(), Some(facts));
    assert_eq!(numbers(&budget), (256, 128));
    // What is held stays held, and nothing is admitted beside it.
    assert_eq!(budget.ledger().held_bytes, 192 * MIB);
    assert!(budget.try_acquire(1).is_err());
    drop(permit);
    assert!(budget.try_acquire(128 * MIB).is_ok());

    machine.limit("max");
    budget.redetect().unwrap();
    assert_eq!(numbers(&budget), (1024, 512));
}

#[test]
fn a_limit_that_can_no_longer_be_read_changes_nothing_and_is_no_missing_limit() {
    let machine = Machine::new("402653184");
    let budget = Budget::detect_from(machine.root(), Reserve::half()).unwrap();
    machine.limit("4026garbage");
    assert!(matches!(budget.redetect(), Err(DetectError::Unread { .. })));
    assert_eq!(numbers(&budget), (384, 192));
    assert!(matches!(budget.found().unwrap().cgroup_max, Fact::Unread { .. }));

    let error = Budget::detect_from(machine.root(), Reserve::half()).unwrap_err();
    let BuildError::Detect(DetectError::Unread { why }) = &error else { panic!("{error}") };
    assert!(why.contains("memory.max") && why.contains("4026garbage"), "{why}");
}

#[test]
fn a_reserve_above_the_limit_is_an_error_at_first_and_admits_nothing_later() {
    let machine = Machine::new("402653184");
    let reserve = Reserve::bytes(300 * MIB);
    let budget = Budget::detect_from(machine.root(), reserve).unwrap();
    assert_eq!(budget.ledger().admissible_bytes(), 84 * MIB);
    machine.limit("268435456");
    budget.redetect().unwrap();
    assert_eq!(budget.ledger().admissible_bytes(), 0);
    let error = Budget::detect_from(machine.root(), reserve).unwrap_err();
    assert!(matches!(error, BuildError::ReserveAboveCapacity { .. }), "{error}");
    let error = Budget::detect_from(machine.root(), Reserve::fraction(2.0)).unwrap_err();
    assert!(matches!(error, BuildError::ReserveFraction { .. }), "{error}");
}

#[test]
fn a_job_that_waits_for_more_than_a_lowered_limit_has_is_told_with_both_numbers() {
    let _watch = watch!();
    let machine = Machine::new("402653184");
    let budget = Budget::detect_from(machine.root(), Reserve::half()).unwrap();
    let executor = Executor::builder().workers(2).budget(budget.clone()).build().unwrap();
    let blocker = Blocker::on(executor.default_lane(), 100 * MIB);
    let big = executor.submit(Cost::new(150 * MIB), || ()).unwrap();
    let small = executor.submit(Cost::new(100 * MIB), || 5).unwrap();
    machine.limit("268435456");
    budget.redetect().unwrap();
    assert!(matches!(
        big.join(),
        Err(JoinError::NeverFits { needed_bytes, admissible_bytes })
            if needed_bytes == 150 * MIB && admissible_bytes == 128 * MIB
    ));
    blocker.release();
    assert_eq!(small.join().unwrap(), 5);
}

#[test]
fn an_executor_follows_the_limit_in_intervals_as_long_as_it_lives() {
    let _watch = watch!();
    let machine = Machine::new("402653184");
    let budget = Budget::detect_from(machine.root(), Reserve::half()).unwrap();
    let every = Duration::from_millis(1);
    let builder = Executor::builder().workers(1).budget(budget.clone());
    let executor = builder.redetect_every(every).build().unwrap();
    machine.limit("268435456");
    until(|| numbers(&budget) == (256, 128));
    machine.limit("none");
    until(|| matches!(budget.found().unwrap().cgroup_max, Fact::Unread { .. }));
    assert_eq!(numbers(&budget), (256, 128));
    machine.limit("134217728");
    until(|| numbers(&budget) == (128, 64));
    drop(executor);
}

#[test]
fn a_guard_may_go_with_the_job_that_the_lowered_limit_ends() {
    let _watch = watch!();
    let machine = Machine::new("402653184");
    let budget = Budget::detect_from(machine.root(), Reserve::half()).unwrap();
    let executor = Executor::builder().workers(1).budget(budget.clone()).build().unwrap();
    let blocker = Blocker::on(executor.default_lane(), 100 * MIB);
    let follow = budget.follow(Duration::from_millis(1)).unwrap();
    let (dropped, is_dropped) = channel::<()>();
    let work = move || drop((follow, dropped));
    let big = executor.submit(Cost::new(150 * MIB), work).unwrap();
    machine.limit("268435456");
    assert!(is_dropped.recv().is_err());
    assert!(matches!(big.join(), Err(JoinError::NeverFits { .. })));
    blocker.release();
}

#[test]
fn a_budget_that_was_given_its_capacity_keeps_it() {
    let given = budget(64 * MIB);
    assert!(matches!(given.redetect(), Err(DetectError::Given)));
    assert!(matches!(given.follow(Duration::from_secs(1)), Err(DetectError::Given)));
    assert!(given.found().is_none());
    let builder = Executor::builder().workers(1).budget(given.clone());
    let built = builder.redetect_every(Duration::from_secs(1)).build();
    assert!(matches!(built, Err(BuildError::Detect(DetectError::Given))));
    assert_eq!(numbers(&given), (64, 0));

    let machine = Machine::new("402653184");
    let found = Budget::detect_from(machine.root(), Reserve::half()).unwrap();
    assert!(matches!(found.follow(Duration::ZERO), Err(DetectError::Interval)));
}
