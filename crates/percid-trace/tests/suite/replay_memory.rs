//! Memory that a replay takes, counted by the allocator of the tests.

use crate::allocator;

use percid_sim::machine::Machine;
use percid_sim::policies::{ALL, PolicySpec};
use percid_sim::run_control::RunControl;
use percid_trace::event::{Event, IDLE, State, What};
use percid_trace::replay::{Replay, Settings, replay};
use percid_trace::{Origin, Trace};

const PROCESSES: u32 = 300;

/// Processes that exist at once, each of which runs on every CPU.
fn crowd(cpus: u32) -> Trace {
    let mut trace = Trace { origin: Origin::default(), ..Trace::default() };
    let mut time = 0;
    let mut event = |cpu, what| {
        time += 1000;
        trace.events.push(Event { time, cpu, what });
    };
    let processes = 100..100 + PROCESSES;
    processes.clone().for_each(|thread| event(0, What::Member { thread, process: thread }));
    for cpu in 0..cpus {
        for thread in processes.clone() {
            event(cpu, What::Switch { prev: IDLE, state: State(0), next: thread });
            event(cpu, What::Switch { prev: thread, state: State(1), next: IDLE });
        }
    }
    trace
}

/// A replay, and the most bytes that it had allocated at once.
fn measured(
    trace: &Trace,
    machine: &Machine,
    policy: &PolicySpec,
    bytes: usize,
) -> (Replay, usize) {
    let settings = Settings { policy_bytes: bytes, spaces_kept: 0, ..Settings::default() };
    allocator::measured(|| {
        replay(trace, machine, policy, &settings, &RunControl::default()).expect("it fits")
    })
}

#[test]
fn policies_take_no_more_than_they_may_and_the_rest_is_counted() {
    let machine = Machine::preset("epyc-9654").expect("a preset");
    let trace = crowd(machine.topology.cpus());
    let limit = 1 << 20;
    for policy in ALL {
        let (none, without) = measured(&trace, &machine, policy, 0);
        let (some, within) = measured(&trace, &machine, policy, limit);
        let (all, beyond) = measured(&trace, &machine, policy, usize::MAX);
        let taken = within - without;
        println!("{}: {taken} of {limit} bytes, {} refused", policy.name, some.spaces_refused);
        assert!(taken <= limit, "{}: {taken} of {limit} bytes", policy.name);
        assert_eq!(none.spaces_refused, u64::from(PROCESSES));
        assert!(some.spaces_refused > 0 && some.spaces_left_out > 0, "{}", policy.name);
        assert_eq!(some.spaces_refused + some.spaces_left_out, u64::from(PROCESSES));
        assert_eq!((all.spaces_refused, all.spaces_left_out), (0, u64::from(PROCESSES)));
        assert!(beyond > within, "{}: the control", policy.name);
    }
}
