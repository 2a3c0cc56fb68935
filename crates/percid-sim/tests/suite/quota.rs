//! CPU quotas, as in `cpu.max` of cgroup v2.

use std::sync::atomic::AtomicBool;

use percid_sim::engine::{Outcome, Simulation};
use percid_sim::machine::Machine;
use percid_sim::policies;
use percid_sim::workload::Workload;

/// Simulates threads that repeat `steps` on eight CPUs of one cache; `more` comes before the
/// threads.
fn run(more: &str, threads: u32, steps: &str, policy: &str) -> Outcome {
    let text = format!(
        "name = \"limited\"\nabout = \"a quota\"\nduration_ms = 2000\n{more}\n\
         [cpus]\nl3s = 1\nthreads_per_core = 1\n\
         [[threads]]\nname = \"worker\"\ncount = {threads}\n\
         script = [{{ repeat = {{ steps = [{steps}] }} }}]\n"
    );
    let machine = Machine::preset("epyc-9654").expect("a preset");
    let workload = Workload::parse(&text).unwrap_or_else(|fault| panic!("{fault}"));
    let program = workload.program(&machine).unwrap_or_else(|fault| panic!("{fault}"));
    let policy = policies::find(policy).expect("a policy");
    Simulation::new(&machine, &program, policy, 1)
        .record_spans(1_000_000)
        .run(&AtomicBool::new(false))
        .expect("the policy keeps its contract")
}

fn quota(max_us: u32, period_us: u32) -> String {
    format!("[quota]\nmax_us = {max_us}\nperiod_us = {period_us}")
}

const BUSY: &str = "{ run = { us = 200 } }, { burst = {} }";

/// Returns the run time relative to one CPU.
fn cpus_used(found: &Outcome) -> f64 {
    found.expense.run_ns as f64 / found.elapsed as f64
}

#[test]
fn four_busy_threads_with_one_cpu_s_worth_run_a_quarter_of_the_time() {
    let free = run("", 4, BUSY, "per-cpu");
    assert!(cpus_used(&free) > 3.99, "the control: {}", cpus_used(&free));
    assert_eq!(free.throttling.throttled, 0);
    for (max, period) in [(100_000, 100_000), (20_000, 20_000), (500_000, 500_000)] {
        let found = run(&quota(max, period), 4, BUSY, "per-cpu");
        let used = cpus_used(&found);
        // A period pays for the overrun at the last tick of the previous one; nothing pays for the
        // last period's overrun.
        assert!((0.98..1.02).contains(&used), "{max} of {period}: {used}");
        let expected = 2_000_000 / u64::from(period);
        let periods = found.throttling.periods;
        assert!((expected - 1..=expected).contains(&periods), "{periods} periods of {expected}");
        assert!(found.throttling.throttled >= 3 * (expected - 1), "{:?}", found.throttling);
        // Four CPUs, each throttled for three quarters of the time.
        let throttled = found.throttling.throttled_ns as f64 / found.elapsed as f64;
        assert!((2.7..3.1).contains(&throttled), "{throttled}");
    }
}

#[test]
fn more_quota_is_more_time_and_more_than_is_wanted_changes_nothing() {
    let used = |max| cpus_used(&run(&quota(max, 100_000), 4, BUSY, "per-cpu"));
    let (half, two, three) = (used(50_000), used(200_000), used(300_000));
    assert!((0.48..0.52).contains(&half), "{half}");
    assert!((1.96..2.04).contains(&two), "{two}");
    assert!((2.94..3.06).contains(&three), "{three}");
    let free = run("", 4, BUSY, "per-cpu");
    let ample = run(&quota(1_000_000, 100_000), 4, BUSY, "per-cpu");
    assert_eq!(ample.throttling.throttled, 0);
    assert_eq!((ample.expense, ample.scheduling), (free.expense, free.scheduling));
}

