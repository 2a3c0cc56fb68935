//! The engine, step by step, on machines so small that every step can be predicted.

use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

use percid_sim::cost::Class;
use percid_sim::engine::{Outcome, Simulation};
use percid_sim::machine::Machine;
use percid_sim::policies::{self, Id, Impossible, Policy, PolicySpec, Process, Thread, Work};
use percid_sim::topology::Cpu;
use percid_sim::workload::Workload;
use percid_sim::{MS, Ns, SECOND};

thread_local! {
    /// Events that the policy was notified of.
    static TOLD: RefCell<Vec<(Ns, String)>> = const { RefCell::new(Vec::new()) };
}

/// A policy that records its events. IDs are CPU numbers.
struct Scribe;

impl Scribe {
    fn note(process: &Process<'_>, what: String) {
        TOLD.with_borrow_mut(|told| told.push((process.now, what)));
    }
}

impl Policy for Scribe {
    fn switch(
        &mut self,
        process: &Process<'_>,
        cpu: Cpu,
        prev: Option<Thread>,
        next: Option<Thread>,
    ) -> Result<(), Impossible> {
        assert_eq!(process.running[cpu as usize], next);
        let name =
            |thread: Option<Thread>| thread.map_or("-".to_owned(), |thread| thread.to_string());
        Scribe::note(process, format!("cpu {cpu}: {} > {}", name(prev), name(next)));
        Ok(())
    }

    fn migrate(&mut self, process: &Process<'_>, thread: Thread, from: Cpu, to: Cpu) {
        Scribe::note(process, format!("{thread} from {from} to {to}"));
    }

    fn tick(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) {
        Scribe::note(process, format!("tick {cpu} {thread}"));
    }

    fn spawn(&mut self, process: &Process<'_>, thread: Thread) {
        let (users, allowed) = (process.users, process.nr_cpus_allowed);
        Scribe::note(process, format!("spawn {thread} users {users} allowed {allowed}"));
    }

    fn exit(&mut self, process: &Process<'_>, thread: Thread, cpu: Cpu) {
        assert_eq!(process.running[cpu as usize], Some(thread));
        Scribe::note(process, format!("exit {thread} users {}", process.users));
    }

    fn affinity(&mut self, process: &Process<'_>, thread: Thread) {
        let (own, all) = (process.thread_allowed[thread as usize], process.nr_cpus_allowed);
        Scribe::note(process, format!("affinity {thread} {own} of {all}"));
    }

