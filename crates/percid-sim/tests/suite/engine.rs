//! The engine from outside: effects of programs on CPUs and IDs.

use std::sync::atomic::AtomicBool;

use percid_sim::cost::Class;
use percid_sim::engine::{Outcome, Simulation};
use percid_sim::machine::Machine;
use percid_sim::policies;
use percid_sim::workload::{Memory, Workload};

fn machine() -> Machine {
    Machine::preset("epyc-9654").expect("a preset")
}

fn run(mut workload: Workload, set: &[(&str, f64)], policy: &str, seed: u64) -> Outcome {
    let machine = machine();
    for (name, value) in set {
        workload.set(name, *value).expect("a parameter");
    }
    let program = workload.program(&machine).expect("a program");
    let policy = policies::find(policy).expect("a policy");
    Simulation::new(&machine, &program, policy, seed)
        .record_spans(10_000)
        .run(&AtomicBool::new(false))
        .expect("the policy keeps its contract")
}

fn preset(name: &str, set: &[(&str, f64)], policy: &str, seed: u64) -> Outcome {
    run(Workload::preset(name).expect("a preset"), set, policy, seed)
}

#[test]
fn the_same_seed_gives_the_same_result_and_another_one_another() {
    for workload in Workload::presets() {
        let set: &[(&str, f64)] = match workload {
            "intermittent" => &[("delay_ms", 10.0)],
            _ => &[("duration_ms", 50.0)],
        };
        let once = preset(workload, set, "per-thread", 7);
        assert!(once.scheduling.events() > 1000, "{workload}: {:?}", once.scheduling);
        assert_eq!(once, preset(workload, set, "per-thread", 7), "{workload}");
        assert_ne!(once, preset(workload, set, "per-thread", 8), "{workload}");
    }
}

#[test]
fn pinned_threads_stay_and_come_back_to_their_own_memory() {
    let set = [("delay_ms", 10.0), ("l3s", 2.0), ("threads_per_core", 1.0)];
    let found = preset("intermittent", &set, "per-cpu", 1);
    assert_eq!(found.bursts(), 16 * 5);
    assert_eq!(found.classes[Class::Hot as usize].bursts, 16);
    assert_eq!(found.classes[Class::Own as usize].bursts, 16 * 4);
    assert!(found.scheduling.migrations <= 1, "but for the main thread, which gives way");
    assert_eq!(found.ids_distinct, 16);
}

#[test]
fn turns_are_taken_one_after_the_other() {
    let found = preset("intermittent", &[("l3s", 1.0)], "per-cpu", 3);
    let mut spans = found.spans;
    spans.sort_by_key(|span| span.from);
    assert!(spans.windows(2).all(|pair| pair[0].to <= pair[1].from));
    assert!(spans.len() >= 16 * 5);
}

#[test]
fn the_example_by_source_has_as_many_bursts_as_the_benchmark_without_turns() {
    let text = include_str!("../../examples/intermittent-by-source.toml");
    let set = [("delay_ms", 10.0), ("l3s", 1.0), ("threads_per_core", 1.0)];
    let example = || Workload::parse(text).expect("a workload");
    let found = run(example(), &set, "linux-6.4", 1);
    assert_eq!(found.bursts(), preset("intermittent", &set, "linux-6.4", 1).bursts());
    assert_eq!(found.bursts(), 8 * 5);
    // The last of 8 threads begins after 7 pauses and sleeps four times for 8.
    let expected = (7 + 4 * 8) * 10_000_000;
    assert!((expected..expected + 50_000_000).contains(&found.elapsed), "{}", found.elapsed);
    // The control: if no timer waits for its place, all threads end at about the same time.
    let text = text.replace("by_place = true", "by_place = false");
    let together = run(Workload::parse(&text).expect("a workload"), &set, "linux-6.4", 1);
    assert!(together.elapsed < expected, "{}", together.elapsed);
}

#[test]
fn more_threads_than_cpus_take_turns_and_all_cpus_are_busy() {
    let text = r#"
name = "busy"
about = "two threads per CPU"
duration_ms = 100
[[threads]]
name = "w"
count = "2 * cpus"
script = [{ repeat = { steps = [{ run = { us = 1000000 } }] } }]
"#;
    let found = run(Workload::parse(text).expect("a workload"), &[], "per-cpu", 1);
    // 25 ticks in 100 ms on each of 384 CPUs, the last one at the very end.
    assert!((384 * 24..=384 * 25).contains(&found.scheduling.ticks), "{:?}", found.scheduling);
    // A slice of 3 ms ends at the next tick.
    assert!(found.scheduling.switches >= 384 * 23, "{:?}", found.scheduling);
}

#[test]
fn a_confined_program_uses_the_cpus_it_is_left_with() {
    let found = preset("shrink", &[("duration_ms", 100.0), ("shrink_ms", 50.0)], "per-cpu", 1);
    let late: Vec<u32> =
        found.spans.iter().filter(|span| span.from > 50_000_000).map(|span| span.cpu).collect();
    assert!(late.iter().all(|cpu| *cpu < 8), "{late:?}");
    assert!(found.spans.iter().any(|span| span.cpu >= 8));
}

#[test]
fn a_wandering_container_sees_many_cpus_but_few_at_a_time() {
    let found = preset("container", &[("duration_ms", 500.0)], "per-cpu", 5);
    assert!(found.ids_distinct > 16, "{}", found.ids_distinct);
    assert!(found.scheduling.migrations > 16);
}

#[test]
fn dead_threads_make_room() {
    let found = preset("churn", &[("duration_ms", 200.0)], "per-thread", 1);
    assert!(found.ids_bound <= 64, "32 threads, and each one's successor: {}", found.ids_bound);
    assert!(found.work.slow_paths > 500, "threads came and went: {:?}", found.work);
}

#[test]
fn children_and_programs_start_fresh() {
    let found = preset("fork-exec", &[("duration_ms", 50.0)], "per-thread", 1);
    assert!(found.classes[Class::FirstTouch as usize].bursts > 200, "{:?}", found.classes);
    assert!(found.ids_bound <= 16, "the server has 16 threads, a child has one");
}

#[test]
fn memory_written_beforehand_is_never_touched_first() {
    let mut workload = Workload::preset("intermittent").expect("a preset");
    workload.memory = Memory::PreFaulted;
    let found = run(workload.clone(), &[("l3s", 2.0)], "per-cpu", 1);
    assert_eq!(found.classes[Class::FirstTouch as usize].bursts, 0);
    assert_eq!(found.classes[Class::Hot as usize].bursts, 32);
    workload.memory = Memory::CopyOnWrite;
    let fresh = run(workload, &[("l3s", 2.0), ("warmup", 1.0)], "per-cpu", 1);
    assert_eq!(fresh.classes[Class::FirstTouch as usize].bursts, 0, "the warm-up came first");
}

#[test]
fn a_stopped_simulation_ends() {
    let workload = Workload::preset("thread-pool").expect("a preset");
    let machine = machine();
    let program = workload.program(&machine).expect("a program");
    let policy = policies::find("per-cpu").expect("a policy");
    let stopped = Simulation::new(&machine, &program, policy, 1)
        .run(&AtomicBool::new(true))
        .expect("the policy keeps its contract");
    assert!(stopped.elapsed < 1_000_000_000);
}
