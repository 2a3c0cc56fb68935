//! The walks of the kernel's NUMA scan under all rule sets, as text, page and JSON document show
//! them.

use std::collections::BTreeMap;
use std::fmt;

use percid_command::table::Table;
use percid_report::Page;
use percid_rules::scan::SkipReason;
use percid_trace::Trace;
use percid_trace::event::Tid;
use percid_trace::numa::{MigrateReason, What};
use percid_trace::scan_walk::{
    self, Costs, Difference, Inferred, Line, Placed, RULE_SETS, Replayed, RuleSet, Tally, Walk,
    of_release,
};
use serde::Serialize;

/// Lines of a difference that are shown.
const SHOWN: usize = 8;

/// The kernel's scan compared with other rule sets.
#[derive(Debug, Serialize)]
pub(super) struct ScanFigures {
    /// The rule set of the recorded kernel; `null` if its release has none.
    pub(super) kernel_rules: Option<&'static str>,
    migrations: Migrations,
    pub(super) processes: Vec<ProcessFigures>,
}

/// Moves of threads and pages in the whole trace.
#[derive(Debug, Default, Serialize)]
struct Migrations {
    hint_faults: u64,
    threads_moved: u64,
    threads_stuck: u64,
    threads_swapped: u64,
    /// Pages moved by NUMA balancing.
    pages_moved: u64,
    pages_failed: u64,
    /// Pages moved for other reasons.
    pages_moved_otherwise: u64,
}

/// One process that was scanned.
#[derive(Debug, Serialize)]
pub(super) struct ProcessFigures {
    process: Tid,
    /// The source of the walk: `probes` or `tracepoints`.
    source: &'static str,
    was_there: bool,
    scan_delay_ms: u64,
    scan_size_mib: u64,
    settings_known: bool,
    inferred: InferredFigures,
    /// `null` if the trace has no times.
    costs: Option<CostFigures>,
    kernel: WalkFigures,
    pub(super) rules: Vec<RulesFigures>,
}

#[derive(Debug, Serialize)]
struct InferredFigures {
    regions: u64,
    traits: u64,
    bound_passes: u64,
    late_looks: u64,
}

/// Costs of balancing for the process, in milliseconds, and its effect on pages.
#[derive(Debug, Serialize)]
struct CostFigures {
    pass_ms: f64,
    longest_pass_ms: f64,
    hint_faults: u64,
    hint_fault_ms: f64,
    longest_hint_fault_ms: f64,
    pages: u64,
    pages_of_several_threads: u64,
    moves: u64,
    moves_again: u64,
    /// The local share of the accesses, from 0 to 1, by the nodes of the threads; empty if the
    /// trace does not contain nodes.
    local_by_node: BTreeMap<u32, f64>,
    /// The local share of all; `null` if the trace does not contain nodes.
    local: Option<f64>,
    /// The local share by the rules of percid's balancer, and the number of pages that it would
    /// have moved.
    percid_local: Option<f64>,
    percid_moves: Option<u64>,
}

#[derive(Debug, Serialize)]
struct WalkFigures {
    passes: u64,
    skipped: BTreeMap<&'static str, u64>,
    pieces: u64,
    scanned_bytes: u64,
    regions: u64,
}

/// Figures of one rule set.
#[derive(Debug, Serialize)]
pub(super) struct RulesFigures {
    pub(super) rules: &'static str,
    about: &'static str,
    /// `true` if they are the rules of the recorded kernel.
    is_kernels: bool,
    #[serde(flatten)]
    walk: WalkFigures,
    sequences: i64,
    guessed_pieces: u64,
    pub(super) same_passes: u64,
    pub(super) same_lines: u64,
    pub(super) kernel_only: u64,
    pub(super) rules_only: u64,
    /// Share of equal lines, from 0 to 1.
    pub(super) same: f64,
    first_difference: Option<DifferenceFigures>,
}

#[derive(Debug, Serialize)]
struct DifferenceFigures {
    time_ns: u64,
    thread: Tid,
    sequence: i64,
    kernel_only: Vec<String>,
    rules_only: Vec<String>,
}