    fn exec(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<(), Impossible> {
        let (users, allowed) = (process.users, process.nr_cpus_allowed);
        Scribe::note(process, format!("exec {thread} on {cpu} users {users} allowed {allowed}"));
        Ok(())
    }

    fn id(&mut self, _: &Process<'_>, cpu: Cpu, _: Thread) -> Result<Id, Impossible> {
        Ok(cpu)
    }

    fn work(&self) -> Work {
        Work { slow_paths: 1, ..Work::default() }
    }
}

static SCRIBE: PolicySpec = PolicySpec {
    name: "scribe",
    about: "writes down what it is told",
    create: &|_| Box::new(Scribe),
};

/// Returns a machine with one socket, one cache and this number of cores, each with this number of
/// hardware threads.
fn machine(cores: u32, threads: u32) -> Machine {
    let preset = include_str!("../../machines/epyc-9654.toml");
    let text = preset
        .replace("sockets = 2", "sockets = 1")
        .replace("l3s_per_socket = 12", "l3s_per_socket = 1")
        .replace("cores_per_l3 = 8", &format!("cores_per_l3 = {cores}"))
        .replace("threads_per_core = 2", &format!("threads_per_core = {threads}"));
    Machine::parse(&text).expect("a machine")
}

fn simulate(machine: &Machine, workload: &str, policy: &'static PolicySpec, seed: u64) -> Outcome {
    let text = format!("name = \"test\"\nabout = \"test\"\n{workload}");
    let workload = Workload::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let program = workload.program(machine).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let simulation = Simulation::new(machine, &program, policy, seed).record_spans(100_000);
    simulation.run(&AtomicBool::new(false)).expect("the policy keeps its contract")
}

fn run(cores: u32, workload: &str) -> Outcome {
    simulate(&machine(cores, 1), workload, policies::find("per-cpu").expect("a policy"), 1)
}

/// Returns the policy's events except ticks, with their times in microseconds.
fn told(cores: u32, workload: &str) -> Vec<String> {
    TOLD.with_borrow_mut(Vec::clear);
    simulate(&machine(cores, 1), workload, &SCRIBE, 1);
    let told = TOLD.with_borrow_mut(std::mem::take);
    let lines = told.into_iter().filter(|(_, what)| !what.starts_with("tick"));
    lines.map(|(at, what)| format!("{} {what}", at / 1000)).collect()
}

/// Returns the text of a group of threads.
fn group(name: &str, count: u32, more: &str, script: &str) -> String {
    format!("[[threads]]\nname = \"{name}\"\ncount = {count}\n{more}\nscript = [{script}]\n")
}

const BUSY: &str = "{ repeat = { steps = [{ burst = {} }, { run = { us = 1000 } }] } }";

#[test]
fn two_threads_on_one_cpu_take_turns_at_ticks_and_lose_no_work() {
    let workload = group("w", 2, "", "{ run = { us = 6000 } }");
    assert_eq!(
        told(1, &workload),
        [
            "0 spawn 0 users 1 allowed 1",
            "0 spawn 1 users 2 allowed 1",
            "0 cpu 0: - > 0",
            "4000 cpu 0: 0 > 1",
            "8000 cpu 0: 1 > 0",
            "10000 exit 0 users 1",
            "10000 cpu 0: 0 > 1",
            "12000 exit 1 users 0",
            "12000 cpu 0: 1 > -",
        ]
    );
}

#[test]
fn a_thread_that_waits_goes_to_the_cpu_that_becomes_idle() {
    let workload = group("short", 1, "", "{ run = { us = 1000 } }")
        + &group("long", 2, "", "{ run = { us = 2500 } }");
    assert_eq!(
        told(2, &workload)[3..],
        [
            "0 cpu 0: - > 0",
            "0 cpu 1: - > 1",
            "1000 exit 0 users 2",
            "1000 cpu 0: 0 > 2",
            "2500 exit 1 users 1",
            "2500 cpu 1: 1 > -",
            "3500 exit 2 users 0",
            "3500 cpu 0: 2 > -",
        ]
    );
}

#[test]
fn a_thread_that_is_pulled_elsewhere_migrates() {
    let one = "pinned = true";
    let workload = group(
        "pinned",
        1,
        one,
        "{ run = { us = 1000 } }, { sleep = { us = 1000 } }, { run = { us = 9000 } }",
    ) + &group(
        "free",
        1,
        "start_ms = 1",
        "{ run = { us = 100 } }, { sleep = { us = 1400 } }, { run = { us = 500 } }",
    );
    let lines = told(2, &workload);
    assert!(lines.contains(&"2500 1 from 0 to 1".to_owned()), "{lines:?}");
    assert!(lines.contains(&"2500 cpu 1: - > 1".to_owned()), "{lines:?}");
}

#[test]
fn pinned_threads_that_wait_hide_nobody_from_an_idle_cpu() {
    // Two pinned threads share CPU 0. Three others compute on CPUs 1 to 3, where a fourth waits.
    // CPU 3 becomes free at 50 ms.
    let pinned = group("pinned", 1, "pinned = true", BUSY);
    let free = group("free", 4, "", BUSY) + &group("brief", 1, "", "{ run = { us = 50000 } }");
    let found = run(4, &format!("duration_ms = 1000\n{pinned}{pinned}{free}"));
    // Seven threads on four CPUs, then six: all four CPUs are always busy.
    assert!(found.scheduling.ticks >= 4 * 249, "{:?}", found.scheduling);
}

#[test]
fn cpus_that_a_process_gets_back_are_used() {
    let acts = "[[affinity_changes]]\nat_ms = 10\nconfine = 1\n[[affinity_changes]]\nat_ms = 20\nconfine = 8\n";
    let found = run(8, &format!("duration_ms = 1000\n{}{acts}", group("w", 8, "", BUSY)));
    // 10 ms on one CPU, the rest on eight.
    assert!(found.scheduling.ticks > 8 * 245, "{:?}", found.scheduling);
}

#[test]
fn turns_cut_no_sleep_short_and_wake_nobody_else() {
    let turn = "{ turn = { after_ms = 1 } }, { burst = {} }, \"end-turn\"";
    let script = format!("{turn}, {{ sleep = {{ us = 1000000 }} }}, {turn}, \"wait\"");
    let found = run(2, &format!("duration_ms = 5000\n{}", group("w", 2, "pinned = true", &script)));
    let mut starts: Vec<Ns> = found.spans.iter().map(|span| span.from / MS).collect();
    starts.sort_unstable();
    assert_eq!(starts, [1, 2, 1002, 1003]);
}

#[test]
fn the_round_goes_on_without_those_who_end_and_with_those_who_come() {
    // Each takes a turn and ends without passing it on; a successor takes its place in the round.
    let turn = "{ turn = { after_ms = 1 } }, { burst = {} }";
    let ends = run(4, &format!("duration_ms = 100\n{}", group("w", 4, "", turn)));
    assert_eq!(ends.bursts(), 4);
    for seed in 1..6 {
        let script = format!("{turn}, \"end-turn\", \"respawn\"");
        let workload = format!("duration_ms = 100\n{}", group("w", 2, "", &script));
        let found = simulate(&machine(2, 1), &workload, &SCRIBE, seed);
        assert!((95..=100).contains(&found.bursts()), "seed {seed}: {}", found.bursts());
    }
}

#[test]
fn a_barrier_opens_for_all_who_live() {
    let burst = "{ burst = {} }";
    // All meet after the slowest one.
    let meet = group(
        "w",
        3,
        "",
        &format!("{{ run = {{ us = 100, spread = \"uniform\" }} }}, \"barrier\", {burst}"),
    );
    let found = run(4, &meet);
    let starts: Vec<Ns> = found.spans.iter().map(|span| span.from).collect();
    assert_eq!(starts.len(), 3);
    assert!(starts.iter().all(|start| *start == starts[0]), "{starts:?}");
    // A child is alone in its group.
    let parent = group("parent", 2, "", &format!("{burst}, {{ fork = {{ group = \"child\" }} }}"));
    let child = group("child", 0, "", &format!("\"barrier\", {burst}"));
    assert_eq!(run(4, &format!("{parent}{child}")).bursts(), 4);
}

/// Threads that spin until the last one comes are running all the time; the policy sees no switch.
#[test]
fn threads_at_a_spin_barrier_keep_their_cpus() {
    let meet = |barrier: &str| {
        let first =
            group("first", 1, "pinned = true", &format!("\"{barrier}\", {{ burst = {{}} }}"));
        let script =
            "{ run = { us = 100 } }, ".to_owned() + &format!("\"{barrier}\", {{ burst = {{}} }}");
        first + &group("w", 3, "pinned = true", &script)
    };
    // Alone in its group, the first one does not wait.
    assert_eq!(run(4, &meet("spin-barrier")).bursts(), 4);
    let late = |barrier: &str| {
        format!(
            "{{ repeat = {{ times = 2, steps = [{{ run = {{ us = 3000, spread = \"uniform\" }} }}, \
             \"{barrier}\", {{ burst = {{}} }}] }} }}"
        )
    };
    let [blocked, spins] = ["barrier", "spin-barrier"]
        .map(|barrier| run(4, &group("w", 4, "pinned = true", &late(barrier))));
    assert_eq!((blocked.bursts(), spins.bursts()), (8, 8));
    let starts = |found: &Outcome| {
        let mut starts: Vec<Ns> = found.spans.iter().map(|span| span.from).collect();
        starts.sort_unstable();
        starts
    };
    let met = starts(&spins);
    assert_eq!(met.len(), 4, "one span each: nobody left its CPU");
    assert!(met.iter().all(|start| *start == met[0]), "{met:?}");
    assert_eq!(spins.scheduling.switches, 8, "in and out");
    assert!(blocked.scheduling.switches > 8, "the control: {:?}", blocked.scheduling);
}

#[test]
fn a_spinning_thread_is_preempted_and_continues_when_it_runs_again() {
    let script = "{ run = { us = 10 } }, \"spin-barrier\", { burst = {} }";
    let found = run(1, &group("w", 3, "", script));
    assert_eq!(found.bursts(), 3);
    assert!(found.elapsed > 2 * 3 * MS, "two spun for a slice: {}", found.elapsed);
}

#[test]
fn sleeps_by_place_come_one_after_the_other_and_are_late_by_their_slack() {
    let starts = |sleep: &str, seed| {
        let script =
            format!("{{ sleep = {{ us = 1000, {sleep} }} }}, {{ burst = {{}} }}, \"wait\"");
        let workload = group("w", 4, "pinned = true", &script);
        let found = simulate(&machine(4, 1), &workload, &SCRIBE, seed);
        let mut starts: Vec<(Ns, Cpu)> =
            found.spans.iter().map(|span| (span.from / 1000, span.cpu)).collect();
        starts.sort_unstable();
        starts
    };
    let at = |sleep: &str| starts(sleep, 1).iter().map(|(at, _)| *at).collect::<Vec<Ns>>();
    assert_eq!(at("by_place = true"), [0, 1000, 2000, 3000]);
    assert_eq!(at("by_place = true, slack_share = 0.01"), [0, 1010, 2020, 3030]);
    assert_eq!(at("slack_share = 0.5"), [1500; 4]);
    let jittered = at("by_place = true, jitter_us = 100");
    assert!(
        jittered
            .iter()
            .zip([0, 1000, 2000, 3000])
            .all(|(at, from)| (from..from + 101).contains(at))
    );
    assert_ne!(jittered, [0, 1000, 2000, 3000]);
    let cpus = |seed| starts("by_place = true", seed).into_iter().map(|(_, cpu)| cpu);
    let orders: std::collections::BTreeSet<Vec<Cpu>> =
        (0..20).map(|seed| cpus(seed).collect()).collect();
    assert!(orders.len() > 5, "shuffled: {orders:?}");
}

#[test]
fn threads_are_users_from_their_start_on() {
    let workload = group("now", 1, "", "{ run = { us = 3000 } }")
        + &group("later", 2, "start_ms = 2", "{ run = { us = 10 } }");
    assert_eq!(
        told(4, &workload),
        [
            "0 spawn 0 users 1 allowed 4",
            "0 cpu 0: - > 0",
            "2000 spawn 1 users 2 allowed 4",
            "2000 spawn 2 users 3 allowed 4",
            "2000 cpu 1: - > 1",
            "2000 cpu 2: - > 2",
            "2010 exit 1 users 2",
            "2010 cpu 1: 1 > -",
            "2010 exit 2 users 1",
            "2010 cpu 2: 2 > -",
            "3000 exit 0 users 0",
            "3000 cpu 0: 0 > -",
        ]
    );
}

#[test]
fn a_new_program_has_one_thread_and_its_affinity_but_what_was_used_counts() {
    let acts = "[[affinity_changes]]\nat_ms = 5\nconfine = 2\n";
    let sleep = "{ burst = {} }, { sleep = { us = 1000000 } }, { burst = {} }";
    let exec = "{ run = { us = 10000 } }, \"exec\", { burst = {} }";
    let workload = format!(
        "duration_ms = 2000\n{}{}{acts}",
        group("others", 3, "", sleep),
        group("first", 1, "", exec)
    );
    let lines = told(4, &workload);
    assert!(lines.contains(&"5000 affinity 0 2 of 4".to_owned()), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.ends_with("users 1 allowed 2") && line.contains("exec 3"))
    );
    let found = run(4, &workload);
    assert_eq!(found.bursts(), 4, "the others ended with the old program");
    assert_eq!(found.ids_distinct, 3);
    assert_eq!(found.memory, 4 * 16384, "three areas of the old program, one of the new");
    assert_eq!(found.classes[Class::FirstTouch as usize].bursts, 4);
}

