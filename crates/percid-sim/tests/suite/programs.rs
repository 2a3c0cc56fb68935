//! Several programs on one machine: shared and separate state.

use std::sync::atomic::AtomicBool;

use percid_sim::cost::Class;
use percid_sim::engine::{Outcome, Simulation};
use percid_sim::machine::Machine;
use percid_sim::policies;
use percid_sim::workload::Workload;

fn simulated(workload: &Workload, policy: &str, seed: u64) -> Outcome {
    let machine = Machine::preset("epyc-9654").expect("a preset");
    let program = workload.program(&machine).unwrap_or_else(|fault| panic!("{fault}"));
    let policy = policies::find(policy).expect("a policy");
    Simulation::new(&machine, &program, policy, seed)
        .run(&AtomicBool::new(false))
        .expect("the policy keeps its contract")
}

fn neighbours(set: &[(&str, f64)], policy: &str, seed: u64) -> Outcome {
    let mut workload = Workload::preset("neighbours").expect("a preset");
    for (name, value) in set {
        workload.set(name, *value).expect("a parameter");
    }
    simulated(&workload, policy, seed)
}

/// Returns the cost of the server's bursts beside this number of batch threads, each with this
/// amount of data.
fn server_ns(batch_threads: f64, data_kb: f64, policy: &str) -> f64 {
    let set = [("batch_threads", batch_threads), ("data_kb", data_kb)];
    neighbours(&set, policy, 1).parts[0].ns_per_burst()
}

#[test]
fn a_neighbour_that_goes_through_much_data_makes_the_server_s_areas_cold() {
    for policy in ["per-cpu", "per-thread", "linux-6.14", "linux-6.19", "percid-table"] {
        let alone = server_ns(0.0, 16_384.0, policy);
        let beside = server_ns(4.0, 16_384.0, policy);
        assert!(beside > 1.2 * alone, "{policy}: {alone} alone, {beside} beside it");
        let harmless = server_ns(4.0, 0.0, policy);
        assert!(harmless < alone, "the control, {policy}: {alone} alone, {harmless} without data");
        let more = server_ns(8.0, 16_384.0, policy);
        assert!(more > 1.4 * beside, "{policy}: {beside} beside 4, {more} beside 8");
    }
}

#[test]
fn a_quota_of_one_program_leaves_the_others_alone() {
    let batch = |cpus: f64| {
        let set = [("batch_cpus", cpus), ("duration_ms", 2000.0), ("data_kb", 0.0)];
        let found = neighbours(&set, "per-cpu", 1);
        let used = found.parts[1].expense.run_ns as f64 / found.elapsed as f64;
        (used, found)
    };
    let (free, found) = batch(16.0);
    assert!((7.5..=8.0).contains(&free), "the control: {free}");
    assert_eq!(found.throttling.throttled, 0);
    let (limited, found) = batch(2.0);
    assert!((1.9..2.1).contains(&limited), "{limited}");
    assert_eq!(found.parts[0].throttling.throttled + found.parts[0].throttling.periods, 0);
    assert_eq!(found.parts[1].throttling, found.throttling);
    assert!(found.throttling.throttled > 0);
}

/// Simulates two programs with a worker each, on two CPUs, with additional lines in each program.
fn pair(first: &str, second: &str, script: &str) -> Outcome {
    let worker = format!(
        "[[programs.threads]]\nname = \"worker\"\ncount = 1\npinned = true\nscript = [{script}]\n\
         [[programs.threads]]\nname = \"child\"\ncount = 0\nscript = [{{ burst = {{}} }}, {{ run = {{ us = 9 }} }}]\n"
    );
    let text = format!(
        "name = \"pair\"\nabout = \"two\"\nduration_ms = 200\n\
         [cpus]\nl3s = 1\ncores_per_l3 = 1\n\
         [[programs]]\nname = \"first\"\n{first}\n{worker}\
         [[programs]]\nname = \"second\"\n{second}\n{worker}"
    );
    simulated(&Workload::parse(&text).unwrap_or_else(|fault| panic!("{fault}")), "per-thread", 1)
}

