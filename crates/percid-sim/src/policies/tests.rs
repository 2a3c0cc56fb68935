//! Properties of every policy, for random schedules.

use super::scenario::Scenario;
use super::{ALL, Create, Id, Impossible, Policy, PolicySpec, Process, Thread, Work};
use crate::random::Random;
use crate::topology::Cpu;

const CPUS: u32 = 6;
const STEPS: usize = 3000;

/// The properties that a policy guarantees.
struct Promise {
    create: &'static Create,
    /// `true` if a running thread's ID may be taken away, so that it must request another one.
    revokes: bool,
    /// Exclusive upper bound of IDs: a function of the possible CPUs, the allowed CPUs, and the
    /// maximum number of simultaneous threads.
    bound: fn(u32, u32, u32) -> u32,
}

fn promise(entry: &PolicySpec) -> Promise {
    let bound: fn(u32, u32, u32) -> u32 = match entry.name {
        "linux-6.3" | "linux-6.4" | "linux-6.19" | "per-cpu" => |possible, _, _| possible,
        "linux-6.13" | "linux-6.14" | "percid-table" | "percid-table-strict" => {
            |_, allowed, _| allowed
        }
        "per-thread" => |_, _, users| users,
        other => panic!("{other}: what does it promise?"),
    };
    Promise { create: entry.create, revokes: entry.name.starts_with("percid-table"), bound }
}

/// Runs a process with random events. Returns the IDs that its threads had, or the violated
/// property.
fn live(promise: &Promise, seed: u64) -> Result<Vec<Id>, String> {
    let mut random = Random::new(seed);
    let mut s = Scenario::with_policy(CPUS, promise.create);
    let allowed = CPUS - random.below(3) as u32;
    s.allow(allowed);
    let (mut living, mut most) = (vec![0], 1);
    let mut next_thread = 1;
    let mut all_ids = Vec::new();
    for step in 0..STEPS {
        // Only allowed CPUs are used, so that a bound by their number can hold.
        let cpu = random.below(u64::from(allowed)) as Cpu;
        let thread = living[random.below(living.len() as u64) as usize];
        match random.below(20) {
            0..8 => {
                s.run(cpu, thread);
            }
            8..12 => s.idle(cpu),
            12..14 => s.tick(cpu),
            14 => s.advance_ms(random.below(150)),
            15 if !s.running().contains(&Some(thread)) => s.migrate(thread, cpu),
            16 if living.len() < 12 => {
                s.spawn(1);
                living.push(next_thread);
                next_thread += 1;
                most = most.max(s.users());
            }
            17 if living.len() > 1 => {
                if let Some(gone) = s.running()[cpu as usize] {
                    s.exit(cpu);
                    living.retain(|&thread| thread != gone);
                }
            }
            18 => s.restrict(thread, 1 + random.below(u64::from(allowed)) as u32),
            19 if random.below(20) == 0 => {
                if let Some(caller) = s.running()[cpu as usize] {
                    s.exec(cpu);
                    living = vec![caller];
                }
            }
            _ => {}
        }
        let ids = settled_ids(&mut s, promise.revokes);
        check(&ids, (promise.bound)(CPUS, allowed, most))
            .map_err(|fault| format!("step {step}: {fault}"))?;
        all_ids.extend(ids);
    }
    Ok(all_ids)
}

/// Returns the IDs of all running threads. If they may be revoked, each thread requests its ID
/// again until none changes. That takes at most one round per thread, because the IDs that were
/// taken last are stolen last.
fn settled_ids(s: &mut Scenario, revokes: bool) -> Vec<Id> {
    let running: Vec<Cpu> = (0..CPUS).filter(|&cpu| s.running()[cpu as usize].is_some()).collect();
    let mut ids: Vec<Id> = running.iter().map(|&cpu| s.id(cpu)).collect();
    for _ in 0..if revokes { CPUS } else { 0 } {
        for (id, &cpu) in ids.iter_mut().zip(&running) {
            s.advance_ms(1);
            *id = s.id(cpu);
        }
    }
    ids
}

fn check(ids: &[Id], bound: u32) -> Result<(), String> {
    for (index, id) in ids.iter().enumerate() {
        if ids[..index].contains(id) {
            return Err(format!("two running threads share ID {id}: {ids:?}"));
        }
        if *id >= bound {
            return Err(format!("ID {id} is not below {bound}"));
        }
    }
    Ok(())
}

#[test]
fn running_threads_never_share_an_id_and_ids_stay_below_the_bound() {
    for entry in ALL {
        for seed in 0..40 {
            if let Err(fault) = live(&promise(entry), seed) {
                panic!("{}, seed {seed}: {fault}", entry.name);
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_ids() {
    for entry in ALL {
        assert_eq!(live(&promise(entry), 5), live(&promise(entry), 5), "{}", entry.name);
        assert_ne!(live(&promise(entry), 5), live(&promise(entry), 6), "{}", entry.name);
    }
}

/// A thread that ends may be preempted in its last steps, and is then switched to once more. If a
/// policy gave it an ID then, it would never get the ID back, and a later thread would find none.
#[test]
fn a_thread_that_has_ended_takes_no_id() {
    for entry in ALL.iter().filter(|entry| entry.name.starts_with("linux-")) {
        let mut s = Scenario::new(entry, CPUS);
        for thread in 1..4 * CPUS {
            s.spawn(1);
            s.run(0, thread);
            s.exit_and_run_once_more(0);
            let id = s.run(1, 0);
            assert!(id < 3, "{}: ID {id} for the only thread", entry.name);
        }
    }
}

/// A policy that gives two CPUs one ID.
struct Shares;

impl Policy for Shares {
    fn exec(&mut self, _: &Process<'_>, _: Cpu, _: Thread) -> Result<(), Impossible> {
        Ok(())
    }

    fn id(&mut self, _: &Process<'_>, cpu: Cpu, _: Thread) -> Result<Id, Impossible> {
        Ok(cpu / 2)
    }

    fn work(&self) -> Work {
        Work::default()
    }
}

#[test]
fn a_broken_policy_is_caught() {
    let shares =
        Promise { create: &|_| Box::new(Shares), revokes: false, bound: |possible, _, _| possible };
    let fault = live(&shares, 0).expect_err("two CPUs have one ID");
    assert!(fault.contains("share ID"), "{fault}");
    let per_cpu = super::find("per-cpu").expect("a policy");
    let dense = Promise { bound: |_, _, _| 2, ..promise(per_cpu) };
    let fault = live(&dense, 0).expect_err("CPU numbers are not dense");
    assert!(fault.contains("is not below 2"), "{fault}");
}

/// A thread moves to a CPU that is not allowed and takes its ID along: the allowed CPU has none
/// left.
#[test]
fn a_move_that_no_kernel_makes_is_an_error_where_ids_are_bound_by_allowed_cpus() {
    for entry in ALL {
        let mut s = Scenario::new(entry, 2);
        s.allow(1);
        s.spawn(1);
        s.run(0, 0);
        s.idle(0);
        s.migrate(0, 1);
        let impossible = s.try_run(0, 1).is_err();
        let is_bound = matches!(entry.name, "linux-6.13" | "linux-6.14");
        assert_eq!(impossible, is_bound, "{}", entry.name);
    }
}

#[test]
fn names_are_unique_and_found() {
    for entry in ALL {
        assert_eq!(super::find(entry.name).map(|found| found.about), Some(entry.about));
    }
    assert!(super::find("linux-2.6").is_none());
}