#[test]
fn what_every_process_did_counts() {
    let parent = group(
        "parent",
        1,
        "",
        "{ repeat = { times = 3, steps = [{ fork = { group = \"child\" } }, { run = { us = 10 } }] } }",
    );
    let child = group("child", 0, "", "{ burst = {} }");
    let found = simulate(&machine(4, 1), &format!("{parent}{child}"), &SCRIBE, 1);
    assert_eq!(found.bursts(), 3);
    assert_eq!(found.memory, 3 * 16384);
    assert!(found.work.slow_paths >= 4, "one for each process: {:?}", found.work);
}

#[test]
fn data_cools_by_the_longest_rest_and_a_core_rests_when_both_siblings_do() {
    let sleep = |us: u32| format!("{{ sleep = {{ us = {us} }} }}");
    let burst = "{ burst = {} }";
    let once = |script: String| run(1, &group("w", 1, "", &script)).classes;
    let rested = once(format!("{burst}, {}, {burst}", sleep(1_000_000)));
    let woken = once(format!(
        "{burst}, {}, {{ run = {{ us = 1 }} }}, {}, {burst}",
        sleep(1_000_000),
        sleep(1)
    ));
    assert_eq!(rested[Class::Own as usize].bursts, 1);
    assert_eq!(rested, woken, "a short rest does not warm what a long one cooled");
    // The sibling keeps the core busy.
    let one = group("w", 1, "pinned = true", &format!("{burst}, {}, {burst}", sleep(1_000_000)));
    let other = "[[threads]]\nname = \"s\"\ncount = \"cpus\"\npinned = true\nscript = [{ run = { us = 2000000 } }]\n";
    let machine = machine(1, 2);
    let per_cpu = policies::find("per-cpu").expect("a policy");
    let found = simulate(&machine, &format!("{one}{other}"), per_cpu, 1);
    assert_eq!(found.classes[Class::Own as usize].bursts, 0, "{:?}", found.classes);
}

