//! Outcomes that a faster engine must not change, bit for bit: every workload with every policy.
//!
//! `tests/outcomes.txt` has a hash of each. After an intended change of the model, write it again:
//! `PERCID_WRITE_OUTCOMES=1 cargo test -p percid-sim outcomes::`.

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use percid_sim::engine::{Outcome, Simulation};
use percid_sim::machine::Machine;
use percid_sim::policies;
use percid_sim::workload::Workload;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/outcomes.txt");

/// More threads than CPUs that fork, end, meet, take turns, are confined and wake elsewhere. It
/// combines the steps of the simulator's own workloads.
const ALL_AT_ONCE: &str = r#"
name = "all-at-once"
about = "every kind of step, on too few CPUs"
duration_ms = 120
processes = 2
[parameters]
wake = 0.1
[wakes]
same_core = "wake"
same_l3 = "wake"
same_socket = "wake"
other_socket = "wake"
until_ms = 60
[[threads]]
name = "busy"
count = "cpus"
script = [{ repeat = { steps = [{ burst = {} }, { run = { us = 700, spread = "exponential" } }] } }]
[[threads]]
name = "pinned"
count = "cpus"
pinned = true
start_ms = 3
script = [{ repeat = { steps = [{ burst = { times = 3 } }, { sleep = { us = 900, spread = "uniform" } }] } }]
[[threads]]
name = "meets"
count = 7
script = [{ repeat = { steps = [
    "barrier",
    { turn = { after_ms = 0.2, jitter_us = 50 } },
    { burst = {} },
    "end-turn",
    { run = { us = 80 } },
] } }]
[[threads]]
name = "forks"
count = 5
start_ms = 20
script = [{ repeat = { times = 9, steps = [
    { run = { us = 300, spread = "uniform" } }, { fork = { group = "child" } }, { sleep = { us = 2000 } },
] } }, "respawn"]
[[threads]]
name = "child"
count = 0
script = [{ burst = {} }, { run = { us = 40 } }, "exec", { burst = { timed = false } }, { run = { us = 500 } }]
[[affinity_changes]]
at_ms = 15
every_ms = 11
wander = "0.5 * cpus"
[[affinity_changes]]
at_ms = 97
confine = 5
"#;

/// Machine, workload and parameters, as on the command line.
type Case = (&'static str, &'static str, &'static [(&'static str, f64)]);

const CASES: [Case; 13] = [
    ("epyc-9654", "intermittent", &[("delay_ms", 10.0), ("l3s", 4.0)]),
    ("epyc-9654", "intermittent", &[("delay_ms", 200.0), ("threads_per_core", 1.0)]),
    ("epyc-9654", "thread-pool", &[("duration_ms", 150.0), ("threads", 600.0)]),
    ("cascade-lake", "thread-pool", &[("duration_ms", 300.0)]),
    ("epyc-9654", "container", &[("duration_ms", 500.0)]),
    ("ivy-bridge-ex", "churn", &[("duration_ms", 300.0), ("threads", 200.0)]),
    ("epyc-9654", "shrink", &[("duration_ms", 200.0), ("shrink_ms", 100.0), ("threads", 300.0)]),
    ("epyc-9654", "oversubscribed", &[("duration_ms", 120.0)]),
    ("cascade-lake", "oversubscribed", &[("duration_ms", 120.0), ("threads_per_cpu", 5.0)]),
    ("epyc-9654", "fork-exec", &[("duration_ms", 60.0)]),
    ("epyc-9654", "wandering", &[("duration_ms", 100.0), ("wander_ms", 60.0), ("moved_ms", 90.0)]),
    ("cascade-lake", "all-at-once", &[]),
    ("epyc-9654", "all-at-once", &[("wake", 0.2)]),
];

const SEEDS: [u64; 2] = [1, 77];

fn outcome(
    machine: &str,
    workload: &str,
    set: &[(&str, f64)],
    policy: &policies::PolicySpec,
    seed: u64,
) -> Outcome {
    let machine = Machine::preset(machine).expect("a preset");
    let own = || Workload::parse(ALL_AT_ONCE).expect("a workload");
    let mut workload = Workload::preset(workload).unwrap_or_else(own);
    for (name, value) in set {
        workload.set(name, *value).expect("a parameter");
    }
    let program = workload.program(&machine).expect("a program");
    let policy = policies::find(policy.name).expect("a policy");
    Simulation::new(&machine, &program, policy, seed)
        .record_spans(100_000)
        .record_usage()
        .run(&AtomicBool::new(false))
        .expect("the policy keeps its contract")
}

/// Returns the hash of an outcome's values: FNV-1a of Fowler, Noll and Vo.
fn hash(outcome: &Outcome) -> u64 {
    let costs = (outcome.classes, outcome.expense, outcome.elapsed);
    let ids = (outcome.ids_distinct, outcome.ids_bound, outcome.memory, outcome.work);
    let course = (outcome.scheduling, outcome.usage, outcome.quiet, &outcome.spans);
    let text = format!("{costs:?} {ids:?} {course:?}");
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns one line for each case, policy and seed.
fn all() -> String {
    let mut lines = String::new();
    for (machine, workload, set) in CASES {
        for policy in policies::ALL {
            for seed in SEEDS {
                let outcome = outcome(machine, workload, set, policy, seed);
                let events = outcome.scheduling.events();
                let hash = hash(&outcome);
                let set: Vec<String> =
                    set.iter().map(|(name, value)| format!("{name}={value}")).collect();
                let case = format!("{machine} {workload} {}", set.join(","));
                writeln!(lines, "{case} {} {seed} {events} {hash:016x}", policy.name)
                    .expect("a string");
            }
        }
    }
    lines
}

#[test]
fn outcomes_are_what_they_were() {
    let found = all();
    if std::env::var_os("PERCID_WRITE_OUTCOMES").is_some() {
        std::fs::write(FILE, &found).expect("the file can be written");
    }
    let known = std::fs::read_to_string(FILE).expect("the file of outcomes");
    let changed: Vec<(&str, &str)> =
        known.lines().zip(found.lines()).filter(|(known, found)| known != found).collect();
    assert!(
        changed.is_empty() && known.lines().count() == found.lines().count(),
        "{} of {} changed, the first ones are {:#?}; if the model was changed on purpose, see the \
         head of this file",
        changed.len(),
        known.lines().count(),
        &changed[..changed.len().min(3)]
    );
}

/// The control: the hash covers the values that a reordering of two events could change.
#[test]
fn a_hash_tells_outcomes_apart_that_differ_in_one_number() {
    let (machine, workload, set) = CASES[7];
    let outcome = outcome(machine, workload, set, &policies::ALL[3], 1);
    let before = hash(&outcome);
    let mut changed = outcome.clone();
    changed.scheduling.migrations += 1;
    assert_ne!(hash(&changed), before);
    let mut changed = outcome;
    let last = changed.spans.len() - 1;
    changed.spans[last].from ^= 1;
    assert_ne!(hash(&changed), before);
}
