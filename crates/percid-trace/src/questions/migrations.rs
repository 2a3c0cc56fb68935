//! Migrations of threads between CPUs: their number, their distance and their modelled cost.

use percid_sim::cost::{Found, Idle, Prices};
use percid_sim::machine::Machine;
use percid_sim::run_control::RunControl;
use percid_sim::topology::Topology;
use percid_sim::workload::Memory;

use super::follower::{Follower, Listener, Scene};
use super::turn::{Cause, Wait, Who};
use crate::event::{Cpu, Tid};
use crate::replay::{Moves, TopologyMismatch};
use crate::threads::{ThreadNumber, Threads};
use crate::trace::Trace;
use crate::window::Window;

/// Whose moves are looked at.
#[derive(Debug, Clone, Default)]
pub struct MigrationsSettings {
    /// Turns that begin in this window.
    pub window: Window,
    /// The processes whose threads are analysed; all if it is empty.
    pub processes: Vec<Tid>,
}

/// The result of [`migrations`].
#[derive(Debug, Clone, Default)]
pub struct Migrations {
    /// The threads that ran, in the order in which they are met.
    pub threads: Vec<(ThreadNumber, ThreadMigrations)>,
    /// The identities of the threads.
    pub known: Threads,
    /// `true` if the whole window was analysed.
    pub is_whole: bool,
}

/// The migrations of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadMigrations {
    /// Number of times that a CPU began to run it.
    pub turns: u64,
    /// Turns on another CPU than the one before, after it had been woken, or when it is not known
    /// why it had stopped.
    pub at_wake_up: Moves,
    /// The same after a preemption: the thread was moved while it waited.
    pub while_waiting: Moves,
    /// The modelled extra cost of touching 16 kB after all these moves, compared with staying, by
    /// the prices of the machine, in nanoseconds.
    pub cost_ns: u64,
}

impl ThreadMigrations {
    /// All moves.
    pub fn moves(&self) -> u64 {
        self.at_wake_up.all() + self.while_waiting.all()
    }

    /// Counts all that another one has counted.
    pub fn add(&mut self, other: &ThreadMigrations) {
        self.turns += other.turns;
        self.at_wake_up.add(&other.at_wake_up);
        self.while_waiting.add(&other.while_waiting);
        self.cost_ns = self.cost_ns.saturating_add(other.cost_ns);
    }
}

/// Finds out how threads move. Adds processed events to `progress`.
///
/// # Errors
///
/// A machine with too few CPUs.
pub fn migrations(
    trace: &Trace,
    machine: &Machine,
    settings: &MigrationsSettings,
    progress: &RunControl,
) -> Result<Migrations, TopologyMismatch> {
    TopologyMismatch::check(trace, machine)?;
    let mut follower = Follower::new(trace, &settings.window);
    let mut travels = Travels {
        settings,
        topology: &machine.topology,
        prices: Prices::new(machine, Memory::ZeroPage),
        threads: Vec::new(),
        last: Vec::new(),
        waited: None,
    };
    let is_whole = follower.follow(&mut travels, progress);
    let seen = (0..).zip(travels.threads).filter(|(_, found)| found.turns > 0);
    Ok(Migrations { threads: seen.collect(), known: follower.into_threads(), is_whole })
}

struct Travels<'a> {
    settings: &'a MigrationsSettings,
    topology: &'a Topology,
    prices: Prices,
    threads: Vec<ThreadMigrations>,
    /// The CPU on which each thread ran last.
    last: Vec<Option<Cpu>>,
    /// The thread that is about to run, and why it waited.
    waited: Option<(ThreadNumber, Cause)>,
}

impl Listener for Travels<'_> {
    fn wait(&mut self, _: &Scene, wait: &Wait) {
        self.waited = Some((wait.thread, wait.cause));
    }

    fn begin(&mut self, scene: &Scene, now: u64, cpu: Cpu, who: Who) {
        let Who::Thread(thread) = who else { return };
        let waited = self.waited.take();
        let place = thread as usize;
        if place >= self.last.len() {
            self.last.resize(place + 1, None);
            self.threads.resize(place + 1, ThreadMigrations::default());
        }
        let last = self.last[place].replace(cpu);
        let MigrationsSettings { window, processes } = self.settings;
        let is_wanted = || processes.contains(&scene.threads.get(thread).process_or_self());
        if !window.contains(now) || !processes.is_empty() && !is_wanted() {
            return;
        }
        let extra = last.map_or(0, |last| self.extra_ns(last, cpu));
        let found = &mut self.threads[place];
        found.turns += 1;
        if let Some(last) = last {
            let moves = match waited == Some((thread, Cause::Preempted)) {
                true => &mut found.while_waiting,
                false => &mut found.at_wake_up,
            };
            moves.count(self.topology, last, cpu);
            found.cost_ns = found.cost_ns.saturating_add(extra);
        }
    }
}

impl Travels<'_> {
    /// Returns the extra cost of touching memory that was last used on another CPU, if all caches
    /// are still warm.
    fn extra_ns(&self, last: Cpu, cpu: Cpu) -> u64 {
        if last == cpu {
            return 0;
        }
        let price = |last| {
            let found = Found::new(self.topology, cpu, Some(last), Idle::default());
            self.prices.burst(&found).1
        };
        price(last).saturating_sub(price(cpu))
    }
}