#[test]
fn zero_pages_have_a_price_of_their_own() {
    let workload = group("w", 1, "", "{ burst = {} }");
    let copied = run(1, &workload).ns_per_burst();
    let zeroed = run(1, &format!("memory = \"zero-page\"\n{workload}")).ns_per_burst();
    let hot = 300.0;
    assert!(((zeroed - hot) / (copied - hot) - 1.03).abs() < 0.01, "{copied} {zeroed}");
}

#[test]
fn a_container_has_as_many_cpus_as_it_was_given() {
    let acts = "[[affinity_changes]]\nat_ms = 0\nevery_ms = 10\nwander = 3\n";
    let found = run(8, &format!("duration_ms = 100\n{}{acts}", group("w", 8, "", BUSY)));
    for window in 0..10u64 {
        let inside = |at: Ns| at / (10 * MS) == window;
        let spans = found.spans.iter().filter(|span| inside(span.from + MS) && inside(span.from));
        let cpus: std::collections::BTreeSet<Cpu> = spans.map(|span| span.cpu).collect();
        assert!(cpus.len() <= 3, "window {window}: {cpus:?}");
    }
}

#[test]
fn what_never_ends_ends() {
    let act = "[[affinity_changes]]\nat_ms = 1\nevery_ms = 1\nwander = 1\n";
    assert!(
        run(2, &format!("{}{act}", group("w", 1, "", "{ run = { us = 100 } }"))).elapsed < SECOND
    );
    assert!(run(2, &format!("{}{act}", group("w", 1, "", "\"wait\""))).elapsed < SECOND);
    let bomb = group("w", 1, "", "{ fork = { group = \"w\" } }, { run = { us = 1 } }, \"respawn\"");
    assert!(run(1, &format!("duration_ms = 1\n{bomb}")).elapsed <= MS);
}