#[test]
fn each_program_has_its_own_memory_and_processes() {
    let twenty = "{ repeat = { times = 20, steps = [{ burst = {} }, { sleep = { us = 100 } }] } }";
    let found = pair("memory = \"pre-faulted\"", "processes = 3", twenty);
    let first_touches = |part: usize| found.parts[part].classes[Class::FirstTouch as usize].bursts;
    assert_eq!(found.parts.iter().map(|part| part.bursts()).collect::<Vec<_>>(), [20, 60]);
    assert_eq!((first_touches(0), first_touches(1)), (0, 3), "one for each process that faults");
    assert_eq!((found.parts[0].memory, found.parts[1].memory), (16_384, 3 * 16_384));
    let swapped = pair("processes = 3", "memory = \"pre-faulted\"", twenty);
    assert_eq!(swapped.parts[0].classes[Class::FirstTouch as usize].bursts, 3, "the control");
    // Pages that appear as zeroes have another price, in their program only.
    let (other, as_is) = (pair("memory = \"zero-page\"", "", twenty), pair("", "", twenty));
    let ns =
        |found: &Outcome, part: usize| found.parts[part].classes[Class::FirstTouch as usize].ns;
    assert_ne!(ns(&other, 0), ns(&as_is, 0));
    assert_eq!(ns(&other, 1), ns(&as_is, 1));
}

#[test]
fn children_belong_to_the_program_of_their_parent() {
    let forks = "{ repeat = { times = 5, steps = [{ fork = { group = \"child\" } }, { run = { us = 50 } }] } }";
    let found = pair("memory = \"zero-page\"", "processes = 2", forks);
    assert_eq!(found.parts.iter().map(|part| part.bursts()).collect::<Vec<_>>(), [5, 10]);
}

#[test]
fn the_whole_is_the_sum_of_the_programs() {
    let found = neighbours(&[("batch_cpus", 3.0)], "percid-table-strict", 5);
    let [server, batch] = &found.parts[..] else { panic!("{} programs", found.parts.len()) };
    assert!(server.bursts() > 1000 && batch.bursts() > 100, "{server:?} {batch:?}");
    assert_eq!(found.bursts(), server.bursts() + batch.bursts());
    let run = server.expense.run_ns + batch.expense.run_ns;
    assert_eq!(found.expense.run_ns, run);
    assert_eq!(found.memory, server.memory + batch.memory);
    assert_eq!(found.ids_distinct, server.ids_distinct.max(batch.ids_distinct));
    assert_eq!(found.work.steals, server.work.steals + batch.work.steals);
    assert!(server.expense.run_ns > 0 && batch.expense.run_ns > server.expense.run_ns);
}

#[test]
fn two_equal_programs_are_as_two_processes_of_one() {
    let steps =
        "{ repeat = { steps = [{ burst = {} }, { run = { us = 70, spread = \"uniform\" } }] } }";
    let text = |processes: u32| {
        format!(
            "name = \"one\"\nabout = \"one program\"\nduration_ms = 200\nprocesses = {processes}\n\
             [cpus]\nl3s = 1\ncores_per_l3 = 1\n\
             [[threads]]\nname = \"worker\"\ncount = 1\npinned = true\nscript = [{steps}]\n\
             [[threads]]\nname = \"child\"\ncount = 0\nscript = [\"wait\"]\n"
        )
    };
    let one = |processes| {
        let workload = Workload::parse(&text(processes)).expect("a workload");
        simulated(&workload, "per-thread", 1)
    };
    let (both, one_of_two, single) = (pair("", "", steps), one(2), one(1));
    assert_eq!(both.classes, one_of_two.classes);
    assert_eq!((both.expense, both.scheduling), (one_of_two.expense, one_of_two.scheduling));
    assert_ne!(both.classes, single.classes, "the control");
}
