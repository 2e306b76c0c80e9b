//! What becomes of a job that is larger than the budget.

/// What is done with jobs and acquirers that need more than can be admitted beside others.
///
/// The declared bytes of a job are often the worst case. Whether one that is above the admissible
/// bytes is to be tried all the same depends on how sure the two numbers are, so it is said for each
/// budget, with [`Budget::set_oversize`](crate::Budget::set_oversize).
///
/// # Examples
///
/// ```
/// use admit::{Budget, Cost, Executor, MIB, Oversize, Refused};
///
/// let budget = Budget::new(64 * MIB, 16 * MIB)?;
/// let executor = Executor::builder().workers(2).budget(budget.clone()).build()?;
/// let refused = executor.submit(Cost::new(60 * MIB), || ()).unwrap_err();
/// assert!(matches!(refused.reason, Refused::NeverFits { .. }));
///
/// budget.set_oversize(Oversize::RunAlone { most_bytes: 64 * MIB });
/// executor.submit(Cost::new(60 * MIB), || ())?.join()?;
/// let refused = executor.submit(Cost::new(65 * MIB), || ()).unwrap_err();
/// assert!(matches!(refused.reason, Refused::NeverFits { admissible_bytes, .. } if admissible_bytes == 64 * MIB));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oversize {
    /// They are refused as never fitting, with both numbers.
    #[default]
    Refuse,
    /// One that needs no more than `most_bytes` is admitted when no other job is in flight and no
    /// permit is held. While it waits for that, at the head, it is passed as one that does not fit;
    /// while it holds its bytes, only jobs of no bytes are admitted.
    ///
    /// On a budget that was [detected](crate::Budget::detect), no more than the capacity is
    /// admitted even so: that is what the process is killed for. The capacity of a budget that was
    /// given is its owner's word, and `most_bytes` may be above it.
    ///
    /// Bytes that are [guaranteed](crate::LaneOptions::guaranteed_bytes) to other lanes are theirs:
    /// while there are any, nothing runs alone.
    RunAlone {
        /// The most that such a job may need.
        most_bytes: u64,
    },
}

impl Oversize {
    /// The most that may be admitted alone, within the capacity of a budget that was found and not
    /// given.
    pub(crate) fn most_bytes(self, capacity_bytes: Option<u64>) -> u64 {
        match self {
            Oversize::Refuse => 0,
            Oversize::RunAlone { most_bytes } => most_bytes.min(capacity_bytes.unwrap_or(u64::MAX)),
        }
    }
}