#[test]
fn scripts_in_which_no_time_passes_are_refused() {
    let refused = |script: &str, expected: &str| {
        let text = format!("name = \"x\"\nabout = \"x\"\n{}", group("w", 1, "", script));
        let workload = Workload::parse(&text).expect("TOML");
        let error = workload.program(&machine(1, 1)).expect_err(script).to_string();
        assert!(error.contains(expected), "{error}");
    };
    let empty = "{ repeat = { times = 0, steps = [{ run = { us = 1 } }] } }";
    refused(&format!("{{ repeat = {{ steps = [{empty}] }} }}"), "takes time");
    refused("\"respawn\"", "takes time before");
    refused(&format!("{empty}, \"respawn\""), "takes time before");
}

#[test]
fn all_processes_together_have_a_million_threads_at_most() {
    let text = format!(
        "name = \"x\"\nabout = \"x\"\nprocesses = 32768\n{}",
        group("w", 1000, "", "\"wait\"")
    );
    let error =
        Workload::parse(&text).expect("TOML").program(&machine(1, 1)).expect_err("too many");
    assert!(error.to_string().contains("at most 1000000 threads"), "{error}");
}

/// With five threads on two CPUs, the first, the third and the fifth run one after another on the
/// first CPU. The others share the second one.
#[test]
fn pinned_threads_go_round_where_there_are_more_than_cpus() {
    let run_each = |count: u32| {
        run(
            2,
            &format!(
                "[[threads]]\nname = \"w\"\ncount = {count}\npinned = true\n\
                 script = [{{ run = {{ us = 1000 }} }}, {{ burst = {{}} }}]"
            ),
        )
    };
    for (threads, in_turn) in [(2, 1), (3, 2), (5, 3)] {
        let outcome = run_each(threads);
        assert_eq!(outcome.bursts(), u64::from(threads));
        let ms = outcome.elapsed / 1_000_000;
        assert_eq!(ms, in_turn, "{threads} threads, {} ns", outcome.elapsed);
    }
    let free = run(
        2,
        "[[threads]]\nname = \"w\"\ncount = 4\nscript = [{ run = { us = 1000 } }, { burst = {} }]",
    );
    assert_eq!((free.bursts(), free.elapsed / 1_000_000), (4, 2));
}

