//! Random schedules of one process on random machines.

use std::fmt;

use serde::Serialize;

use crate::place::Place;
use crate::policies::Thread;
use crate::random::Random;
use crate::time::{Ns, US};
use crate::topology::{Cpu, Topology};

/// Maximum number of steps of a random schedule.
const MAX_STEPS: u64 = 1000;

/// Longest time step: three times the period after which the kernel's IDs expire.
const MAX_ADVANCE_US: u64 = 300_000;

/// A step of a schedule. Steps that no scheduler could execute are skipped, so every part of a
/// schedule is a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// A thread begins, with the next number. It has not run.
    Spawn,
    /// A CPU switches to a thread, which leaves the CPU where it ran.
    Run {
        /// The thread.
        thread: Thread,
        /// The CPU.
        cpu: Cpu,
    },
    /// A CPU switches to idle, or to another process.
    Idle {
        /// The CPU.
        cpu: Cpu,
    },
    /// The thread on a CPU uses its ID.
    Use {
        /// The CPU.
        cpu: Cpu,
    },
    /// The timer ticks.
    Tick {
        /// The CPU.
        cpu: Cpu,
    },
    /// Time passes.
    Advance {
        /// The time in microseconds.
        us: u32,
    },
    /// The thread on a CPU ends.
    Exit {
        /// The CPU.
        cpu: Cpu,
    },
    /// The thread on a CPU replaces the program, and all others end.
    Exec {
        /// The CPU.
        cpu: Cpu,
    },
    /// A thread is restricted to the first CPUs.
    Confine {
        /// The thread.
        thread: Thread,
        /// Number of CPUs.
        cpus: u32,
    },
}

/// A schedule of one process, with its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The machine.
    pub topology: Topology,
    /// Number of CPUs that the first thread may use: the first ones.
    pub allowed: u32,
    /// The steps. Thread 0 exists before them.
    pub steps: Vec<Step>,
}

impl Schedule {
    /// Returns the schedule of a seed.
    pub fn random(seed: u64) -> Schedule {
        let mut random = Random::new(seed);
        let topology = machine(&mut random);
        let cpus = topology.cpus();
        let allowed = if random.below(2) == 0 { cpus } else { one_to(&mut random, cpus) };
        let habits = Habits::random(&mut random, cpus);
        let count = 1 + random.below(MAX_STEPS);
        let mut threads = 1;
        let steps = (0..count).map(|_| habits.step(&mut random, cpus, &mut threads)).collect();
        Schedule { topology, allowed, steps }
    }

    /// Returns a machine with one cache, for a schedule that needs no more.
    pub(super) fn flat(cpus: u32) -> Topology {
        let place = |core| Place { core, l3: 0, socket: 0, node: 0 };
        Topology::new((0..cpus).map(place).collect())
    }

    /// Returns the time and the text of each step.
    pub fn lines(&self) -> Vec<(Ns, String)> {
        let (mut now, mut threads) = (0, 1);
        let line = |step: &Step| {
            let text = match step {
                Step::Spawn => {
                    threads += 1;
                    format!("thread {} begins", threads - 1)
                }
                step => step.to_string(),
            };
            let at = now;
            if let Step::Advance { us } = step {
                now += Ns::from(*us) * US;
            }
            (at, text)
        };
        self.steps.iter().map(line).collect()
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Spawn => write!(f, "a thread begins"),
            Step::Run { thread, cpu } => write!(f, "CPU {cpu} switches to thread {thread}"),
            Step::Idle { cpu } => write!(f, "CPU {cpu} switches to another process"),
            Step::Use { cpu } => write!(f, "the thread on CPU {cpu} uses its ID"),
            Step::Tick { cpu } => write!(f, "the timer ticks on CPU {cpu}"),
            Step::Advance { us } => write!(f, "{us} us pass"),
            Step::Exit { cpu } => write!(f, "the thread on CPU {cpu} ends"),
            Step::Exec { cpu } => write!(f, "the thread on CPU {cpu} replaces the program"),
            Step::Confine { thread, cpus } => {
                write!(f, "thread {thread} may use the first {cpus} CPUs only")
            }
        }
    }
}

/// Returns a random number from 1 to `last`.
fn one_to(random: &mut Random, last: u32) -> u32 {
    1 + random.below(u64::from(last)) as u32
}

/// Returns a random machine: up to 48 CPUs, or up to 240 in one of four.
fn machine(random: &mut Random) -> Topology {
    let (sockets, l3s) = (one_to(random, 2), one_to(random, 3));
    let is_large = random.below(4) == 0;
    let cores = if is_large { 12 + one_to(random, 8) } else { one_to(random, 4) };
    let threads = one_to(random, 2);
    let all_cores = sockets * l3s * cores;
    // Linux numbers the second hardware threads after all first ones, or beside them.
    let is_adjacent = random.below(2) == 0;
    let place = |cpu: Cpu| {
        let core = if is_adjacent { cpu / threads } else { cpu % all_cores };
        let socket = core / (l3s * cores);
        Place { core, l3: core / cores, socket, node: socket }
    };
    Topology::new((0..all_cores * threads).map(place).collect())
}

/// The workload: how often each kind of step happens, and how far threads spread.
struct Habits {
    /// Weights of the kinds of steps, in the order of [`Step`].
    weights: [u64; 9],
    /// Number of CPUs on which most steps happen.
    busy_cpus: u32,
    /// Number of youngest threads that steps choose from.
    recent_threads: u32,
    advance_us: u64,
}

impl Habits {
    fn random(random: &mut Random, cpus: u32) -> Habits {
        let mut weight = |most: u64| random.below(most + 1);
        let (spawn, idle, tick, advance) = (weight(6), weight(6), weight(4), weight(4));
        let (exit, confine, exec) = (weight(3), weight(2), weight(1));
        let (run, uses) = (4 + weight(8), 4 + weight(12));
        // An exec ends all threads, so it is rare.
        let common = [spawn, run, idle, uses, tick, advance, exit].map(|weight| 8 * weight);
        let [spawn, run, idle, uses, tick, advance, exit] = common;
        let weights = [spawn, run, idle, uses, tick, advance, exit, exec, 8 * confine];
        Habits {
            weights,
            busy_cpus: one_to(random, cpus),
            recent_threads: one_to(random, 2 * cpus),
            advance_us: 1 + random.below(MAX_ADVANCE_US),
        }
    }

    fn step(&self, random: &mut Random, cpus: u32, threads: &mut u32) -> Step {
        let busy = if random.below(16) == 0 { cpus } else { self.busy_cpus.min(cpus) };
        let cpu = random.below(u64::from(busy)) as Cpu;
        let recent = self.recent_threads.min(*threads);
        let thread = *threads - one_to(random, recent);
        match self.kind(random) {
            0 => {
                *threads += 1;
                Step::Spawn
            }
            1 => Step::Run { thread, cpu },
            2 => Step::Idle { cpu },
            3 => Step::Use { cpu },
            4 => Step::Tick { cpu },
            5 => Step::Advance { us: random.below(self.advance_us) as u32 },
            6 => Step::Exit { cpu },
            7 => Step::Exec { cpu },
            _ => Step::Confine { thread, cpus: one_to(random, cpus) },
        }
    }

    /// Returns the index of a random kind, by the weights.
    fn kind(&self, random: &mut Random) -> usize {
        let mut left = random.below(self.weights.iter().sum());
        for (kind, &weight) in self.weights.iter().enumerate() {
            if left < weight {
                return kind;
            }
            left -= weight;
        }
        unreachable!("the number is below the sum")
    }
}
