//! Threads that wake on other CPUs: effects of these wakes and of the fences of percid's table.

use std::sync::atomic::AtomicBool;

use percid_sim::MS;
use percid_sim::engine::{Outcome, Simulation};
use percid_sim::machine::Machine;
use percid_sim::policies;
use percid_sim::workload::Workload;

/// Wakes mostly within a last-level cache: nearly a third of them on another CPU, one in a thousand
/// beyond the cache.
const MOSTLY_WITHIN_L3: [(&str, f64); 4] =
    [("same_core", 0.02), ("same_l3", 0.3), ("same_socket", 0.001), ("other_socket", 0.0)];
/// The same shares within the cache, and no wakes beyond it.
const WITHIN_L3: [(&str, f64); 4] =
    [("same_core", 0.02), ("same_l3", 0.3), ("same_socket", 0.0), ("other_socket", 0.0)];
const NOWHERE: [(&str, f64); 4] =
    [("same_core", 0.0), ("same_l3", 0.0), ("same_socket", 0.0), ("other_socket", 0.0)];

/// Half of the file's time, which is long enough for three times 100 ms of wandering.
const SHORT: [(&str, f64); 3] = [("wander_ms", 310.0), ("moved_ms", 560.0), ("duration_ms", 600.0)];

/// Simulates the workload `wandering` with these parameters of the workload or numbers of the
/// machine.
fn wander(policy: &str, seed: u64, sets: &[&[(&str, f64)]]) -> Outcome {
    let mut machine = Machine::preset("epyc-9654").expect("a preset");
    let mut workload = Workload::preset("wandering").expect("a preset");
    for (name, value) in sets.iter().copied().flatten() {
        let set = percid_sim::comparison::set(&mut machine, &mut workload, name, *value);
        set.unwrap_or_else(|fault| panic!("{name}: {fault}"));
    }
    let program = workload.program(&machine).expect("a program");
    let policy = policies::find(policy).expect("a policy");
    let simulation = Simulation::new(&machine, &program, policy, seed).record_usage();
    simulation.run(&AtomicBool::new(false)).expect("the policy keeps its contract")
}

#[test]
fn extra_ids_make_slow_paths_rare_and_go_when_it_is_quiet() {
    let mut asked = 0;
    for threads in [8, 64] {
        for shares in [&[][..], &WITHIN_L3, &MOSTLY_WITHIN_L3] {
            for seed in 1..3 {
                let sets = [&SHORT[..], shares, &[("threads", f64::from(threads))]];
                let found = wander("percid-table", seed, &sets);
                let of = format!("{threads} threads, {shares:?}, seed {seed}: {found:?}");
                assert!(found.expense.share() <= 0.01, "{of}");
                assert!(found.usage.samples >= 30, "{of}");
                assert!(found.usage.ids.most <= 2 * found.usage.visited.most, "{of}");
                assert!(found.usage.ids.sum <= 2 * found.usage.visited.sum, "{of}");
                let quiet = found.quiet.expect("wakes stop to go astray");
                assert_eq!(quiet.bound, threads, "{of}");
                assert_eq!(quiet.overdue_ns, 0, "{of}");
                asked += quiet.asked;
            }
        }
    }
    assert!(asked >= 3, "in some runs somebody asks for an ID afterwards: {asked}");
}

/// The control: the values in the test above are not always small.
#[test]
fn without_extra_ids_slow_paths_are_felt() {
    for threads in [8, 64] {
        let sets = [&SHORT[..], &WITHIN_L3, &[("threads", f64::from(threads))]];
        let strict = wander("percid-table-strict", 1, &sets);
        assert!(strict.expense.share() > 0.02, "{:?}", strict.expense);
        assert!(strict.usage.ids.most <= threads, "{:?}", strict.usage);
        let relaxed = wander("percid-table", 1, &sets);
        assert!(relaxed.memory > strict.memory, "which costs memory");
        assert!(relaxed.work.steals < strict.work.steals / 100, "{:?}", relaxed.work);
        // CPU numbers above the bound are still used more than 200 ms after the end of wandering.
        let per_cpu = wander("per-cpu", 1, &sets);
        assert!(per_cpu.quiet.expect("quiet").above_bound_ns > 200 * MS, "CPU numbers stay");
    }
}

