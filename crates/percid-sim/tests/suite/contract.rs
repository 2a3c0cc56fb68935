//! Policies that break their contract in one way each, in the engine and in random schedules.

use std::sync::atomic::AtomicBool;

use percid_sim::comparison::{Comparison, Failure};
use percid_sim::contract::{Breach, Finding, Search, check};
use percid_sim::engine::{Outcome, Simulation};
use percid_sim::machine::Machine;
use percid_sim::policies::{
    self, Id, Impossible, Overhead, Policy, PolicySpec, Process, Thread, Work,
};
use percid_sim::run_control::RunControl;
use percid_sim::topology::Cpu;
use percid_sim::workload::Workload;

/// The way in which a [`Faulty`] policy differs from CPU numbers as IDs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// None.
    Nothing,
    /// Two CPUs have one ID.
    Halves,
    /// Two CPUs have one ID beyond the first word of a set of IDs.
    HalvesAbove64,
    /// The ID is above the bound.
    Large,
    /// The largest number is an ID.
    Largest,
    /// Every use has another ID, which no other thread has.
    Drifts,
    /// The ID changes at a tick.
    DriftsAtTick,
    /// An ID is taken from a running thread.
    Steals,
    /// The same, but with a fence of the CPU that had the ID.
    StealsWithFence,
    /// The same, but with a fence of another CPU.
    StealsWithWrongFence,
    /// The same, but with a fence of all CPUs.
    StealsWithFences,
    /// The policy fences a CPU that is not there.
    FencesNobody,
    /// The policy reports that it fenced all CPUs four billion times.
    FencesForEver,
    /// There is no ID.
    Refuses,
    /// The switch fails.
    RefusesSwitch,
    /// The replacement of the program fails.
    RefusesExec,
    /// The tick fails, which no result tells.
    FailsAtTick,
}

struct Faulty {
    fault: Fault,
    uses: u32,
    ticks: u32,
    overhead: Overhead,
    failure: Option<String>,
}

impl Faulty {
    fn boxed(fault: Fault) -> Box<dyn Policy> {
        let overhead = Overhead::default();
        Box::new(Faulty { fault, uses: 0, ticks: 0, overhead, failure: None })
    }
}

impl Policy for Faulty {
    fn switch(
        &mut self,
        _: &Process<'_>,
        _: Cpu,
        _: Option<Thread>,
        _: Option<Thread>,
    ) -> Result<(), Impossible> {
        match self.fault {
            Fault::RefusesSwitch => Err(Impossible("no switch")),
            _ => Ok(()),
        }
    }

    fn tick(&mut self, _: &Process<'_>, _: Cpu, _: Thread) {
        self.ticks += 1;
        if self.fault == Fault::FailsAtTick {
            self.failure = Some("the tick has failed".to_owned());
        }
    }

    fn exec(&mut self, _: &Process<'_>, _: Cpu, _: Thread) -> Result<(), Impossible> {
        match self.fault {
            Fault::RefusesExec => Err(Impossible("no other program")),
            _ => Ok(()),
        }
    }

    fn id(&mut self, process: &Process<'_>, cpu: Cpu, _: Thread) -> Result<Id, Impossible> {
        self.uses += 1;
        let cpus = process.topology.cpus();
        match self.fault {
            Fault::Halves => return Ok(cpu / 2),
            Fault::HalvesAbove64 => return Ok(if cpu > 64 { cpu & !1 } else { cpu }),
            Fault::Large => return Ok(cpu + 100_000),
            Fault::Largest => return Ok(Id::MAX),
            Fault::Drifts => return Ok((cpu + self.uses) % cpus),
            Fault::DriftsAtTick => return Ok((cpu + self.ticks % 7) % cpus),
            Fault::Steals => return Ok(0),
            Fault::StealsWithWrongFence => {
                self.overhead.fenced = Some(cpu);
                return Ok(0);
            }
            Fault::StealsWithFence => {
                let holders = (0..cpus).filter(|&other| process.running[other as usize].is_some());
                self.overhead.fenced = holders.min_by_key(|&other| (other == cpu, other));
                return Ok(0);
            }
            Fault::StealsWithFences => {
                self.overhead.fenced_all = 1;
                return Ok(0);
            }
            Fault::FencesNobody => self.overhead.fenced = Some(cpus),
            Fault::FencesForEver => self.overhead.fenced_all = u32::MAX,
            Fault::Refuses => return Err(Impossible("no ID for anybody")),
            Fault::Nothing | Fault::RefusesSwitch | Fault::RefusesExec | Fault::FailsAtTick => {}
        }
        Ok(cpu)
    }

    fn work(&self) -> Work {
        Work::default()
    }

