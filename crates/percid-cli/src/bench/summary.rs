//! The output of `percid` without `--full`: at most 25 lines that need no other knowledge.

use std::fmt;

use anstyle::{AnsiColor, Style};

use super::document::Document;
use super::figures::{Figure, TeamName};
use super::intermittent::IntermittentReport;
use super::memory::MemoryReport;
use super::ops::OpsReport;
use super::titles::title;
use crate::judged::Judged;
use crate::machine::{MachineReport, wrapped};
use percid_command::burst::AREA;
use percid_command::text_table::{Align, TextTable};

const HEADING: Style = Style::new().bold();
const OURS: Style = AnsiColor::Green.on_default();
const OTHERS: Style = AnsiColor::BrightBlack.on_default();

/// Length of the longest bar, in columns.
const BAR: f64 = 57.0;

/// The costs of operations compared to common alternatives.
#[derive(Debug)]
pub(super) struct Costs<'a> {
    figures: Vec<&'a Figure>,
    team: TeamName,
    source: &'a str,
}

/// A structure of percid with the alternatives that a thread can own, and those that all threads
/// can share. The first alternative that was measured counts.
struct Structure {
    title: &'static str,
    name: &'static str,
    own: &'static [(&'static str, &'static str)],
    shared: &'static [(&'static str, &'static str)],
}

const STRUCTURES: [Structure; 5] = [
    Structure {
        title: "Stack (free list): push, pop",
        name: "stack_push_pop",
        own: &[("thread_local_vec", "Vec")],
        shared: &[("array_queue", "ArrayQueue"), ("mutex_vec", "Vec in a Mutex")],
    },
    Structure {
        title: "Pool: get and put 64 bytes",
        name: "pool_get_put",
        own: &[("mimalloc", "mimalloc"), ("malloc_free", "malloc")],
        shared: &[],
    },
    Structure {
        title: "Local: add under a lock",
        name: "local_with",
        own: &[("std_mutex_private", "Mutex")],
        shared: &[("std_mutex_shared", "Mutex")],
    },
    Structure {
        title: "Histogram: record a value",
        name: "histogram_record",
        own: &[],
        shared: &[("hdrhistogram", "hdrhistogram, Mutex")],
    },
    Structure {
        title: "Ring: append 16 bytes",
        name: "ring_append",
        own: &[],
        shared: &[("array_queue_overwrite", "ArrayQueue")],
    },
];

impl<'a> Costs<'a> {
    /// Returns the costs with one thread on each CPU. `None` if nothing was measured.
    pub(super) fn of(ops: &'a OpsReport, machine: &'a MachineReport) -> Option<Self> {
        let teams = ops.results.iter().map(|figure| figure.team);
        let one_each = |team: &TeamName| team.pinned || team.threads == machine.allowed_count;
        let team = teams.filter(one_each).max_by_key(|team| (team.pinned, team.threads))?;
        let figures = ops.results.iter().filter(|figure| figure.team == team).collect();
        Some(Costs { figures, team, source: machine.source() })
    }

    fn find(&self, name: &str) -> Option<&'a Figure> {
        let is_it = |figure: &&Figure| [self.source, "none"].contains(&figure.source.as_str());
        self.figures.iter().copied().filter(is_it).find(|figure| figure.op == name)
    }

    fn ns(&self, name: &str) -> Option<f64> {
        self.find(name).map(|figure| figure.ns_min)
    }

    /// Returns the name and the value of the first of these that was measured.
    fn first(&self, candidates: &[(&str, &'static str)]) -> [String; 2] {
        let measured = |&(name, title): &(_, &str)| Some([title.to_owned(), ns(self.ns(name)?)]);
        candidates.iter().find_map(measured).unwrap_or_default()
    }

    /// Returns the cost of an increment beside that of an atomic, in one sentence.
    pub(super) fn told(&self) -> Option<String> {
        let threads = self.team.threads;
        let (other, of) = match self.ns("atomic_shared").filter(|_| threads > 1) {
            Some(shared) => (shared, format!("an atomic that {threads} threads share")),
            None => (self.ns("atomic_private")?, "an atomic of its own".to_owned()),
        };
        let own = ns(self.ns("counter_add")?);
        Some(format!(
            "An increment of percid's counter takes {own} ns, that of {of} {} ns.",
            ns(other)
        ))
    }

    fn increments(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.team.threads;
        let rounds = self.find("counter_add").map_or(0, |figure| figure.rounds);
        let who = match (threads, self.team.pinned) {
            (1, _) => "one thread".to_owned(),
            (_, true) => format!("each of {threads} threads on their own CPUs"),
            (_, false) => format!("each of {threads} threads"),
        };
        writeln!(
            f,
            "{HEADING}One increment by {who}, in nanoseconds (fastest of {rounds} rounds){HEADING:#}"
        )?;
        let shared = format!("an atomic that {threads} threads share");
        let bars = [
            ("counter_add", "percid Counter", OURS),
            ("atomic_private", title("atomic_private"), OTHERS),
            ("atomic_shared", shared.as_str(), OTHERS),
        ];
        let bars = bars.into_iter().filter(|(name, ..)| threads > 1 || *name != "atomic_shared");
        let bars: Vec<_> =
            bars.filter_map(|(name, title, style)| Some((self.ns(name)?, title, style))).collect();
        let longest = bars.iter().fold(0.0, |longest, (ns, ..)| f64::max(longest, *ns));
        for (cost, title, style) in bars {
            let bar = bar(BAR * cost / longest);
            writeln!(f, "  {title:<32} {:>7} {style}{bar}{style:#}", ns(cost))?;
        }
        Ok(())
    }

    fn structures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, right) = (Align::Left, Align::Right);
        let mut table = TextTable::new([
            ("The same for", left),
            ("percid", right),
            ("or, for each thread", left),
            ("ns", right),
            ("or, one for all", left),
            ("ns", right),
        ]);
        for structure in &STRUCTURES {
            let Some(ours) = self.ns(structure.name) else { continue };
            let names = [structure.title.to_owned(), ns(ours)];
            let others = [structure.own, structure.shared].map(|others| self.first(others));
            table.row(names.into_iter().chain(others.concat()).collect());
        }
        write!(f, "{table}")
    }
}

