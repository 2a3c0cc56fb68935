//! The subcommand `percid trace advise`, which finds lost time and recommends changes.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;

use percid_command::exit::{Exit, Failure};
use percid_command::presets;
use percid_command::table::Table;
use percid_command::this_machine::Numbering;
use percid_command::trace_questions::MigrationsArguments;
use percid_report::{Axis, Dot, Dots, Page};
use percid_rules::Generation;
use percid_sim::machine::Machine;
use percid_sim::policies::{self, PolicySpec};
use percid_trace::event::{Event, KTHREADD, Tid, What};
use percid_trace::gaps;
use percid_trace::questions::{
    self, LossKind, Losses, LossesSettings, Migrations, MigrationsSettings, ThreadMigrations,
};
use percid_trace::replay::{Recorded, Replay, Settings};
use serde::Serialize;

use super::finding::{Circumstances, Finding, Ids, SLOW_NS};
use super::names::Names;
use super::programs::Programs;
use super::recording::{AnalysisFigures, LoadedRecording};
use crate::replay::{misfit, replay_all};
use crate::times::ms;

pub(crate) fn run(arguments: &MigrationsArguments, json: bool) -> Result<Exit, Failure> {
    let machine = presets::machine(&arguments.machine, Numbering::Kernel)?;
    let recording = LoadedRecording::load(&arguments.question)?;
    if !recording.permits_figures() {
        return recording.tell(TITLE, Advice::default(), true, json);
    }
    let (advice, is_whole) = Advice::new(&recording, &machine)?;
    recording.tell(TITLE, advice, is_whole, json)
}

const TITLE: &str = "percid trace advise";

/// Findings that cost less than one part in this number of the recording's time are left out.
const TOLD_OF: u64 = 200;

/// The figures of the JSON document. Figures that the recording does not support are `None`.
#[derive(Debug, Default, Serialize)]
struct Advice {
    machine: Option<String>,
    /// The beginning of sentences, with the CPUs on which the recording was made.
    #[serde(skip)]
    on: String,
    /// `true` if only some threads were recorded: the causes of waits were not seen.
    #[serde(skip)]
    sees_some_only: bool,
    begin_ns: u64,
    end_ns: u64,
    /// Cost below which findings are left out, in nanoseconds.
    told_from_ns: u64,
    /// The findings, in descending order of cost.
    findings: Option<Vec<Finding>>,
    findings_left_out: usize,
}

impl Advice {
    fn new(recording: &LoadedRecording<'_>, machine: &Machine) -> Result<(Advice, bool), Failure> {
        let programs = Programs::from_trace(&recording.trace);
        let losses = lost(recording, &programs);
        let migrations = moved(recording, machine)?;
        let ids = ids(recording, machine)?;
        let is_whole = losses.is_whole && migrations.is_whole && ids.is_whole;
        let names = Names::new(&recording.trace, &losses.known);
        let recorded = Recorded {
            cpus: &recording.quality.cpus,
            online: recording.quality.online,
            machine: machine.topology.cpus(),
        };
        let events = &recording.trace.events;
        let of_kernel = kernel_threads(events);
        let place = Circumstances {
            on: recorded.on(),
            cpus: recorded.cpus,
            has_affinities: events.iter().any(|event| matches!(event.what, What::Affinity { .. })),
            length_ns: losses.to.saturating_sub(losses.from),
            begin: recording.trace.events.first().map_or(0, |event| event.time),
            file: &recording.arguments.file,
            programs: &programs,
        };
        let told_from_ns = (losses.to.saturating_sub(losses.from) / TOLD_OF).max(1);
        let waits = losses.all.iter().filter(|loss| is_slow(loss));
        let mut waits: Vec<Finding> =
            waits.map(|loss| Finding::of_loss(loss, &names, &place)).collect();
        waits.sort_by_key(|finding| Reverse(finding.order()));
        let waits = Finding::joined(waits, &place).into_iter();
        let moves = sums(&migrations, &programs);
        let moves = moves.iter().map(|(&process, moves)| {
            Finding::of_moves(process, moves, &names, &place, &machine.name)
        });
        let ids = together(ids.found, &programs);
        let ids = ids.iter().map(|ids| Finding::of_ids(ids, &names, &place, &machine.name));
        let all = waits.chain(moves).chain(ids);
        let mut findings: Vec<Finding> = all
            .filter(|finding| finding.weight() >= told_from_ns)
            .filter(|finding| !of_kernel(finding.process))
            .collect();
        findings.sort_by_key(|finding| (Reverse(finding.order()), finding.process, finding.kind));
        let findings_left_out = findings.len().saturating_sub(recording.lines());
        findings.truncate(recording.lines());
        let advice = Advice {
            machine: Some(machine.name.clone()),
            on: place.on,
            sees_some_only: recording.trace.origin.coverage.filtered,
            begin_ns: losses.from,
            end_ns: losses.to,
            told_from_ns,
            findings: Some(findings),
            findings_left_out,
        };
        Ok((advice, is_whole))
    }