impl ScanFigures {
    /// Returns `None` if the trace has no scan of these processes; an empty list selects all
    /// processes.
    pub(super) fn from_trace(trace: &Trace, wanted: &[Tid]) -> Option<ScanFigures> {
        let release = trace.origin.release.as_deref().unwrap_or_default();
        let own = of_release(release);
        let walks = scan_walk::walks(trace);
        let is_wanted = |walk: &&Walk| wanted.is_empty() || wanted.contains(&walk.process);
        let mut walks: Vec<&Walk> = walks.iter().filter(is_wanted).collect();
        walks.sort_by_key(|walk| std::cmp::Reverse(walk.steps.len()));
        (!walks.is_empty()).then(|| ScanFigures {
            kernel_rules: own.map(|set| set.name),
            migrations: Migrations::from_trace(trace),
            processes: walks.into_iter().map(|walk| ProcessFigures::from_walk(walk, own)).collect(),
        })
    }
}

impl Migrations {
    fn from_trace(trace: &Trace) -> Migrations {
        let mut all = Migrations::default();
        for event in &trace.numa {
            match event.what {
                What::Hint { .. } => all.hint_faults += 1,
                What::Move(_) => all.threads_moved += 1,
                What::Stick(_) => all.threads_stuck += 1,
                What::Swap(..) => all.threads_swapped += 1,
                What::Migrated { moved, failed, reason: MigrateReason::NUMA_MISPLACED } => {
                    all.pages_moved += moved;
                    all.pages_failed += failed;
                }
                What::Migrated { moved, .. } => all.pages_moved_otherwise += moved,
                _ => {}
            }
        }
        all
    }
}

impl ProcessFigures {
    fn from_walk(walk: &Walk, own: Option<&RuleSet>) -> ProcessFigures {
        let Inferred { regions, traits, bound_passes, late_looks } = walk.inferred;
        let of = |set: &'static RuleSet| {
            RulesFigures::new(set, scan_walk::replay(walk, &set.rules), own == Some(set))
        };
        ProcessFigures {
            process: walk.process,
            source: walk.source.name(),
            was_there: walk.was_there,
            scan_delay_ms: walk.settings.scan_delay.as_millis() as u64,
            scan_size_mib: walk.settings.scan_size >> 20,
            settings_known: walk.settings_known,
            inferred: InferredFigures { regions, traits, bound_passes, late_looks },
            costs: CostFigures::from_costs(&walk.costs),
            kernel: WalkFigures::from_tally(&scan_walk::kernel(walk)),
            rules: RULE_SETS.iter().map(of).collect(),
        }
    }

    fn scanned_table(&self) -> Table {
        let columns = [
            "rules",
            "MiB",
            "pieces",
            "regions",
            "sequences",
            "same passes",
            "same lines",
            "kernel only",
            "rules only",
            "same %",
        ];
        let mut table = Table::new(columns, 1);
        let none = || "-".to_owned();
        let mut row = self.kernel.scanned("kernel");
        row.extend([none(), self.kernel.passes.to_string()]);
        row.extend([self.kernel_lines().to_string(), none(), none(), none()]);
        table.row(row);
        for figures in &self.rules {
            let mut row = figures.walk.scanned(&figures.name());
            row.extend([
                figures.sequences.to_string(),
                figures.same_passes.to_string(),
                figures.same_lines.to_string(),
                figures.kernel_only.to_string(),
                figures.rules_only.to_string(),
                format!("{:.1}", 100.0 * figures.same),
            ]);
            table.row(row);
        }
        table
    }

    fn kernel_lines(&self) -> u64 {
        let skipped: u64 = self.kernel.skipped.values().sum();
        if self.source == "probes" { skipped + self.kernel.pieces } else { skipped }
    }

    fn skipped_table(&self) -> Table {
        let columns = ["left out"].into_iter().chain(SkipReason::ALL.map(SkipReason::name));
        let mut table = Table::new(columns, 1);
        table.row(self.kernel.skips("kernel"));
        for figures in &self.rules {
            table.row(figures.walk.skips(&figures.name()));
        }
        table
    }

    fn title(&self) -> String {
        format!("NUMA scan of process {}", self.process)
    }

    /// Describes the walk and its source.
    fn about(&self) -> String {
        let how = match self.source {
            "probes" => "with its armed memory and hint faults",
            _ => {
                "by what was left out; what was armed is inferred from where the next pass began, \
                 and its users from who scanned it"
            }
        };
        let settings = if self.settings_known { "" } else { " (Linux's own; not in the trace)" };
        let InferredFigures { regions, traits, bound_passes, late_looks } = self.inferred;
        let there = match self.was_there {
            true => {
                " The process was there before the recording: what the scan remembered of it is \
                 not known, so first passes may differ."
            }
            false => "",
        };
        format!(
            "{} passes, {how}. Scan delay {} ms, {} MiB a pass{settings}. Inferred: {regions} \
             regions that no look had found, traits of {traits}, {bound_passes} passes by bound \
             threads, {late_looks} changes of regions between looks.{there}",
            self.kernel.passes, self.scan_delay_ms, self.scan_size_mib
        )
    }

    /// Describes the first difference from the kernel's own rules.
    fn first_difference(&self) -> Option<String> {
        let own = self.rules.iter().find(|figures| figures.is_kernels)?;
        let first = own.first_difference.as_ref()?;
        Some(format!(
            "{} parts from the kernel first at {:.6} s, in a pass by thread {} (sequence {}): only \
             the kernel {}; only the rules {}.",
            own.rules,
            first.time_ns as f64 / 1e9,
            first.thread,
            first.sequence,
            listed(&first.kernel_only),
            listed(&first.rules_only)
        ))
    }

    pub(super) fn show(&self, page: &mut Page) {
        let mut text = self.about();
        if let Some(costs) = &self.costs {
            text.push_str("\n\n");
            text.push_str(&costs.to_string());
        }
        if let Some(first) = self.first_difference() {
            text.push_str("\n\n");
            text.push_str(&first);
        }
        page.section(self.title(), text);
        self.scanned_table().show_on(page);
        self.skipped_table().show_on(page);
    }
}

