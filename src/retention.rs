//! What stays resident after jobs have ended, and when the allocator is told to return it.

use crate::sync::Mutex;
use crate::sys::{allocator, resident};

/// Jobs below this size are not looked after: what one of them leaves behind is little, and
/// asking what is resident would be a large part of its cost.
pub(crate) const LEAST_JOB_BYTES: u64 = 1 << 20;
/// What glibc maps for an arena, touched or not (`HEAP_MAX_SIZE` on 64-bit systems).
const ARENA_BYTES: u64 = 64 << 20;
const LEAST_ALLOWANCE_BYTES: u64 = 8 << 20;
const LEAST_DOUBT_BYTES: u64 = 32 << 20;
/// glibc's own choice before it has seen a large block freed.
const LEAST_RETURNED_BYTES: u64 = 128 << 10;
/// Beyond this, the benchmark sees no difference: a system call and fresh pages are little beside
/// what a job does with so large a block.
const MOST_RETURNED_BYTES: u64 = 8 << 20;

/// How much may be retained, as far as it can be told: a quarter of the reserve. It is there for
/// that, among other things.
fn allowance_bytes(reserve_bytes: u64) -> u64 {
    (reserve_bytes / 4).max(LEAST_ALLOWANCE_BYTES)
}

/// From which size on freed blocks are to go back to the system.
///
/// The arena of each worker keeps a free end of twice that, which nobody else can return. The ends
/// of all arenas together are to be within a quarter of the reserve.
pub(crate) fn returned_from_bytes(reserve_bytes: u64, workers: usize) -> u64 {
    // Not the least allowance: beside a small reserve its share for each arena would be much.
    let share = reserve_bytes / 4 / (workers.max(1) as u64);
    (share / 2).clamp(LEAST_RETURNED_BYTES, MOST_RETURNED_BYTES)
}

/// How many arenas may be mapped where mappings are limited. They are to be within another quarter
/// of the reserve, and there is always one.
pub(crate) fn most_arenas(reserve_bytes: u64) -> u64 {
    (reserve_bytes / 4 / ARENA_BYTES).max(1)
}

/// Resident memory beyond what is explained, in bytes. The three are read at moments of their
/// own, so that any of them may be ahead.
pub(crate) fn retained_bytes(resident: u64, baseline: u64, explained: u64) -> u64 {
    resident.saturating_sub(baseline).saturating_sub(explained)
}

/// Has the allocator return freed blocks when too much is retained, or may be.
///
/// How much it keeps, only the system knows, and it does not say why: retained memory may also be
/// results, or the program's own. So a return is asked for when what is retained has *grown* by the
/// allowance since it was least, or since the last return. The pages of that growth have cost more
/// to fill than it costs to return them, whatever they were.
///
/// That does not see all of it: a job that has not touched its bytes yet explains memory which is
/// another's. Eight jobs that parse end, four that hash are admitted, and by the time these have
/// touched what they declared it is too late, for until then no job ends. So what each worker's
/// jobs *may* have left is bounded as well: no more than the largest of them had, and no more than
/// is resident beyond what the last return has left, which is in use.
#[derive(Debug)]
pub(crate) struct Retention {
    allowance_bytes: u64,
    doubt_bytes: u64,
    /// Locked while free blocks are returned: the bytes of a job that ends meanwhile are not
    /// released before that either.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What the program takes without jobs. Lowered when less than that is resident: memory that
    /// the program has freed since would hide as much that the allocator keeps.
    baseline_bytes: u64,
    /// What was retained after the last return, or the least since. It was no free block.
    rest_bytes: u64,
    /// The largest job of each worker that has ended since the last return.
    largest_bytes: Vec<u64>,
}

impl Retention {
    pub(crate) fn new(baseline_bytes: u64, reserve_bytes: u64, workers: usize) -> Self {
        let allowance_bytes = allowance_bytes(reserve_bytes);
        // The other half is for what else is in nobody's account.
        let doubt_bytes = reserve_bytes.saturating_sub(baseline_bytes) / 2;
        Retention {
            allowance_bytes,
            doubt_bytes: doubt_bytes.max(LEAST_DOUBT_BYTES),
            state: Mutex::new(State {
                baseline_bytes,
                rest_bytes: 0,
                largest_bytes: vec![0; workers],
            }),
        }
    }

    /// To be called when a job's memory is free and before its bytes are: `explained_bytes` are
    /// held by the others. So whoever is admitted for these bytes finds them.
    pub(crate) fn check(&self, worker: usize, job_bytes: u64, explained_bytes: impl Fn() -> u64) {
        let mut state = self.state.lock();
        state.end(worker, job_bytes);
        // What cannot be read may be anything.
        let resident = resident::resident_bytes();
        if self.is_too_much(&mut state, resident, explained_bytes()) {
            allocator::return_free_blocks();
            state.returned(resident::resident_bytes(), explained_bytes());
        }
    }

    /// What the program takes without jobs, as far as it is known now.
    pub(crate) fn baseline_bytes(&self, resident: u64) -> u64 {
        self.state.lock().lower_baseline(resident)
    }

    fn is_too_much(&self, state: &mut State, resident: Option<u64>, explained: u64) -> bool {
        let left = state.largest_bytes.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let Some(resident) = resident else { return left > self.doubt_bytes };
        let baseline = state.lower_baseline(resident);
        let retained = retained_bytes(resident, baseline, explained);
        state.rest_bytes = state.rest_bytes.min(retained);
        let grown = resident - baseline - state.rest_bytes;
        retained - state.rest_bytes > self.allowance_bytes || left.min(grown) > self.doubt_bytes
    }
}

