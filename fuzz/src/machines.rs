//! Machines to read and to simulate on.

use std::sync::OnceLock;

use percid_sim::machine::Machine;
use percid_sim::topology::{Place, Topology};

/// Returns a machine with 16 CPUs: two sockets with two last-level caches each, of two cores of two
/// hardware threads.
pub fn small() -> &'static Machine {
    static SMALL: OnceLock<Machine> = OnceLock::new();
    SMALL.get_or_init(|| {
        let mut machine = Machine::preset("epyc-9654").expect("a preset");
        let place = |cpu: u32| {
            let core = cpu / 2;
            Place { core, l3: core / 2, socket: core / 4, node: core / 4 }
        };
        machine.topology = Topology::new((0..16).map(place).collect());
        machine
    })
}