fn listed(lines: &[String]) -> String {
    match lines {
        [] => "nothing".to_owned(),
        lines => lines.join(", "),
    }
}

impl CostFigures {
    /// `None` if the trace has no times.
    fn from_costs(costs: &Costs) -> Option<CostFigures> {
        let Costs { passes, hint_faults, .. } = costs;
        let ms = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        (passes.count + hint_faults.count > 0).then(|| CostFigures {
            pass_ms: ms(passes.total),
            longest_pass_ms: ms(passes.longest),
            hint_faults: hint_faults.count,
            hint_fault_ms: ms(hint_faults.total),
            longest_hint_fault_ms: ms(hint_faults.longest),
            pages: costs.pages,
            pages_of_several_threads: costs.pages_of_several_threads,
            moves: costs.moves,
            moves_again: costs.moves_again,
            local_by_node: costs
                .by_node
                .iter()
                .filter_map(|(&node, placed)| Some((node, local(placed)?)))
                .collect(),
            local: local(&costs.kernel()),
            percid_local: local(&costs.percid),
            percid_moves: (costs.percid.accesses > 0).then_some(costs.percid_moves),
        })
    }
}

fn local(placed: &Placed) -> Option<f64> {
    (placed.accesses > 0).then(|| placed.local as f64 / placed.accesses as f64)
}

impl fmt::Display for CostFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Passes took {:.2} ms, {:.2} the longest; {} hint faults with their moves {:.2} ms, {:.2} \
             the longest. {} pages were seen, {} of them used by several threads; {} moves, {} of \
             pages that had moved before.",
            self.pass_ms,
            self.longest_pass_ms,
            self.hint_faults,
            self.hint_fault_ms,
            self.longest_hint_fault_ms,
            self.pages,
            self.pages_of_several_threads,
            self.moves,
            self.moves_again
        )?;
        let (Some(local), Some(by_percid), Some(moves)) =
            (self.local, self.percid_local, self.percid_moves)
        else {
            return Ok(());
        };
        let nodes = self.local_by_node.iter();
        let nodes: Vec<String> =
            nodes.map(|(node, share)| format!("{:.1} % on node {node}", 100.0 * share)).collect();
        write!(
            f,
            " Of these accesses {:.1} % were local ({}); by the rules of percid's balancer {:.1} % \
             would have been, with {moves} moves.",
            100.0 * local,
            nodes.join(", "),
            100.0 * by_percid
        )
    }
}

impl WalkFigures {
    fn from_tally(tally: &Tally) -> WalkFigures {
        WalkFigures {
            passes: tally.passes,
            skipped: tally.noted.iter().map(|(reason, count)| (reason.name(), *count)).collect(),
            pieces: tally.armed,
            scanned_bytes: tally.armed_bytes,
            regions: tally.regions,
        }
    }

    fn scanned(&self, name: &str) -> Vec<String> {
        let mib = self.scanned_bytes as f64 / (1 << 20) as f64;
        let counts = [self.pieces, self.regions].map(|count| count.to_string());
        [name.to_owned(), format!("{mib:.1}")].into_iter().chain(counts).collect()
    }

    fn skips(&self, name: &str) -> Vec<String> {
        let count = |reason: SkipReason| self.skipped.get(reason.name()).copied().unwrap_or(0);
        let counts = SkipReason::ALL.map(|reason| count(reason).to_string());
        [name.to_owned()].into_iter().chain(counts).collect()
    }
}