impl State {
    fn end(&mut self, worker: usize, job_bytes: u64) {
        let largest = &mut self.largest_bytes[worker];
        *largest = job_bytes.max(*largest);
    }

    fn lower_baseline(&mut self, resident: u64) -> u64 {
        self.baseline_bytes = self.baseline_bytes.min(resident);
        self.baseline_bytes
    }

    fn returned(&mut self, resident: Option<u64>, explained: u64) {
        self.largest_bytes.fill(0);
        if let Some(resident) = resident {
            let baseline = self.lower_baseline(resident);
            self.rest_bytes = retained_bytes(resident, baseline, explained);
        }
    }
}

#[cfg(all(test, not(admit_shuttle)))]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Whether too much is resident, in MiB, when nothing is explained.
    fn is_too_much(retention: &Retention, resident: u64) -> bool {
        retention.is_too_much(&mut retention.state.lock(), Some(resident * MIB), 0)
    }

    fn returned(retention: &Retention, resident: u64) {
        retention.state.lock().returned(Some(resident * MIB), 0);
    }

    #[test]
    fn a_return_is_asked_for_when_retained_memory_has_grown_by_the_allowance() {
        let retention = Retention::new(0, 64 * MIB, 2);
        assert!(!is_too_much(&retention, 0));
        assert!(!is_too_much(&retention, 16));
        assert!(is_too_much(&retention, 17));
        assert!(!retention.is_too_much(&mut retention.state.lock(), Some(17 * MIB), MIB));
    }

    #[test]
    fn what_could_not_be_returned_is_not_asked_for_again_before_it_has_grown() {
        let retention = Retention::new(0, 64 * MIB, 2);
        assert!(is_too_much(&retention, 100));
        returned(&retention, 100);
        assert!(!is_too_much(&retention, 100));
        assert!(!is_too_much(&retention, 116));
        assert!(is_too_much(&retention, 117));
    }

    #[test]
    fn memory_that_went_away_by_itself_is_watched_anew() {
        let retention = Retention::new(0, 64 * MIB, 2);
        returned(&retention, 100);
        assert!(!is_too_much(&retention, 10));
        assert!(!is_too_much(&retention, 26));
        assert!(is_too_much(&retention, 27));
    }

    #[test]
    fn memory_that_the_program_frees_hides_nothing() {
        let retention = Retention::new(150 * MIB, 64 * MIB, 2);
        assert!(!is_too_much(&retention, 150));
        assert!(!is_too_much(&retention, 10));
        assert_eq!(retention.baseline_bytes(150 * MIB), 10 * MIB);
        assert!(is_too_much(&retention, 27));
        assert_eq!(retention.baseline_bytes(5 * MIB), 5 * MIB);
    }

    #[test]
    fn a_small_reserve_allows_something_nevertheless() {
        let retention = Retention::new(0, 0, 2);
        assert!(!is_too_much(&retention, 8));
        assert!(is_too_much(&retention, 9));
    }

    #[test]
    fn what_jobs_may_have_left_behind_those_that_run_is_bounded() {
        let retention = Retention::new(16 * MIB, 96 * MIB, 4);
        let state = &mut *retention.state.lock();
        // The others explain all of it.
        let explained = 1024 * MIB;
        let is_doubtful =
            |state: &mut State| retention.is_too_much(state, Some(explained), explained);
        for (worker, mib, expected) in
            [(0, 30, false), (0, 30, false), (1, 10, false), (0, 31, true), (1, 9, true)]
        {
            state.end(worker, mib * MIB);
            assert_eq!(is_doubtful(state), expected, "{worker} {mib}");
            // The same where nobody knows what is resident.
            assert_eq!(retention.is_too_much(state, None, explained), expected);
        }
        // What is not resident cannot have been kept.
        assert!(!retention.is_too_much(state, Some(56 * MIB), explained));
        assert!(retention.is_too_much(state, Some(57 * MIB), explained));
        state.returned(Some(explained), explained);
        assert!(!is_doubtful(state));
        state.end(3, u64::MAX);
        state.end(2, u64::MAX);
        assert!(is_doubtful(state));
    }

    #[test]
    fn what_is_in_use_after_a_return_is_not_suspected_again() {
        let retention = Retention::new(0, 0, 2);
        retention.state.lock().end(0, 80 * MIB);
        assert!(is_too_much(&retention, 500));
        returned(&retention, 500);
        retention.state.lock().end(0, 80 * MIB);
        assert!(!is_too_much(&retention, 501));
        assert!(is_too_much(&retention, 540));
    }

    #[test]
    fn the_free_ends_of_all_arenas_are_within_a_quarter_of_the_reserve() {
        for (reserve, workers) in [(96, 16), (192, 4), (64, 3), (16, 16), (1 << 20, 64)] {
            let ends = 2 * returned_from_bytes(reserve * MIB, workers) * workers as u64;
            assert!(ends <= reserve * MIB / 4, "{reserve} MiB, {workers} workers");
        }
        assert_eq!(returned_from_bytes(96 * MIB, 16), 768 << 10);
        assert_eq!(returned_from_bytes(u64::MAX, 1), 8 * MIB);
        assert_eq!(returned_from_bytes(0, usize::MAX), 128 << 10);
    }

    #[test]
    fn readings_that_do_not_fit_together_are_no_retained_memory() {
        assert_eq!(retained_bytes(10, 20, 5), 0);
        assert_eq!(retained_bytes(30, 20, 50), 0);
        assert_eq!(retained_bytes(30, 20, 4), 6);
    }
}
