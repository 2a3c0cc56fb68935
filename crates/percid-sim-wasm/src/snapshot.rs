//! The state of an instance after its start, to which it can be reset.

use percid_sim::policies::{Overhead, Work};
use wasmi::{Global, Instance, Memory, Store, Val};

use crate::exposed::{Exposed, GLOBAL, MEMORY};
use crate::host::Host;

/// The parts of an instance that have state.
pub(crate) struct State {
    memories: Vec<Memory>,
    globals: Vec<Global>,
}

impl State {
    /// Returns the state of an instance of a module; `None` if it cannot be reset.
    pub(crate) fn of(module: &Exposed, instance: &Instance, store: &Store<Host>) -> Option<State> {
        if module.has_hidden_state {
            return None;
        }
        let memory = |index| instance.get_memory(store, &format!("{MEMORY}{index}"));
        let global = |index| instance.get_global(store, &format!("{GLOBAL}{index}"));
        Some(State {
            memories: (0..module.memories).map(memory).collect::<Option<_>>()?,
            globals: module.globals.iter().map(global).collect::<Option<_>>()?,
        })
    }
}

/// The contents of an instance's state.
pub(crate) struct Snapshot {
    memories: Vec<Vec<u8>>,
    globals: Vec<Val>,
    work: Work,
    overhead: Overhead,
}

impl Snapshot {
    pub(crate) fn take(state: &State, store: &Store<Host>) -> Snapshot {
        let Host { work, overhead, .. } = *store.data();
        Snapshot {
            memories: state.memories.iter().map(|memory| memory.data(store).to_vec()).collect(),
            globals: state.globals.iter().map(|global| global.get(store)).collect(),
            work,
            overhead,
        }
    }

    /// Resets an instance of the same module. Returns `false` if it cannot be reset, because its
    /// memory has grown.
    pub(crate) fn restore(&self, state: &State, store: &mut Store<Host>) -> bool {
        for (memory, contents) in state.memories.iter().zip(&self.memories) {
            let memory = memory.data_mut(&mut *store);
            if memory.len() != contents.len() {
                return false;
            }
            memory.copy_from_slice(contents);
        }
        for (global, value) in state.globals.iter().zip(&self.globals) {
            if global.set(&mut *store, value.clone()).is_err() {
                return false;
            }
        }
        store.data_mut().restart(self.work, self.overhead);
        true
    }
}