    fn nothing(&self) -> String {
        format!(
            "{}{} nothing was found that cost {} ms or more, half a percent of the time.",
            self.unseen(),
            self.on,
            ms(self.told_from_ns)
        )
    }

    /// Returns a sentence if waits have no findings because of how it was recorded.
    fn unseen(&self) -> &'static str {
        match self.sees_some_only {
            true => "The causes of waits were not seen: findings are about moves and IDs only. ",
            false => "",
        }
    }

    /// Returns a table of the findings.
    fn table(&self, top: usize) -> Table {
        let columns = ["", "process", "kind", "lost ms", "at least", "at most", "stays", "threads"];
        let mut table = Table::new(columns, 3);
        for (number, finding) in self.findings.iter().flatten().take(top).enumerate() {
            table.row(finding.row(number + 1));
        }
        table
    }

    fn more(&self, top: usize) -> usize {
        self.findings_left_out + self.findings.iter().flatten().skip(top).count()
    }
}

/// Returns a predicate that is `true` for kernel threads: nothing can be changed about those. It is
/// always `false` if a recording lists no members.
fn kernel_threads(events: &[Event]) -> impl Fn(Tid) -> bool {
    let mut users = HashSet::new();
    let mut has_members = false;
    for event in events {
        match event.what {
            What::Member { process, .. } => {
                has_members = true;
                users.insert(process);
            }
            What::Fork { parent, child, .. } if parent != KTHREADD => drop(users.insert(child)),
            _ => {}
        }
    }
    move |process| has_members && !users.contains(&process)
}

fn lost(recording: &LoadedRecording<'_>, programs: &Programs) -> Losses {
    let (window, processes) = (recording.window, recording.processes.clone());
    let settings = LossesSettings { window, processes, programs: programs.first.clone() };
    recording.ask_repeatedly("losses", 2, |control| {
        questions::losses(&recording.trace, &settings, control)
    })
}

/// Returns `true` unless a loss is due to wake-ups that are not slow: every CPU takes some time to
/// wake up.
fn is_slow(loss: &questions::Loss) -> bool {
    loss.kind != LossKind::SlowWakeUp || loss.lost_ns / loss.stays.max(1) >= SLOW_NS
}

fn moved(recording: &LoadedRecording<'_>, machine: &Machine) -> Result<Migrations, Failure> {
    let (window, processes) = (recording.window, recording.processes.clone());
    let settings = MigrationsSettings { window, processes };
    let found = recording.ask("migrations", |control| {
        questions::migrations(&recording.trace, machine, &settings, control)
    });
    found.map_err(misfit)
}

/// Returns the moves of each process, or the sums of each program over its processes.
fn sums(migrations: &Migrations, programs: &Programs) -> HashMap<Tid, ThreadMigrations> {
    let mut sums: HashMap<Tid, ThreadMigrations> = HashMap::new();
    for (thread, moves) in &migrations.threads {
        let process = migrations.known.get(*thread).process_or_self();
        sums.entry(programs.first_of(process)).or_default().add(moves);
    }
    sums
}

/// The costs of the kernel's IDs for all processes.
struct AllIds {
    found: Vec<Ids>,
    is_whole: bool,
}

