//! Results of a replay, as shown in text, page and JSON document.

use std::collections::HashMap;
use std::fmt;

use percid_sim::machine::Machine;
use percid_sim::policies::PolicySpec;
use percid_trace::Trace;
use percid_trace::event::{Event, Tid, What};
use percid_trace::overview::Span;
use percid_trace::quality::Quality;
use percid_trace::replay::{self, Recorded, Replay, SpaceReplay, SpaceSummary, Used};
use serde::Serialize;

use super::scan::ScanFigures;
use crate::info::About;
use percid_command::trace::ReplayArguments;

/// The JSON document.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    /// The conclusions that the trace permits.
    pub(super) quality: Quality,
    pub(super) trace: About,
    pub(super) machine: MachineFigures,
    pub(super) area_bytes: u64,
    /// `true` if Ctrl-C came first. The policies are those that had finished the trace by then; if
    /// none had, those that saw its beginning.
    pub(super) interrupted: bool,
    /// `true` if the policies saw the whole trace.
    pub(super) whole_trace: bool,
    /// Processes, those with most turns first.
    pub(super) processes: Vec<ProcessFigures>,
    /// Processes with fewer turns than those.
    pub(super) processes_left_out: u64,
    /// Processes that were not replayed, for want of memory.
    pub(super) processes_refused: u64,
    /// The walks of the kernel's NUMA scan; `null` if the trace has none.
    pub(super) numa_scan: Option<ScanFigures>,
    #[serde(skip)]
    pub(super) time_lines: Vec<TimeLine>,
    #[serde(skip)]
    pub(super) duration_ns: u64,
    /// Names of threads by the kernel's numbers.
    #[serde(skip)]
    pub(super) thread_names: HashMap<Tid, String>,
}

/// The machine on which the schedule was replayed.
#[derive(Debug, Serialize)]
pub(super) struct MachineFigures {
    pub(super) name: String,
    pub(super) cpus: u32,
    pub(super) cores: u32,
    pub(super) l3s: u32,
    pub(super) nodes: u32,
}

/// One address space under all policies.
#[derive(Debug, Serialize)]
pub(super) struct ProcessFigures {
    #[serde(skip)]
    number: replay::SpaceNumber,
    #[serde(flatten)]
    pub(super) summary: SpaceSummary,
    pub(super) policies: Vec<PolicyFigures>,
    /// The policies that could not go on.
    pub(super) left_out: Vec<LeftOut>,
    pub(super) advice: Vec<String>,
}

/// A policy that could not go on.
#[derive(Debug, Serialize)]
pub(super) struct LeftOut {
    pub(super) policy: &'static str,
    pub(super) at_ns: u64,
    pub(super) why: &'static str,
}

/// Figures of one policy for one address space.
#[derive(Debug, Serialize)]
pub(super) struct PolicyFigures {
    pub(super) policy: &'static str,
    pub(super) ids_used: u32,
    pub(super) ids_bound: u32,
    pub(super) density: f64,
    pub(super) acquisitions: u64,
    pub(super) first_uses: u64,
    pub(super) same_cpu: f64,
    pub(super) same_core: f64,
    pub(super) same_l3: f64,
    pub(super) same_node: f64,
    pub(super) steals: u64,
    pub(super) scans: u64,
    pub(super) slow_paths: u64,
    pub(super) across_l3s: u64,
    pub(super) across_nodes: u64,
    pub(super) memory_bytes: u64,
    pub(super) ns_per_turn: f64,
}

/// All turns under one policy, as far as a picture can show them.
#[derive(Debug)]
pub(super) struct TimeLine {
    pub(super) policy: &'static str,
    pub(super) spans: Vec<Span<Used>>,
    /// The width of its columns.
    pub(super) column_ns: u64,
}

/// The subject and the settings of a replay.
pub(super) struct Setting<'a> {
    pub(super) about: About,
    pub(super) trace: &'a Trace,
    pub(super) arguments: &'a ReplayArguments,
    pub(super) machine: &'a Machine,
    pub(super) quality: Quality,
}

impl Results {
    pub(super) fn new(
        setting: Setting<'_>,
        policies: &[&'static PolicySpec],
        replays: Vec<Replay>,
        interrupted: bool,
    ) -> Results {
        let Setting { about, trace, arguments, machine, quality } = setting;
        let most = |count: fn(&Replay) -> u64| replays.iter().map(count).max().unwrap_or(0);
        let processes_left_out = most(|replay| replay.spaces_left_out);
        let processes_refused = most(|replay| replay.spaces_refused);
        let whole_trace = replays.iter().all(|replay| replay.is_whole);
        let recorded = Recorded {
            cpus: &quality.cpus,
            online: quality.online,
            machine: machine.topology.cpus(),
        };
        let mut processes = processes(policies, &replays, recorded, arguments.area_bytes);
        if !quality.permits_advice() {
            processes.iter_mut().for_each(|process| process.advice.clear());
        }
        processes.sort_by_key(|process| std::cmp::Reverse(process.summary.turns));
        let duration_ns = replays.iter().map(|replay| replay.duration_ns).max().unwrap_or(0);
        let time_lines = policies.iter().zip(replays).map(|(entry, replay)| TimeLine {
            policy: entry.name,
            column_ns: replay.width_drawn,
            spans: replay.drawn,
        });
        let topology = &machine.topology;
        Results {
            quality,
            trace: about,
            machine: MachineFigures {
                name: machine.name.clone(),
                cpus: topology.cpus(),
                cores: topology.cores(),
                l3s: topology.l3s(),
                nodes: topology.nodes(),
            },
            area_bytes: arguments.area_bytes,
            numa_scan: None,
            interrupted,
            whole_trace,
            processes,
            processes_left_out,
            processes_refused,
            time_lines: time_lines.collect(),
            duration_ns,
            thread_names: thread_names(trace),
        }
    }

    /// Returns which part of the trace the shown policies saw, if it was interrupted.
    pub(super) fn seen(&self) -> &'static str {
        if self.whole_trace {
            "policies that had not finished by then are left out"
        } else {
            "each policy saw the beginning of the trace only"
        }
    }