impl RulesFigures {
    fn new(set: &'static RuleSet, replayed: Replayed, is_kernels: bool) -> RulesFigures {
        let agreement = &replayed.agreement;
        RulesFigures {
            rules: set.name,
            about: set.about,
            is_kernels,
            walk: WalkFigures::from_tally(&replayed.tally),
            sequences: replayed.sequences,
            guessed_pieces: replayed.guessed,
            same_passes: agreement.passes,
            same_lines: agreement.lines,
            kernel_only: agreement.kernel_only,
            rules_only: agreement.rules_only,
            same: agreement.share(),
            first_difference: agreement.first.as_ref().map(DifferenceFigures::from_difference),
        }
    }

    /// The kernel's own are marked.
    fn name(&self) -> String {
        format!("{}{}", self.rules, if self.is_kernels { " *" } else { "" })
    }
}

impl DifferenceFigures {
    fn from_difference(difference: &Difference) -> DifferenceFigures {
        DifferenceFigures {
            time_ns: difference.time,
            thread: difference.thread,
            sequence: difference.sequence,
            kernel_only: spelled(&difference.kernel_only),
            rules_only: spelled(&difference.rules_only),
        }
    }
}

fn spelled(lines: &[Line]) -> Vec<String> {
    let spell = |line: &Line| match line {
        Line::Noted(start, reason) => format!("{start:x} {reason}"),
        Line::Armed(start, end) => format!("scans {start:x}-{end:x}"),
    };
    let more = lines.len().saturating_sub(SHOWN);
    let mut spelled: Vec<String> = lines.iter().take(SHOWN).map(spell).collect();
    spelled.extend((more > 0).then(|| format!("and {more} more")));
    spelled
}

impl fmt::Display for ScanFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for process in &self.processes {
            writeln!(f, "\n{}", process.title())?;
            writeln!(f, "  {}", process.about())?;
            if let Some(costs) = &process.costs {
                writeln!(f, "  {costs}")?;
            }
            writeln!(f, "{}", process.scanned_table())?;
            write!(f, "{}", process.skipped_table())?;
            if let Some(first) = process.first_difference() {
                writeln!(f, "  - {first}")?;
            }
        }
        match self.kernel_rules {
            Some(_) => writeln!(f, "  * the rules of the kernel that was recorded")?,
            None => writeln!(f, "  The release does not tell which rules the kernel has.")?,
        }
        let Migrations {
            hint_faults,
            threads_moved,
            threads_stuck,
            threads_swapped,
            pages_moved,
            pages_failed,
            pages_moved_otherwise,
        } = self.migrations;
        writeln!(
            f,
            "  {hint_faults} hint faults; {threads_moved} threads went to other nodes, \
             {threads_swapped} changed places, {threads_stuck} could not; {pages_moved} pages \
             followed their users, {pages_failed} could not, {pages_moved_otherwise} moved for \
             other reasons."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use percid_trace::scan_walk::Times;

    #[test]
    fn costs_are_told_as_far_as_they_are_known() {
        let time = |count, total, longest| Times { count, total, longest };
        let plain = Costs {
            passes: time(3, 7_250_000, 4_000_000),
            hint_faults: time(10, 1_500_000, 500_000),
            pages: 8,
            pages_of_several_threads: 2,
            moves: 5,
            moves_again: 1,
            ..Costs::default()
        };
        let told = "Passes took 7.25 ms, 4.00 the longest; 10 hint faults with their moves 1.50 ms, 0.50 the \
                    longest. 8 pages were seen, 2 of them used by several threads; 5 moves, 1 of pages that \
                    had moved before.";
        let figures = CostFigures::from_costs(&plain).expect("times");
        assert_eq!(figures.to_string(), told);
        assert_eq!((figures.local, figures.percid_moves), (None, None));

        let placed = |accesses, local| Placed { accesses, local };
        let by_node = [(0, placed(6, 6)), (1, placed(2, 0))].into();
        let nodes = Costs { by_node, percid: placed(8, 7), percid_moves: 4, ..plain };
        let more = " Of these accesses 75.0 % were local (100.0 % on node 0, 0.0 % on node 1); by the rules of \
                    percid's balancer 87.5 % would have been, with 4 moves.";
        let figures = CostFigures::from_costs(&nodes).expect("times");
        assert_eq!(figures.to_string(), format!("{told}{more}"));
        assert!(CostFigures::from_costs(&Costs::default()).is_none(), "no times");
    }
}
