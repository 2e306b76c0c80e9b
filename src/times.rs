//! How long the jobs of a lane waited, or ran, by how they ended.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::counts::Ended;

/// Two digits: a value is known to within 1 %.
const DIGITS: u8 = 2;

/// How long the jobs of a lane waited, or ran: for each way in which one can [end](Ended) a histogram, in
/// microseconds, to within 1 %.
///
/// [Waits](crate::Lane::wait_times): for jobs that have run the time from the call of `submit`, or from when
/// their [place](crate::Place) was taken, to the start; for the others that to the end of the wait. Each is
/// known to within a tick of the system's timer, 1 to 10 ms on Linux.
/// [Runs](crate::Lane::run_times): from the start to the end, of those that have run.
/// The histograms begin with the lane, and go with it.
///
/// # Examples
///
/// ```
/// use admit::{Budget, Cost, Ended, Executor, MIB};
///
/// let executor = Executor::builder().workers(1).budget(Budget::new(64 * MIB, 0)?).build()?;
/// for handle in [0, 1, 2].map(|n| executor.submit(Cost::new(MIB), move || n)) {
///     handle?.join()?;
/// }
/// let lane = executor.default_lane().clone();
/// executor.drain();
/// let wait_times = lane.wait_times();
/// let completed = wait_times.of(Ended::Completed).expect("three have");
/// assert_eq!(completed.len(), 3);
/// assert!(completed.value_at_quantile(0.99) < 60_000_000);
/// assert_eq!(lane.run_times().of(Ended::Completed).expect("three have").len(), 3);
/// assert!(wait_times.of(Ended::Cancelled).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Those in which something was recorded: each takes some 20 KiB.
    histograms: BTreeMap<Ended, Histogram<u64>>,
}

impl Times {
    /// How long those waited, or ran, that ended so; `None` if there were none.
    pub fn of(&self, ended: Ended) -> Option<&Histogram<u64>> {
        self.histograms.get(&ended)
    }

    /// All that something was recorded in.
    pub fn iter(&self) -> impl Iterator<Item = (Ended, &Histogram<u64>)> {
        self.histograms.iter().map(|(ended, histogram)| (*ended, histogram))
    }

    pub(crate) fn record(&mut self, ended: Ended, time: Duration) {
        let histogram = self.histograms.entry(ended).or_insert_with(|| {
            let mut histogram = Histogram::new_with_bounds(1, 1_000_000, DIGITS)
                .expect("the lowest value is above 0, the highest twice that, and digits up to 5");
            histogram.auto(true);
            histogram
        });
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        histogram.saturating_record(micros);
    }
}