#[test]
fn wakes_land_as_far_away_as_is_said() {
    let one = [("threads", 1.0), ("wander_ms", 100.0), ("moved_ms", 150.0), ("duration_ms", 100.0)];
    let spans = |shares: &[(&str, f64)]| {
        let found = wander("per-cpu", 1, &[&one, &NOWHERE, shares]);
        let share = found.scheduling.migrations as f64 / found.scheduling.wakes as f64;
        (found.ids_distinct, share)
    };
    assert_eq!(spans(&[]).0, 1, "one thread on an idle machine stays where it is");
    let (cpus, share) = spans(&[("same_core", 1.0)]);
    assert!(cpus == 2 && share > 0.99, "{cpus} {share}");
    let (cpus, share) = spans(&[("same_l3", 1.0)]);
    assert!(cpus == 16 && share > 0.99, "{cpus} {share}");
    let (cpus, share) = spans(&[("same_socket", 1.0)]);
    assert!((180..=192).contains(&cpus) && share > 0.99, "{cpus} {share}");
    let (cpus, share) = spans(&[("other_socket", 1.0)]);
    assert!((192..=384).contains(&cpus) && share > 0.99, "{cpus} {share}");
    let (_, share) = spans(&[("same_core", 0.1), ("same_l3", 0.2), ("same_socket", 0.05)]);
    assert!((share - 0.35).abs() < 0.03, "{share}");
}

#[test]
fn no_share_is_the_same_as_no_wakes_bit_for_bit() {
    let text = Workload::preset_text("wandering").expect("a preset");
    let (head, rest) = text.split_once("[wakes]").expect("a section");
    let (_, tail) = rest.split_once("[[threads]]").expect("threads");
    let without = Workload::parse(&format!("{head}[[threads]]{tail}")).expect("a workload");
    let machine = Machine::preset("epyc-9654").expect("a preset");
    let program = without.program(&machine).expect("a program");
    let policy = policies::find("linux-6.14").expect("a policy");
    let expected = Simulation::new(&machine, &program, policy, 1).record_usage();
    let expected = expected.run(&AtomicBool::new(false)).expect("the policy keeps its contract");
    let found = wander("linux-6.14", 1, &[&NOWHERE]);
    assert_eq!(found, expected);
    assert_eq!(found.quiet, None, "it is never anything else");
    assert_ne!(wander("linux-6.14", 1, &[&WITHIN_L3]), expected);
}

#[test]
fn whoever_is_interrupted_loses_time() {
    let with =
        |ns: f64| wander("percid-table-strict", 1, &[&SHORT, &WITHIN_L3, &[("interrupt_ns", ns)]]);
    let (none, much) = (with(0.0), with(100_000.0));
    assert!(none.expense.interrupts > 500, "{:?}", none.expense);
    assert_eq!(none.expense.interrupted_ns, 0);
    assert_eq!(much.expense.interrupted_ns, 100_000 * much.expense.interrupts);
    assert!(much.bursts() < none.bursts(), "{} {}", much.bursts(), none.bursts());
    assert!(much.expense.run_ns > none.expense.run_ns, "{:?} {:?}", much.expense, none.expense);
}

#[test]
fn what_costs_nothing_takes_no_time() {
    let free =
        ["slow_path_ns", "fence_idle_ns", "fence_running_ns", "fence_each_ns", "interrupt_ns"];
    let free = free.map(|name| (name, 0.0));
    let found = wander("percid-table-strict", 1, &[&SHORT, &WITHIN_L3, &free]);
    assert_eq!((found.expense.work_ns, found.expense.interrupted_ns), (0, 0));
    assert!(found.expense.interrupts > 500 && found.work.steals > 1000);
    // The kernel's IDs cost only their scans.
    let scans = wander("linux-6.14", 1, &[&SHORT, &WITHIN_L3]);
    assert_eq!(scans.expense.work_ns, scans.work.scans * 384 * 254);
    assert!(scans.work.scans > 0);
    let none = wander("linux-6.14", 1, &[&SHORT, &WITHIN_L3, &[("scan_cpu_ns", 0.0)]]);
    assert_eq!(none.expense.work_ns, 0);
}
