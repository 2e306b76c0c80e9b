//! Whether the service works. Overload is work: those whom it refuses have their answer.

use std::sync::Arc;

use admit::{Cost, Executor, Lane, MIB};
use axum::http::StatusCode;

use crate::history::{History, Sample};

/// For so long a light hash, which takes milliseconds, has waited and none has ended.
const STUCK_AFTER_SECONDS: u64 = 5;

#[derive(Clone, Debug)]
pub(crate) struct Health {
    executor: Arc<Executor>,
    light: Lane,
    history: History,
}

impl Health {
    pub(crate) fn new(executor: &Arc<Executor>, light: &Lane, history: &History) -> Health {
        Health { executor: Arc::clone(executor), light: light.clone(), history: history.clone() }
    }

    pub(crate) fn check(&self) -> (StatusCode, String) {
        match self.trouble() {
            None => (StatusCode::OK, String::from("ok\n")),
            Some(why) => (StatusCode::SERVICE_UNAVAILABLE, why + "\n"),
        }
    }

    fn trouble(&self) -> Option<String> {
        // As when the memory limit has been lowered.
        if let Err(refused) = self.light.check(Cost::new(MIB)) {
            return Some(refused.to_string());
        }
        if self.executor.stats().is_closed {
            return Some(String::from("stopping"));
        }
        let light = self.light.name();
        let samples = self.history.last_seconds(STUCK_AFTER_SECONDS)?;
        let of_light = |sample: &Sample| {
            let lane = sample.lanes.iter().find(|lane| lane.name == light)?;
            Some((lane.waiting_jobs, lane.ended_jobs))
        };
        let (_, ended_before) = samples.first().and_then(of_light)?;
        let is_stuck = samples
            .iter()
            .filter_map(of_light)
            .all(|(waiting, ended)| waiting > 0 && ended == ended_before);
        is_stuck.then(|| format!("light jobs wait, and none has ended for {STUCK_AFTER_SECONDS} s"))
    }
}
