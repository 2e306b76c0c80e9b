//! What an executor, its lanes, its handles and its workers have in common.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::gate::Gate;
use crate::retention::Retention;
use crate::running::{self, Employer, ExecutorId};
use crate::sync::AtomicBool;
use crate::sys::fork::{Generation, PerProcess};

/// An executor's place at its budget's gate. Lanes and workers keep it alive.
pub(crate) struct Shared {
    pub(crate) gate: Arc<Gate>,
    pub(crate) crew: usize,
    /// Whether a worker waits awake.
    pub(crate) spinning: AtomicBool,
    /// `None`: nothing is done about what the allocator keeps.
    pub(crate) retention: Option<Retention>,
    id: ExecutorId,
}

struct Registry {
    last: u64,
    executors: BTreeMap<u64, Weak<Shared>>,
}

static REGISTRY: PerProcess<Registry> =
    PerProcess::new(|| Registry { last: 0, executors: BTreeMap::new() });

impl Shared {
    pub(crate) fn new(gate: Arc<Gate>, crew: usize, retention: Option<Retention>) -> Arc<Shared> {
        let mut registry = REGISTRY.lock();
        registry.last += 1;
        let number = registry.last;
        let place = Employer { gate: Arc::as_ptr(&gate).addr(), crew };
        let id = ExecutorId { number, place, generation: Generation::current() };
        let shared =
            Arc::new(Shared { gate, crew, spinning: AtomicBool::new(false), retention, id });
        registry.executors.insert(id.number, Arc::downgrade(&shared));
        shared
    }

    pub(crate) fn id(&self) -> ExecutorId {
        self.id
    }

    /// Whether the caller does something that the end of this executor waits for.
    pub(crate) fn is_own_worker(&self) -> bool {
        running::is_awaited_by(self.id.place)
    }

    pub(crate) fn was_forked(&self) -> bool {
        self.id.was_forked()
    }
}

impl ExecutorId {
    /// The executor, unless it and all its lanes and workers are gone.
    pub(crate) fn find(self) -> Option<Arc<Shared>> {
        // In a child process the numbers start anew.
        let executor = REGISTRY.lock().executors.get(&self.number)?.upgrade();
        executor.filter(|executor| executor.id == self)
    }

    /// Whether the caller is a worker whose job holds bytes of the executor's budget, so that
    /// waiting for a job of the executor could be waiting for itself.
    pub(crate) fn is_on_callers_budget(self) -> bool {
        is_callers_budget(self.place.gate)
    }

    pub(crate) fn as_employer(self) -> Employer {
        self.place
    }

    pub(crate) fn was_forked(self) -> bool {
        self.generation != Generation::current()
    }
}

/// Whether the caller is a worker of an executor on the budget with this gate.
pub(crate) fn is_callers_budget(gate: usize) -> bool {
    running::works_for(|employer| employer.gate == gate)
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.was_forked() {
            REGISTRY.lock().executors.remove(&self.id.number);
            self.gate.change(|state| state.detach(self.crew));
        }
    }
}