    fn take_overhead(&mut self) -> Overhead {
        std::mem::take(&mut self.overhead)
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}

macro_rules! faulty {
    ($name:literal, $fault:ident) => {
        &PolicySpec { name: $name, about: "", create: &|_| Faulty::boxed(Fault::$fault) }
    };
}

/// Each faulty policy, part of the message, and the largest number of steps that show the fault.
const BROKEN: [(&PolicySpec, &str, usize); 13] = [
    (faulty!("halves", Halves), "gets ID 0, which thread 0 has on CPU 0", 5),
    (faulty!("halves-above-64", HalvesAbove64), "gets ID 64, which thread 0 has on CPU 64", 5),
    (faulty!("large", Large), "gets ID 100000; expected an ID below 1", 2),
    (faulty!("largest", Largest), "gets ID 4294967295; expected an ID below 1", 2),
    (faulty!("drifts", Drifts), "gets ID 0 after ID 1; expected ID 1", 3),
    (faulty!("drifts-at-tick", DriftsAtTick), "gets ID 1 after ID 0; expected ID 0", 4),
    (faulty!("steals", Steals), "gets ID 0, which thread", 5),
    (faulty!("wrong-fence", StealsWithWrongFence), "gets ID 0, which thread", 5),
    (faulty!("fences-nobody", FencesNobody), "a fence of CPU 1; expected a CPU below 1", 2),
    (faulty!("fences-for-ever", FencesForEver), "expected at most 65536 of each", 2),
    (faulty!("refuses", Refuses), "no ID for anybody, for thread 0 on CPU 0", 2),
    (faulty!("refuses-switch", RefusesSwitch), "no switch, for thread 0 on CPU 0", 1),
    (faulty!("fails-at-tick", FailsAtTick), "the tick has failed", 2),
];

const REFUSES_EXEC: &PolicySpec = faulty!("refuses-exec", RefusesExec);
const KEPT: [&PolicySpec; 2] = [faulty!("nothing", Nothing), faulty!("fences", StealsWithFences)];

fn search(entry: &PolicySpec, runs: u64) -> Option<Finding> {
    check(entry, Search { runs, seed: 1 }, &RunControl::default()).finding
}

#[test]
fn every_fault_is_found_in_random_schedules_and_shown_in_few_steps() {
    let exec = (REFUSES_EXEC, "no other program, for thread 0 on CPU 0", 2);
    for (entry, expected, steps) in BROKEN.into_iter().chain([exec]) {
        let found = search(entry, 200).unwrap_or_else(|| panic!("{}: nothing found", entry.name));
        let said = found.violation.to_string();
        assert!(said.contains(expected) && said.contains(entry.name), "{said}");
        let lines = found.schedule.lines();
        assert_eq!(lines.len(), steps, "{}: {lines:#?}", entry.name);
    }
}

#[test]
fn policies_that_keep_the_contract_pass() {
    for entry in policies::ALL.iter().chain(KEPT) {
        let found = check(entry, Search { runs: 400, seed: 1 }, &RunControl::default());
        assert_eq!(found.finding, None, "{}", entry.name);
        assert_eq!(found.runs, 400);
    }
}

#[test]
fn the_same_seed_finds_the_same_on_any_number_of_threads() {
    let (entry, ..) = BROKEN[1];
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| search(entry, 300)).expect("a violation")
    };
    assert_eq!(with(1), with(3));
}

/// Simulates 60 ms of a workload that has more threads than CPUs.
fn simulate(entry: &'static PolicySpec, workload: &str) -> Result<Outcome, String> {
    let machine = Machine::preset("epyc-9654").expect("a preset");
    let mut workload = Workload::preset(workload).expect("a preset");
    workload.set("duration_ms", 60.0).expect("a parameter");
    let program = workload.program(&machine).expect("a program");
    let run = Simulation::new(&machine, &program, entry, 1).run(&AtomicBool::new(false));
    run.map_err(|violation| violation.to_string())
}

#[test]
fn every_fault_ends_a_run_of_the_engine_with_an_error() {
    for (entry, ..) in BROKEN {
        let said = simulate(entry, "oversubscribed").expect_err(entry.name);
        assert!(said.contains(&format!("policy {} ", entry.name)), "{said}");
        assert!(said.contains(" ns: ") && said.contains("expected"), "{said}");
    }
    let said = simulate(REFUSES_EXEC, "fork-exec").expect_err("an error");
    assert!(said.contains("no other program, for thread"), "{said}");
    for entry in KEPT {
        simulate(entry, "oversubscribed").expect("the contract is kept");
    }
    // A fence of one CPU cannot pass for that of another.
    simulate(faulty!("steals-with-fence", StealsWithFence), "oversubscribed")
        .expect_err("several CPUs run, and one is fenced");
}

#[test]
fn a_comparison_names_the_first_policy_that_breaks_the_contract() {
    let machine = Machine::preset("cascade-lake").expect("a preset");
    let mut workload = Workload::preset("container").expect("a preset");
    workload.set("duration_ms", 50.0).expect("a parameter");
    let per_cpu = policies::find("per-cpu").expect("a policy");
    let comparison = Comparison {
        machine: &machine,
        workload: &workload,
        sweeps: &[],
        policies: &[per_cpu, BROKEN[0].0, BROKEN[2].0],
        seeds: 3,
        seed: 1,
        spans: 0,
    };
    let of_rows = comparison.simulate(&RunControl::default()).map(drop);
    let of_runs = comparison.each_run(&RunControl::default()).map(drop);
    let in_turn = comparison.each_run_in_turn(&RunControl::default()).map(drop);
    for failed in [of_rows, of_runs, in_turn] {
        let Err(Failure::Violation(violation)) = failed else { panic!("{failed:?}") };
        assert_eq!(violation.policy, "halves");
        assert!(matches!(violation.breach, Breach::Unique { .. }), "{violation}");
    }
}
