//! CPUs on which a real kernel placed the threads that it woke: the shares of the simulated
//! workload `wandering` are the same.

// On big-endian machines Parquet is not supported.
#![cfg(target_endian = "little")]

use std::path::Path;

use percid_sim::machine::Machine;
use percid_sim::policies::find;
use percid_sim::run_control::RunControl;
use percid_sim::topology::{Place, Topology};
use percid_sim::workload::Workload;
use percid_trace::replay::{Settings, replay};

/// The machine of the recording: 16 CPUs, two to a core, four behind a cache, eight to a node.
fn machine() -> Machine {
    let place = |cpu: u32| Place { core: cpu / 2, l3: cpu / 4, socket: cpu / 8, node: cpu / 8 };
    let mut machine = Machine::preset("epyc-9654").expect("a preset");
    machine.topology = Topology::new((0..16).map(place).collect());
    machine
}

#[test]
fn threads_of_the_workload_wander_as_recorded_ones() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wakes.parquet");
    let trace = percid_trace::read::read(&fixture).expect("a trace");
    assert_eq!(trace.origin.lost, 0);
    let settings = Settings { processes: vec![1], ..Settings::default() };
    let policy = find("per-cpu").expect("a policy");
    let replay = replay(&trace, &machine(), policy, &settings, &RunControl::default());
    let summary = &replay.expect("they fit").spaces[0].summary;
    assert_eq!(summary.threads, 25, "24 that wake, and the one that wakes some of them");
    assert_eq!(summary.turns, 5055);
    let moves = [
        ("same_core", summary.moves.same_core),
        ("same_l3", summary.moves.same_l3),
        ("same_socket", summary.moves.same_node),
        ("other_socket", summary.moves.other_node),
    ];
    let workload = Workload::preset("wandering").expect("a preset");
    for (name, count) in moves {
        let recorded = count as f64 / summary.turns as f64;
        let simulated = workload.parameters[name];
        assert!((recorded - simulated).abs() < 0.0005, "{name}: {recorded} {simulated}");
    }
}
