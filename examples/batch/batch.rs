//! The batch: which jobs there are, and how they are submitted.

use std::fmt::Display;
use std::iter;
use std::path::PathBuf;

use admit::{Cost, Executor, Scope};

use crate::answers::Answers;
use crate::gzip;
use crate::hash::{Hash, RFC_7914};
use crate::input::{self, BadInput};
use crate::options::Options;
use crate::tally::{Done, Tally};

type Files<'a> = Box<dyn Iterator<Item = Result<PathBuf, BadInput>> + 'a>;

/// Submits jobs that leave their results in the tally, so that nothing has to be kept for each.
#[derive(Debug)]
pub(crate) struct Batch<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    executor: &'env Executor,
    tally: &'env Tally,
    answers: &'env Answers,
}

impl<'scope, 'env> Batch<'scope, 'env> {
    pub(crate) fn new(
        scope: &'scope Scope<'scope, 'env>,
        executor: &'env Executor,
        tally: &'env Tally,
        answers: &'env Answers,
    ) -> Self {
        Batch { scope, executor, tally, answers }
    }

    /// Submits everything, hashes and files in turn. Blocks while no more jobs may wait, and
    /// does not read the next file before. So one file at most is in memory that no job has
    /// been charged for yet; the reserve is there for it.
    pub(crate) fn submit(&self, options: &Options) {
        for (vector, _) in RFC_7914 {
            if self.executor.check(vector.cost()).is_ok() {
                self.submit_hash(vector, |_| Done::Vector);
            }
        }
        let mut hashes = options.sizes.iter().cycle().take(options.hashes);
        let mut files = self.files(options).fuse();
        loop {
            let (hash, file) = (hashes.next(), files.next());
            if hash.is_none() && file.is_none() {
                return;
            }
            if let Some(hash) = hash {
                self.submit_hash(*hash, |was_compared| Done::Hash { was_compared });
            }
            if let Some(file) = file {
                self.submit_file(file);
            }
        }
    }

    fn files<'a>(&self, options: &'a Options) -> Files<'a> {
        if !options.inputs.is_empty() {
            return Box::new(input::files(&options.inputs));
        }
        match input::own_files() {
            Some(files) => Box::new(files),
            None => {
                self.tally.note(
                    "note: this crate's directory is gone, so there is nothing to compress; \
                     name files with --input",
                );
                Box::new(iter::empty())
            }
        }
    }

    fn submit_hash(&self, hash: Hash, done: fn(bool) -> Done) {
        let answers = self.answers;
        self.submit_job(hash.cost(), move || answers.check(hash, hash.compute()).map(done));
    }

    fn submit_file(&self, file: Result<PathBuf, BadInput>) {
        let read = file.and_then(|path| input::read(&path, self.executor).map(|read| (path, read)));
        let (path, (contents, cost)) = match read {
            Ok(read) => read,
            Err(bad) => return self.tally.fail(bad),
        };
        self.submit_job(cost, move || match gzip::compress(&contents) {
            Ok(output_bytes) => Ok(Done::Gzip { input_bytes: cost.input_bytes(), output_bytes }),
            Err(error) => Err(format!("{path:?}: {error}")),
        });
    }

    fn submit_job<E: Display>(
        &self,
        cost: Cost,
        work: impl FnOnce() -> Result<Done, E> + Send + 'env,
    ) {
        let tally = self.tally;
        tally.expect_job();
        match self.scope.submit(cost, move || tally.record(work())) {
            Ok(handle) => drop(handle),
            Err(refused) => tally.fail(refused),
        }
    }
}
