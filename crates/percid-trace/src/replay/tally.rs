//! The figures of a policy for one address space.

use percid_sim::Ns;
use percid_sim::policies::{Id, Work};
use percid_sim::topology::{Cpu, Topology};
use serde::Serialize;

use super::space::Moves;

/// The figures of a policy for one address space.
///
/// A thread *acquires* an ID when its turn on a CPU begins, and when a timer tick finds that its ID
/// is another one by now.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Different IDs that were used: the number of copies of the data.
    pub ids_used: u32,
    /// The largest ID, plus one: the length of a table that is indexed by it.
    pub ids_bound: u32,
    /// Acquisitions, by where the ID was used last.
    pub acquisitions: Acquisitions,
    /// The work that the policy did for it.
    pub work: Work,
    /// Memory of all copies, in bytes, with one area for each.
    pub memory_bytes: u64,
    /// Modelled cost of the first burst on its area after every acquisition, by the machine's
    /// prices, all together, in nanoseconds.
    pub burst_ns: Ns,
}

/// Acquisitions of IDs, by where the same ID was used before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Acquisitions {
    /// Never: the area is touched for the first time.
    pub first: u64,
    /// On the same CPU.
    pub same_cpu: u64,
    /// Elsewhere: the area moves.
    pub moved: Moves,
}

impl Acquisitions {
    /// All of them.
    pub fn all(&self) -> u64 {
        self.first + self.same_cpu + self.moved.all()
    }

    /// The share of those that found the ID where it was used before, at least as near as the core,
    /// the cache and the node: `[CPU, core, L3, node]`, each from 0 to 1, of all that were not the
    /// first. 1 if there is none.
    pub fn shares(&self) -> [f64; 4] {
        let again = self.all() - self.first;
        if again == 0 {
            return [1.0; 4];
        }
        let core = self.same_cpu + self.moved.same_core;
        let l3 = core + self.moved.same_l3;
        let node = l3 + self.moved.same_node;
        [self.same_cpu, core, l3, node].map(|count| count as f64 / again as f64)
    }
}

/// The last use of an ID: the CPU, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastUse {
    /// On which CPU.
    pub cpu: Cpu,
    /// Time, in nanoseconds since the first event.
    pub at: Ns,
}

impl Tally {
    /// Counts an acquisition of `id` on `cpu`.
    pub(super) fn acquire(&mut self, topology: &Topology, id: Id, cpu: Cpu, last: Option<LastUse>) {
        self.ids_bound = self.ids_bound.max(id + 1);
        match last {
            None => {
                self.ids_used += 1;
                self.acquisitions.first += 1;
            }
            Some(last) if last.cpu == cpu => self.acquisitions.same_cpu += 1,
            Some(last) => self.acquisitions.moved.count(topology, last.cpu, cpu),
        }
    }
}