impl fmt::Display for Costs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.increments(f)?;
        self.structures(f)
    }
}

fn ns(ns: f64) -> String {
    if ns < 1000.0 { format!("{ns:.1}") } else { format!("{ns:.0}") }
}

/// Returns a bar of this width, to an eighth of a column.
fn bar(width: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (width * 8.0).round().max(1.0) as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// The lines after the costs: stability of IDs, memory, exactness, and missing parts.
#[derive(Debug)]
pub(super) struct Facts<'a>(pub(super) &'a Document);

impl fmt::Display for Facts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        self.sentences().iter().try_for_each(|fact| writeln!(f, "{}", wrapped(fact)))?;
        writeln!(f, "All tables: percid --full. Pictures: percid --html FILE. Data: percid --json.")
    }
}

impl Facts<'_> {
    /// Returns the facts, not broken into lines.
    pub(super) fn sentences(&self) -> Vec<String> {
        let document = self.0;
        let source = document.machine.source();
        let no_ids = |source| format!("{} (percid info says why)", title(source));
        let mut missing: Vec<String> = document.machine.unavailable().map(no_ids).collect();
        let stay = document.intermittent.as_ref().and_then(|part| stay(part, source));
        let memory = document.memory.as_ref().map(memory_fact);
        let exact = document.ops.as_ref().map(|ops| exactness(&ops.report, document.is_exact()));
        let names = ["whether IDs stay with their CPU", "memory", "single operations"];
        let mut facts = Vec::new();
        for (fact, name) in [stay, memory, exact].into_iter().zip(names) {
            match fact {
                Some(fact) => facts.push(fact),
                None => missing.push(name.to_owned()),
            }
        }
        if !missing.is_empty() {
            facts.push(format!("Not measured: {}.", missing.join("; ")));
        }
        facts
    }
}

/// Returns a sentence that reports whether each CPU reused one shard, and the time that it saved after
/// the longest pause.
fn stay(part: &Judged<IntermittentReport>, source: &str) -> Option<String> {
    let report = &part.report;
    let longest = report.rows.iter().map(|row| row.delay_ms).max()?;
    let find =
        |index: &str| report.rows.iter().find(|row| row.index == index && row.delay_ms == longest);
    let (ours, remote) = (find(source)?, find("forced-remote")?);
    let stays = match ours.indices_per_cpu_max {
        1 => "Yes: each CPU came back to one shard".to_owned(),
        most => format!("No: a CPU came to {most} different shards"),
    };
    if let Some(noise) = part.hiding() {
        let fact = wrapped(&format!("Do IDs stay with their CPU? {stays}. No times:"));
        return Some(format!("{fact}\n  {noise}"));
    }
    let (own, other) = (ours.ns_later?, remote.ns_later?);
    let pause = longest * ours.threads as u64;
    let saved = (100.0 * (1.0 - own / other)).round();
    let saved = if saved >= 1.0 { format!("{saved} % saved") } else { "nothing saved".to_owned() };
    Some(format!(
        "Do IDs stay with their CPU? {stays}. Touching {} KiB after a pause of {pause} ms took {} ns in \
         that shard and {} ns in another CPU's: {saved}.",
        AREA / 1024,
        ns(own),
        ns(other),
    ))
}

fn memory_fact(memory: &MemoryReport) -> String {
    let MemoryReport { counters, ids, per_counter_and_id, .. } = memory;
    format!(
        "Memory: {per_counter_and_id:.1} bytes per counter and ID ({counters} counters, {ids} IDs); a \
         padded word takes 64."
    )
}

fn exactness(ops: &OpsReport, is_exact: bool) -> String {
    if is_exact {
        format!(
            "Exact: nothing was lost or doubled in {} counters, lists, pools, locks, histograms and \
             rings; {:.0} million operations are accounted for.",
            ops.sums.len(),
            ops.operations() as f64 / 1e6
        )
    } else {
        "WRONG: a structure does not account for all that went into it; standard error names it."
            .to_owned()
    }
}

#[cfg(test)]
mod tests;
