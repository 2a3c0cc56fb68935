//! Instances of ended processes, which the next ones use again: the start of an instance costs as
//! much as hundreds of calls.

use std::sync::{Arc, Mutex, PoisonError};

use percid_sim::topology::Topology;

use crate::snapshot::Snapshot;

/// Maximum number of unused instances.
const MOST: usize = 64;

/// The machine of a process.
#[derive(Clone, PartialEq)]
pub(crate) struct Machine {
    pub(crate) cpus: u32,
    /// The places of the CPUs, if the module asks for distances.
    pub(crate) distances: Option<Arc<Topology>>,
}

impl Machine {
    /// Returns the machine with this topology.
    pub(crate) fn of(topology: &Topology, asks_distances: bool) -> Machine {
        let distances = asks_distances.then(|| Arc::new(topology.clone()));
        Machine { cpus: topology.cpus(), distances }
    }
}

/// The unused instances of a module, for the machine of the last process.
pub(crate) struct Shelf<I>(Mutex<Unused<I>>);

struct Unused<I> {
    machine: Option<Machine>,
    /// The state of all instances after their start on this machine.
    snapshot: Option<Arc<Snapshot>>,
    instances: Vec<I>,
}

impl<I> Shelf<I> {
    pub(crate) fn new() -> Shelf<I> {
        Shelf(Mutex::new(Unused { machine: None, snapshot: None, instances: Vec::new() }))
    }

    /// Takes an unused instance, and the snapshot to which it must be reset.
    pub(crate) fn take(&self, machine: &Machine) -> Option<(I, Arc<Snapshot>)> {
        let mut unused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if unused.machine.as_ref() != Some(machine) {
            return None;
        }
        let snapshot = unused.snapshot.clone()?;
        Some((unused.instances.pop()?, snapshot))
    }

    /// Returns the snapshot of this machine. The first new instance on a machine makes it.
    pub(crate) fn snapshot(
        &self,
        machine: &Machine,
        take: impl FnOnce() -> Snapshot,
    ) -> Arc<Snapshot> {
        let mut unused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if unused.machine.as_ref() != Some(machine) {
            *unused =
                Unused { machine: Some(machine.clone()), snapshot: None, instances: Vec::new() };
        }
        unused.snapshot.get_or_insert_with(|| Arc::new(take())).clone()
    }

    /// Puts an instance back.
    pub(crate) fn put(&self, machine: &Machine, instance: I) {
        let mut unused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if unused.machine.as_ref() == Some(machine) && unused.instances.len() < MOST {
            unused.instances.push(instance);
        }
    }
}