/// A worker on each of two CPUs returns to its memory while others compute there. Their data
/// displaces it; without data of theirs, nothing does.
#[test]
fn overcommitted_cpus_make_areas_cold() {
    let mut machine = machine(2, 1);
    machine.set("background_mb_s", 0.0).expect("a number of machines");
    let cost = |others: f64, kb: f64| {
        let mut workload = Workload::preset("overcommitted").expect("a preset");
        let set = [("others_per_cpu", others), ("others_kb", kb), ("duration_ms", 200.0)];
        for (name, value) in set {
            workload.set(name, value).expect("a parameter");
        }
        let program = workload.program(&machine).expect("a program");
        let policy = policies::find("per-cpu").expect("a policy");
        Simulation::new(&machine, &program, policy, 1)
            .run(&AtomicBool::new(false))
            .expect("the policy keeps its contract")
            .ns_per_burst()
    };
    let hot = machine.costs.hot_ns.value;
    assert!(cost(2.0, 0.0) < 1.05 * hot, "busy, and nothing displaced");
    let [little, much] = [1024.0, 65536.0].map(|kb| cost(2.0, kb));
    assert!(1.02 * hot < little && 2.0 * little < much, "{hot} {little} {much}");
}

/// Two workers that compute at the same time: on two cores, and on the two hardware threads of one
/// core.
#[test]
fn a_busy_sibling_makes_bursts_longer() {
    let workload = group("w", 2, "pinned = true", "{ burst = { times = 10000 } }");
    let policy = policies::find("per-cpu").expect("a policy");
    let [cores, siblings] =
        [(2, 1), (1, 2)].map(|(cores, threads)| machine(cores, threads)).map(|machine| {
            let factor = machine.costs.sibling_factor.value;
            (simulate(&machine, &workload, policy, 1).ns_per_burst(), factor)
        });
    let ratio = siblings.0 / cores.0;
    assert!((ratio / siblings.1 - 1.0).abs() < 0.05, "{ratio}, expected {}", siblings.1);
}
