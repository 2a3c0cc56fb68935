//! Replays a recorded schedule under a policy: which IDs the threads of each process would have
//! had.
//!
//! The schedule is taken as it is; what the policy costs does not change it. An *address space* is
//! what IDs belong to: a process from its `exec` on.

mod advice;
mod membership;
mod outcome;
mod player;
mod schedule;
mod space;
mod tally;
mod top_spaces;

use std::fmt;

use percid_sim::machine::Machine;
use percid_sim::policies::PolicySpec;
use percid_sim::run_control::RunControl;
use percid_sim::topology::{Cpu, Place, Topology};

pub use advice::{Recorded, advice};
pub use outcome::{PolicyFailure, Replay, SpaceReplay, Turn, Used};
pub use player::Settings;
pub use space::{Moves, SpaceNumber, SpaceSummary};
pub use tally::{Acquisitions, LastUse, Tally};

use crate::trace::Trace;
use player::Player;
use schedule::{Listener, Schedule};

/// A trace and a machine that do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyMismatch {
    /// The largest CPU in the trace.
    pub cpu: Cpu,
    /// The number of CPUs that the machine has.
    pub cpus: u32,
    /// The machine.
    pub machine: String,
}

impl TopologyMismatch {
    /// Checks that the machine has all CPUs of the trace.
    ///
    /// # Errors
    ///
    /// The machine lacks a CPU of the trace.
    pub fn check(trace: &Trace, machine: &Machine) -> Result<(), TopologyMismatch> {
        let cpus = machine.topology.cpus();
        match trace.largest_cpu().filter(|&cpu| cpu >= cpus) {
            Some(cpu) => Err(TopologyMismatch { cpu, cpus, machine: machine.name.clone() }),
            None => Ok(()),
        }
    }
}

impl fmt::Display for TopologyMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TopologyMismatch { cpu, cpus, machine } = self;
        write!(
            f,
            "the trace has events on CPU {cpu}, and {machine} has {cpus} CPUs, from 0 to {}",
            cpus.saturating_sub(1)
        )
    }
}

impl std::error::Error for TopologyMismatch {}

/// Replays a trace under a policy on a machine. Counts events as they are done; if it is stopped,
/// it returns what it has by then.
///
/// # Errors
///
/// A machine with too few CPUs.
pub fn replay(
    trace: &Trace,
    machine: &Machine,
    policy: &PolicySpec,
    settings: &Settings,
    progress: &RunControl,
) -> Result<Replay, TopologyMismatch> {
    TopologyMismatch::check(trace, machine)?;
    let topology = &machine.topology;
    let mut schedule = Schedule::new(trace, topology, machine.kernel.hz.value);
    let mut player = Player::new(machine, policy, settings);
    let is_whole = schedule.follow(&mut player, progress);
    Ok(player.into_replay(schedule.now(), is_whole))
}

/// The address spaces of a trace, without any policy, in the order in which it shows them; those
/// whose threads never ran are left out.
pub fn summaries(trace: &Trace) -> Vec<SpaceSummary> {
    let place = |cpu| Place { core: cpu, l3: 0, socket: 0, node: 0 };
    let cpus = trace.largest_cpu().map_or(0, |cpu| cpu + 1);
    let topology = Topology::new((0..cpus).map(place).collect());
    let mut summaries = Summaries(Vec::new());
    Schedule::new(trace, &topology, 1.0).follow(&mut summaries, &RunControl::default());
    summaries.0.sort_by_key(|(number, _)| *number);
    summaries.0.into_iter().map(|(_, summary)| summary).collect()
}

/// Notes the address spaces that had turns, as they end.
struct Summaries(Vec<(SpaceNumber, SpaceSummary)>);

impl Listener for Summaries {
    fn end(&mut self, number: SpaceNumber, summary: SpaceSummary) {
        if summary.turns > 0 {
            self.0.push((number, summary));
        }
    }
}
