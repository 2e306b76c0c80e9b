//! What a lane is to be like.

use std::sync::Arc;
use std::time::Duration;

use crate::accounts::{MOST_SHARE, Terms};
use crate::answer::Misfit;
use crate::error::BuildError;
use crate::queue::LanePlan;

const DEFAULT_CAPACITY: usize = 1024;
/// So that the lane does not run empty before those who are told have come.
const MOST_TOLD_TOGETHER: usize = 256;

/// What a lane is to be like: its name, its bounds, its share and its guarantees.
///
/// # Examples
///
/// Logins that must answer, and thumbnails that may have the rest:
///
/// ```
/// use admit::{Budget, Cost, Executor, LaneOptions, MIB};
///
/// let logins = LaneOptions::new("logins").guaranteed_bytes(65 * MIB).guaranteed_workers(1);
/// let thumbnails = LaneOptions::new("thumbnails").capacity(100).most_bytes(128 * MIB);
/// assert_eq!(logins.name(), "logins");
///
/// let budget = Budget::new(256 * MIB, 0)?;
/// let builder = Executor::builder().workers(4).budget(budget).lane(logins).lane(thumbnails);
/// let executor = builder.build()?;
/// let login = executor.lane("logins").expect("it was built");
/// // A hash takes 64 MiB and a little.
/// assert_eq!(login.submit(Cost::new(64 * MIB + 2048), || 7)?.join()?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LaneOptions {
    name: String,
    capacity: usize,
    input_bytes: Option<u64>,
    newest_first_after: Option<Duration>,
    terms: Terms,
}

impl LaneOptions {
    /// A lane for at most 1024 waiting jobs, with as many bytes of input as the executor allows in
    /// all, one share, and neither guarantees nor ceilings.
    pub fn new(name: impl Into<String>) -> Self {
        LaneOptions {
            name: name.into(),
            capacity: DEFAULT_CAPACITY,
            input_bytes: None,
            newest_first_after: None,
            terms: Terms::PLAIN,
        }
    }

    /// The lane's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many jobs may wait in the lane. 0: none, each is handed to a worker directly.
    pub fn capacity(mut self, jobs: usize) -> Self {
        self.capacity = jobs;
        self
    }

    /// How many bytes of input the waiting jobs may hold together.
    pub fn input_bytes(mut self, bytes: u64) -> Self {
        self.input_bytes = Some(bytes);
        self
    }

    /// Under overload, the newest job first: while the oldest that waits has waited longer than
    /// `wait`. Without it, always the oldest.
    ///
    /// When more comes than can be done, first in, first out makes everybody wait as long as anybody
    /// is ready to, and clients leave just before their turn. The newest first serves those who have
    /// just come, and the others not at all: with a [time to start](crate::Lane::start_within) they
    /// get an answer, without one they wait until the overload is over, passed by any number of later
    /// ones. A job that was chosen and does not fit stays the next one.
    pub fn newest_first_after(mut self, wait: Duration) -> Self {
        self.newest_first_after = Some(wait);
        self
    }

    /// The most bytes that one job of the lane may declare; all that are admissible, unless set. What
    /// is above is refused as never fitting: for costs that are computed from what a client sent.
    pub fn most_job_bytes(mut self, bytes: u64) -> Self {
        self.terms.most_job_bytes = bytes;
        self
    }

    /// The lane's share, 1 to 1000; 1 unless set.
    ///
    /// Where jobs of several lanes wait for the same bytes or workers, the lanes get them in
    /// proportion to their shares, over time: with shares of 3 and 1, the first has three times as
    /// many byte-seconds as the second. A job counts for at least one worker's part of the
    /// admissible bytes, so that lanes of small jobs share the workers' time in the same way. What a
    /// lane does not use goes to the others, and is not saved up.
    pub fn share(mut self, share: u32) -> Self {
        self.terms.share = share;
        self
    }

    /// Bytes that only this lane's jobs can have; 0 unless set. They are set aside from what other
    /// lanes, executors and acquirers may hold, whether or not the lane has jobs. They bring no worker:
    /// the last free one is left to a job that came first and waits for bytes, unless the lane is
    /// guaranteed [workers](LaneOptions::guaranteed_workers) too. While a lane has any, no job of
    /// another lane can [run alone](crate::Oversize::RunAlone).
    pub fn guaranteed_bytes(mut self, bytes: u64) -> Self {
        self.terms.guaranteed_bytes = bytes;
        self
    }

    /// Workers that only this lane's jobs can have; 0 unless set. At least one worker has to be left
    /// over. Which of the executor's workers they are changes from job to job, but while there are any of
    /// [normal priority](crate::Builder::nice_beyond) they are of these, and the jobs of other lanes leave them
    /// as many: with as many workers of normal priority as are guaranteed, jobs that must answer at once have the
    /// processor before all others.
    pub fn guaranteed_workers(mut self, workers: usize) -> Self {
        self.terms.guaranteed_workers = workers;
        self
    }

    /// The most bytes that the lane's jobs may hold at once; all that are admissible, unless set.
    /// While its next job would be above, the lane holds up nobody. A job that alone is above is
    /// refused.
    pub fn most_bytes(mut self, bytes: u64) -> Self {
        self.terms.most_bytes = bytes;
        self
    }

    /// The most jobs of the lane that may run at once; all workers, unless set.
    pub fn most_workers(mut self, workers: usize) -> Self {
        self.terms.most_workers = workers;
        self
    }

    pub(crate) fn guaranteed(&self) -> usize {
        self.terms.guaranteed_workers
    }

    pub(crate) fn unfit(&self, misfit: Misfit) -> BuildError {
        match misfit {
            Misfit::Closed => BuildError::Closed,
            Misfit::Twice => BuildError::LaneTwice { lane: self.name.clone() },
            Misfit::Workers { guaranteed, workers } => {
                BuildError::GuaranteedWorkers { guaranteed, workers }
            }
            Misfit::Bytes { available_bytes } => BuildError::GuaranteesAboveBudget {
                guaranteed_bytes: self.terms.guaranteed_bytes,
                waiting_limit_bytes: 0,
                available_bytes,
            },
        }
    }

    /// Within the executor's limit of waiting bytes.
    pub(crate) fn plan(&self, waiting_limit_bytes: u64) -> Result<LanePlan, BuildError> {
        let lane = || self.name.clone();
        let Terms { share, guaranteed_bytes, guaranteed_workers, most_bytes, most_workers, .. } =
            self.terms;
        let limit_input_bytes = self.input_bytes.unwrap_or(waiting_limit_bytes);
        if limit_input_bytes > waiting_limit_bytes {
            let lane_bytes = limit_input_bytes;
            return Err(BuildError::LaneAboveWaiting {
                lane: lane(),
                lane_bytes,
                waiting_limit_bytes,
            });
        }
        if share == 0 || share > MOST_SHARE {
            return Err(BuildError::LaneShare { lane: lane(), share, most: MOST_SHARE });
        }
        if guaranteed_bytes > most_bytes {
            return Err(BuildError::LaneBytes { lane: lane(), guaranteed_bytes, most_bytes });
        }
        if guaranteed_workers > most_workers || most_workers == 0 {
            let (guaranteed, most) = (guaranteed_workers, most_workers);
            return Err(BuildError::LaneWorkers { lane: lane(), guaranteed, most });
        }
        Ok(LanePlan {
            name: Arc::from(self.name.as_str()),
            limit_jobs: self.capacity,
            limit_input_bytes,
            terms: self.terms,
            newest_first_after: self.newest_first_after,
            told_together: (self.capacity / 4).clamp(1, MOST_TOLD_TOGETHER),
        })
    }
}