#[test]
fn threads_that_sleep_stay_below_their_quota_and_are_not_throttled() {
    // Eight threads, each on a CPU for a tenth of the time.
    let steps = "{ run = { us = 100 } }, { burst = {} }, { sleep = { us = 900 } }";
    let found = run(&quota(100_000, 100_000), 8, steps, "per-cpu");
    assert!((0.7..0.9).contains(&cpus_used(&found)), "{}", cpus_used(&found));
    assert_eq!(found.throttling.throttled, 0, "what CPUs do not use they give back");
    let tight = run(&quota(40_000, 100_000), 8, steps, "per-cpu");
    assert!((0.38..0.42).contains(&cpus_used(&tight)), "the control: {}", cpus_used(&tight));
}

#[test]
fn a_throttled_cpu_runs_the_other_process() {
    // Two processes with less than half a CPU each, pinned to the same CPU.
    let pinned = |processes: u32, quota: &str| {
        let text = format!(
            "name = \"pair\"\nabout = \"one CPU\"\nduration_ms = 1000\nprocesses = {processes}\n\
             {quota}\n[cpus]\nl3s = 1\ncores_per_l3 = 1\nthreads_per_core = 1\n\
             [[threads]]\nname = \"worker\"\ncount = 1\npinned = true\n\
             script = [{{ repeat = {{ steps = [{BUSY}] }} }}]\n"
        );
        let machine = Machine::preset("epyc-9654").expect("a preset");
        let workload = Workload::parse(&text).expect("a workload");
        let program = workload.program(&machine).expect("a program");
        let policy = policies::find("per-thread").expect("a policy");
        Simulation::new(&machine, &program, policy, 1)
            .run(&AtomicBool::new(false))
            .expect("the policy keeps its contract")
    };
    let half = quota(40_000, 100_000);
    let (one, two) = (cpus_used(&pinned(1, &half)), cpus_used(&pinned(2, &half)));
    assert!((0.38..0.42).contains(&one), "{one}");
    assert!((0.77..0.83).contains(&two), "{two}");
    assert!(cpus_used(&pinned(2, "")) > 0.99, "the control");
}

#[test]
fn ids_of_cpus_that_stay_throttled_expire() {
    // 1 ms of a second is not enough for the overrun of all CPUs. So some stay throttled while
    // others run again, and a tick there finds IDs that were not used for 100 ms.
    let starved = run(&quota(1_000, 1_000_000), 4, BUSY, "linux-6.4");
    assert!(starved.work.expired > 0, "{:?}", starved.work);
    let free = run("", 4, BUSY, "linux-6.4");
    assert_eq!(free.work.expired, 0, "the control: IDs in use stay");
    // All stop for 990 ms and resume together: each has its ID again before the next tick.
    let together = run(&quota(40_000, 1_000_000), 4, BUSY, "linux-6.4");
    assert!(together.throttling.throttled_ns > 3_000_000_000, "{:?}", together.throttling);
    assert_eq!(together.work.expired, 0, "{:?}", together.work);
}

#[test]
fn ended_and_confined_threads_leave_their_throttled_cpus() {
    let text = format!(
        "name = \"ends\"\nabout = \"all end\"\n{}\n[cpus]\nl3s = 1\n\
         [[threads]]\nname = \"worker\"\ncount = 20\n\
         script = [{{ repeat = {{ times = 50, steps = [{BUSY}, {{ sleep = {{ us = 300, spread = \"exponential\" }} }}] }} }}]\n\
         [[affinity_changes]]\nat_ms = 30\nevery_ms = 7\nwander = 3\n",
        quota(30_000, 100_000)
    );
    let machine = Machine::preset("epyc-9654").expect("a preset");
    let workload = Workload::parse(&text).expect("a workload");
    let program = workload.program(&machine).expect("a program");
    for policy in policies::ALL {
        let found = Simulation::new(&machine, &program, policy, 3)
            .run(&AtomicBool::new(false))
            .expect("the policy keeps its contract");
        assert_eq!(found.bursts(), 20 * 50, "{}: every thread came to its end", policy.name);
        assert!(found.throttling.throttled > 0, "{}", policy.name);
    }
}
