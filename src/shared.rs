//! What an executor, its lanes, its handles and its workers have in common.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::context::{self, Employer};
use crate::gate::Gate;
use crate::sync::AtomicBool;
use crate::sys::fork::Generation;

/// An executor's place at its budget's gate. Lanes and workers keep it alive.
pub(crate) struct Shared {
    pub(crate) gate: Arc<Gate>,
    pub(crate) crew: usize,
    /// Whether a worker waits awake.
    pub(crate) spinning: AtomicBool,
    id: ExecutorId,
}

/// Names an executor, for handles: there is one for every job, and counting references for
/// each would cost every job two atomic operations on one shared word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecutorId {
    number: u64,
    generation: Generation,
}

struct Registry {
    last: u64,
    executors: BTreeMap<u64, Weak<Shared>>,
}

static REGISTRY: parking_lot::Mutex<Registry> =
    parking_lot::Mutex::new(Registry { last: 0, executors: BTreeMap::new() });

impl Shared {
    pub(crate) fn new(gate: Arc<Gate>, crew: usize) -> Arc<Shared> {
        let mut registry = REGISTRY.lock();
        registry.last += 1;
        let id = ExecutorId { number: registry.last, generation: Generation::current() };
        let shared = Arc::new(Shared { gate, crew, spinning: AtomicBool::new(false), id });
        registry.executors.insert(id.number, Arc::downgrade(&shared));
        shared
    }

    pub(crate) fn id(&self) -> ExecutorId {
        self.id
    }

    pub(crate) fn as_employer(&self) -> Employer {
        Employer { executor: self.id, gate: Arc::as_ptr(&self.gate).addr() }
    }

    pub(crate) fn is_own_worker(&self) -> bool {
        self.id.is_own_worker()
    }

    pub(crate) fn was_forked(&self) -> bool {
        self.id.was_forked()
    }
}

impl ExecutorId {
    /// The executor, unless it and all its lanes and workers are gone.
    pub(crate) fn find(self) -> Option<Arc<Shared>> {
        REGISTRY.lock().executors.get(&self.number)?.upgrade()
    }

    pub(crate) fn is_own_worker(self) -> bool {
        context::employer().is_some_and(|employer| employer.executor == self)
    }

    pub(crate) fn was_forked(self) -> bool {
        self.generation != Generation::current()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.was_forked() {
            REGISTRY.lock().executors.remove(&self.id.number);
            self.gate.change(|state| state.detach(self.crew));
        }
    }
}
