//! Whether the service works. Overload is work: those whom it refuses have their answer.

use std::sync::Arc;
use std::time::Duration;

use admit::{Cost, Executor, Lane, MIB};
use axum::http::StatusCode;

/// A light hash has waited so long: then the workers are stuck.
const STUCK_AFTER: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(crate) struct Health {
    executor: Arc<Executor>,
    light: Lane,
}

impl Health {
    pub(crate) fn new(executor: &Arc<Executor>, light: &Lane) -> Health {
        Health { executor: Arc::clone(executor), light: light.clone() }
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
        let stats = self.executor.stats();
        if stats.is_closed {
            return Some(String::from("stopping"));
        }
        let light = stats.lanes.iter().find(|lane| lane.name == self.light.name())?;
        let wait = light.oldest_wait.filter(|wait| *wait > STUCK_AFTER)?;
        Some(format!("a light job has waited for {:.1} s", wait.as_secs_f64()))
    }
}