/// Compares the kernel's policy with percid's table. Finds nothing if the kernel is not known.
fn ids(recording: &LoadedRecording<'_>, machine: &Machine) -> Result<AllIds, Failure> {
    let release = recording.trace.origin.release.as_deref();
    let kernel = release.and_then(Generation::hinted_by).map(policies::of_generation);
    let (Some(kernel), Some(table)) = (kernel, policies::find("percid-table")) else {
        return Ok(AllIds { found: Vec::new(), is_whole: true });
    };
    let mut trace = recording.window.cut(&recording.trace);
    gaps::close(&mut trace);
    let settings = Settings { processes: recording.processes.clone(), ..Settings::default() };
    let pair: [&'static PolicySpec; 2] = [kernel, table];
    let replays = replay_all(&trace, machine, &pair, &settings, &recording.interrupt)?;
    let [by_kernel, by_table] = &replays[..] else {
        return Ok(AllIds { found: Vec::new(), is_whole: false });
    };
    let is_whole = by_kernel.is_whole && by_table.is_whole;
    Ok(AllIds { found: dearer(kernel.name, by_kernel, by_table), is_whole })
}

/// Returns the sums of each program over its processes.
fn together(found: Vec<Ids>, programs: &Programs) -> Vec<Ids> {
    let mut all: HashMap<Tid, Ids> = HashMap::new();
    for ids in found {
        let process = programs.first_of(ids.process);
        match all.get_mut(&process) {
            Some(sum) => sum.add(&ids),
            None => drop(all.insert(process, Ids { process, ..ids })),
        }
    }
    all.into_values().collect()
}

fn dearer(policy: &'static str, by_kernel: &Replay, by_table: &Replay) -> Vec<Ids> {
    let pairs = by_kernel.spaces.iter().filter_map(|kernel| {
        let spaces = &by_table.spaces;
        let at = spaces.binary_search_by_key(&kernel.number, |space| space.number).ok()?;
        let table = &spaces[at];
        (kernel.stuck.is_none() && table.stuck.is_none()).then_some((kernel, table))
    });
    let ids = pairs.map(|(kernel, table)| Ids {
        process: kernel.summary.process,
        policy,
        lost_ns: kernel.tally.burst_ns.saturating_sub(table.tally.burst_ns),
        copies: [kernel.tally.ids_used, table.tally.ids_used],
        most_running: kernel.summary.most_running,
        elsewhere: [kernel, table].map(|space| 1.0 - space.tally.acquisitions.shares()[1]),
        turns: kernel.summary.turns,
        threads: kernel.summary.threads,
    });
    ids.filter(|ids| ids.lost_ns > 0).collect()
}

const EACH: &str = "Each finding is by itself: they do not add up.";

impl AnalysisFigures for Advice {
    fn text(&self, top: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let findings = self.findings.iter().flatten();
        if findings.clone().next().is_none() {
            return writeln!(f, "{}", self.nothing());
        }
        writeln!(f, "{}", self.table(top))?;
        writeln!(f, "{}{EACH}", self.unseen())?;
        for (number, finding) in findings.take(top).enumerate() {
            write!(f, "\n{}. {finding}", number + 1)?;
        }
        match self.more(top) {
            0 => Ok(()),
            more => writeln!(f, "\nand {more} more that cost less"),
        }
    }

    fn verdict(&self) -> String {
        let findings = self.findings.iter().flatten();
        match findings.clone().next() {
            None => format!(
                "{} nothing was found that cost {} ms or more.",
                self.on,
                ms(self.told_from_ns)
            ),
            Some(first) => format!(
                "The dearest of {} findings cost {} ms, {:.1} % of the recording: {}.",
                findings.count() + self.findings_left_out,
                ms(first.lost_ns),
                first.share_percent,
                first.short()
            ),
        }
    }

    fn show(&self, top: usize, page: &mut Page) {
        let findings: Vec<&Finding> = self.findings.iter().flatten().take(top).collect();
        if findings.is_empty() {
            page.section("Time lost", self.nothing());
            return;
        }
        page.section("Time lost", format!("{}{EACH}", self.unseen()));
        let time = Axis::new("time lost").unit("ms");
        let mut dots =
            Dots::new(Axis::new("finding"), time, ["lost"]).notes(["lost", "at least", "at most"]);
        for (number, finding) in findings.iter().enumerate() {
            dots.row(format!("{}. {}", number + 1, finding.short()), [dot(finding)]);
        }
        let shown = "A dot is the time lost, the line what the truth is between.";
        page.chart("Findings in the order of what they cost", shown, dots);
        self.table(top).show_on(page);
        for (number, finding) in findings.iter().enumerate() {
            finding.show(number + 1, page);
        }
    }
}

fn dot(finding: &Finding) -> Dot {
    let as_ms = |ns: u64| ns as f64 / 1e6;
    let dot = Dot::new([as_ms(finding.lost_ns)]).note(ms(finding.lost_ns));
    match (finding.at_least_ns, finding.at_most_ns) {
        (Some(least), Some(most)) => {
            dot.range(as_ms(least), as_ms(most)).note(ms(least)).note(ms(most))
        }
        _ => dot.note("-").note("-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use percid_trace::event::Shares;

    #[test]
    fn threads_of_the_kernel_are_those_that_are_no_members_and_come_of_none() {
        let fork = |parent, child| What::Fork { parent, child, shares: Shares::Nothing };
        let all = [What::Member { thread: 8, process: 7 }, fork(8, 9), fork(KTHREADD, 10)];
        let events = all.map(|what| Event { time: 0, cpu: 0, what });
        let is_kernel = kernel_threads(&events);
        assert_eq!([7, 9, 10, 11].map(is_kernel), [false, false, true, true]);
        let is_kernel = kernel_threads(&events[1..]);
        assert_eq!([10, 11].map(is_kernel), [false; 2], "nothing lists members");
    }
}