    /// Address spaces by their places among all.
    pub(super) fn places(&self) -> HashMap<replay::SpaceNumber, usize> {
        self.processes.iter().enumerate().map(|(at, process)| (process.number, at)).collect()
    }
}

/// The last names of all threads.
fn thread_names(trace: &Trace) -> HashMap<Tid, String> {
    let name = |event: &Event| match event.what {
        What::Name { thread, name } => Some((thread, trace.texts.get(name).to_owned())),
        _ => None,
    };
    trace.events.iter().filter_map(name).collect()
}

/// The processes that are in all replays: an interrupted one has fewer.
fn processes(
    policies: &[&'static PolicySpec],
    replays: &[Replay],
    recorded: Recorded<'_>,
    area_bytes: u64,
) -> Vec<ProcessFigures> {
    let Some((first, others)) = replays.split_first() else { return Vec::new() };
    let all = first.spaces.iter().filter_map(|space| {
        let number = space.number;
        let same = |replay: &'_ Replay| {
            let at = replay.spaces.binary_search_by_key(&number, |space| space.number);
            at.ok()
        };
        let mut spaces = vec![space];
        for replay in others {
            spaces.push(&replay.spaces[same(replay)?]);
        }
        let named = policies.iter().map(|entry| entry.name).zip(spaces);
        let (stuck, named): (Vec<_>, Vec<(&'static str, &SpaceReplay)>) =
            named.partition(|(_, space)| space.stuck.is_some());
        Some(ProcessFigures {
            number,
            summary: space.summary.clone(),
            advice: replay::advice(&named, recorded, area_bytes),
            left_out: stuck
                .iter()
                .filter_map(|(name, space)| LeftOut::from_replay(name, space))
                .collect(),
            policies: named.iter().map(|(name, space)| PolicyFigures::new(name, space)).collect(),
        })
    });
    all.collect()
}

impl LeftOut {
    fn from_replay(policy: &'static str, space: &SpaceReplay) -> Option<LeftOut> {
        let stuck = space.stuck?;
        Some(LeftOut { policy, at_ns: stuck.at, why: stuck.why.0 })
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { policy, at_ns, why } = self;
        let seconds = *at_ns as f64 / 1e9;
        write!(f, "{policy} is left out: it could not go on at {seconds:.3} s, where {why}.")
    }
}

impl PolicyFigures {
    fn new(policy: &'static str, space: &SpaceReplay) -> PolicyFigures {
        let tally = &space.tally;
        let acquisitions = tally.acquisitions.all();
        let [same_cpu, same_core, same_l3, same_node] = tally.acquisitions.shares();
        PolicyFigures {
            policy,
            ids_used: tally.ids_used,
            ids_bound: tally.ids_bound,
            density: f64::from(space.summary.most_running) / f64::from(tally.ids_used.max(1)),
            acquisitions,
            first_uses: tally.acquisitions.first,
            same_cpu,
            same_core,
            same_l3,
            same_node,
            steals: tally.work.steals,
            scans: tally.work.scans,
            slow_paths: tally.work.slow_paths,
            across_l3s: tally.acquisitions.moved.across_l3s(),
            across_nodes: tally.acquisitions.moved.other_node,
            memory_bytes: tally.memory_bytes,
            ns_per_turn: tally.burst_ns as f64 / acquisitions.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use percid_sim::policies::{ALL, Impossible};
    use percid_trace::replay::PolicyFailure;

    use super::*;

    #[test]
    fn a_policy_that_could_not_go_on_is_left_out_and_the_others_are_not() {
        let recorded = Recorded { cpus: "0-1", online: 2, machine: 2 };
        let policies: Vec<&'static PolicySpec> = ALL.iter().take(2).collect();
        let space = |stuck| SpaceReplay { stuck, ..SpaceReplay::default() };
        let replay = |stuck| Replay { spaces: vec![space(stuck)], ..Replay::default() };
        let stuck = PolicyFailure {
            at: 1_500_000_000,
            why: Impossible("CPUs that are not there have IDs"),
        };
        let found = processes(&policies, &[replay(Some(stuck)), replay(None)], recorded, 16384);
        let [process] = &found[..] else { panic!("one process: {found:?}") };
        let names: Vec<&str> = process.policies.iter().map(|figures| figures.policy).collect();
        assert_eq!(names, [policies[1].name]);
        assert!(!process.advice.is_empty());
        let [left_out] = &process.left_out[..] else { panic!("one policy: {process:?}") };
        let said = left_out.to_string();
        assert!(said.contains(policies[0].name) && said.contains("1.500 s"), "{said}");
    }
}
