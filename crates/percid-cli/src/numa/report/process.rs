//! A process: the nodes of its memory, and the work of its balancers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::time::Duration;

use percid_numa::SkipReason;
use serde::Serialize;

use crate::numa::errno;
use crate::numa::figures::{counts, mebibytes, milliseconds, percent, share};
use crate::numa::kernel_counters::{KernelCounters, told};
use crate::numa::process::Process;
use crate::numa::publication::{self, Publication, Silence};
use crate::numa::published_report::{PublishedReport, Region};
use crate::numa::report::{tiers, timeline};
use percid_command::exit::{Exit, Failure};
use percid_command::interrupt::Interrupt;
use percid_command::report;
use percid_command::text_table::{Align, TextTable};
use percid_report::{Axis, Bars, Page};

/// The most nodes that have columns; the JSON has all.
const NODES_SHOWN: usize = 16;

/// The document of `percid numa report --pid PID --json`.
#[derive(Debug, Serialize)]
pub(crate) struct ProcessDocument {
    pid: u32,
    name: String,
    /// Bytes of all its mappings; `null` if the kernel does not report them.
    memory_by_node: Option<BTreeMap<u32, u64>>,
    /// Counters of the whole machine since it was started.
    kernel_counters: KernelCounters,
    /// The balancers' counts of the same events.
    balancer_counters: BalancerCounters,
    balancers: Vec<Balancer>,
    interrupted: bool,
    /// `true` if the text contains the timelines. The document always has them.
    #[serde(skip)]
    with_timeline: bool,
}

/// Totals over all balancers of the process, in pages and accesses.
#[derive(Debug, Default, Serialize)]
struct BalancerCounters {
    scanned: u64,
    accesses: u64,
    local: u64,
    moved: u64,
    failed: u64,
}

/// A balancer, or why there is no report of it.
#[derive(Debug, Serialize)]
struct Balancer {
    number: usize,
    error: Option<String>,
    scan_share: Option<f64>,
    move_share: Option<f64>,
    #[serde(flatten)]
    report: Option<PublishedReport>,
}

impl ProcessDocument {
    pub(crate) fn read(
        pid: u32,
        patience: Duration,
        with_timeline: bool,
        interrupt: &Interrupt,
    ) -> Result<ProcessDocument, Failure> {
        let process = Process { number: pid };
        let publications = publications(process)?;
        let mut document = ProcessDocument {
            pid,
            name: process.name(),
            memory_by_node: process.memory_by_node().ok(),
            kernel_counters: KernelCounters::read(),
            balancer_counters: BalancerCounters::default(),
            balancers: Vec::new(),
            interrupted: false,
            with_timeline,
        };
        for (number, publication) in (1..).zip(&publications) {
            let answer = publication.ask(&process, patience, interrupt);
            document.interrupted |= matches!(answer, Err(Silence::Interrupted));
            document.balancers.push(Balancer::new(number, answer));
        }
        let reports = document.balancers.iter().filter_map(|balancer| balancer.report.as_ref());
        document.balancer_counters = BalancerCounters::from_reports(reports);
        Ok(document)
    }

    pub(super) fn page(&self) -> Page {
        let what = format!("Process {} ({}).", self.pid, self.name);
        let answers = self.balancers.iter().filter(|balancer| balancer.report.is_some()).count();
        let (all, bytes) = (self.balancers.len(), self.memory_by_node.iter().flatten());
        let verdict = format!(
            "{answers} of {all} balancers of process {} answered, and its memory is {} MiB.",
            self.pid,
            mebibytes(bytes.map(|(_, bytes)| *bytes).sum())
        );
        let mut page = report::page("percid numa report", verdict, &what, self.interrupted);
        let memory = Axis::new("memory").unit("MiB");
        let mut bars = Bars::grouped(Axis::new("node"), memory, ["memory"]);
        for (node, bytes) in self.memory_by_node.iter().flatten() {
            bars.category(format!("node {node}"), [*bytes as f64 / (1_u64 << 20) as f64]);
        }
        if self.memory_by_node.as_ref().is_some_and(|memory| !memory.is_empty()) {
            page.chart("Memory by node", "", bars);
        }
        page.section("All that was found", "").printed(self.to_string().trim_end());
        page
    }

    pub(crate) fn exit(&self) -> Exit {
        let silent = self.balancers.iter().any(|balancer| balancer.report.is_none());
        match (self.interrupted, silent || self.balancers.is_empty()) {
            (true, _) => Exit::Interrupted,
            (false, true) => Exit::NoAnswer,
            (false, false) => Exit::Complete,
        }
    }
}

impl BalancerCounters {
    fn from_reports<'a>(reports: impl Iterator<Item = &'a PublishedReport>) -> BalancerCounters {
        let mut all = BalancerCounters::default();
        for region in reports.flat_map(|report| &report.regions) {
            let add = |count: &mut u64, more: u64| *count = count.saturating_add(more);
            add(&mut all.scanned, region.scanned);
            add(&mut all.accesses, region.local.saturating_add(region.remote));
            add(&mut all.local, region.local);
            add(&mut all.moved, region.moved);
            region.failed.values().for_each(|pages| add(&mut all.failed, *pages));
        }
        all
    }

    /// Returns the count beside each counter of the kernel; `None` if there is none.
    fn beside_kernels(&self) -> [Option<u64>; 7] {
        let BalancerCounters { scanned, accesses, local, moved, failed } = *self;
        [Some(scanned), None, Some(accesses), Some(local), Some(moved), None, Some(failed)]
    }
}

/// Returns the table of the kernel's counters and those of the balancers.
fn counters_table(kernel: &KernelCounters, balancers: &BalancerCounters) -> TextTable {
    let columns = [("counter", Align::Left), ("kernel", Align::Right), ("percid", Align::Right)];
    let mut table = TextTable::new(columns.into_iter().chain([("what", Align::Left)]));
    for ((name, meaning, count), ours) in kernel.each().zip(balancers.beside_kernels()) {
        let ours = ours.map_or_else(|| "-".to_owned(), |count| count.to_string());
        table.row(vec![name.to_owned(), told(count), ours, meaning.to_owned()]);
    }
    table
}

/// Returns the balancers of a process.
///
/// # Errors
///
/// Fails if the process does not exist, or this user may not read it.
pub(crate) fn publications(process: Process) -> Result<Vec<Publication>, Failure> {
    publication::list(&process).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => {
            Failure::new(format!("there is no process {}", process.number), cause)
        }
        _ => Failure::new(format!("cannot look into process {}", process.number), cause),
    })
}

impl Balancer {
    fn new(number: usize, answer: Result<PublishedReport, Silence>) -> Balancer {
        let (report, error) = match answer {
            Ok(report) => (Some(report), None),
            Err(Silence::Because(why)) => (None, Some(why)),
            Err(Silence::Ended) => (None, Some("the process has ended".to_owned())),
            Err(Silence::Interrupted) => (None, Some("interrupted".to_owned())),
        };
        let of = |share: fn(&PublishedReport) -> Option<f64>| report.as_ref().and_then(share);
        Balancer {
            number,
            error,
            scan_share: of(PublishedReport::scan_share),
            move_share: of(PublishedReport::move_share),
            report,
        }
    }
}

impl fmt::Display for ProcessDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "process {} ({})", self.pid, self.name)?;
        match &self.memory_by_node {
            None => writeln!(f, "memory: the kernel does not say where it is")?,
            Some(memory) => {
                let nodes = memory
                    .iter()
                    .map(|(node, bytes)| format!("{} MiB on node {node}", mebibytes(*bytes)));
                let nodes: Vec<String> = nodes.collect();
                let text = if nodes.is_empty() { "none".to_owned() } else { nodes.join(", ") };
                writeln!(f, "memory: {text}")?;
            }
        }
        if self.balancers.is_empty() {
            writeln!(f, "no balancer: the program publishes none (Balancer::publish)")?;
        }
        for balancer in &self.balancers {
            balancer.fmt(f)?;
            if let Some(report) = balancer.report.as_ref().filter(|_| self.with_timeline) {
                timeline::fmt(f, report)?;
            }
        }
        writeln!(f, "\ncounters of the kernel for the whole machine, and of the balancers")?;
        write!(f, "{}", counters_table(&self.kernel_counters, &self.balancer_counters))
    }
}

impl fmt::Display for Balancer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        if let Some(why) = &self.error {
            writeln!(f, "\nbalancer {number}: {why}")?;
        }
        let Some(report) = &self.report else { return Ok(()) };
        write!(f, "\nbalancer {number}: ")?;
        self.fmt_summary(f, report)?;
        match report.regions.is_empty() {
            true => writeln!(f, "  no regions"),
            false => fmt_regions(f, report),
        }
    }
}

impl Balancer {
    fn fmt_summary(&self, f: &mut fmt::Formatter<'_>, report: &PublishedReport) -> fmt::Result {
        writeln!(
            f,
            "{:.1} s old, {} passes in {} sequences, period {} ms",
            report.age().as_secs_f64(),
            report.passes,
            report.sequence,
            report.period_ns / 1_000_000,
        )?;
        if report.unreadable_passes > 0 {
            let blind = report.unreadable_passes;
            writeln!(
                f,
                "  {blind} passes could not read the process's mappings and armed nothing"
            )?;
        }
        if report.nodes.len() < 2 {
            writeln!(f, "  one node has memory: nothing is armed, nothing moves")?;
        }
        writeln!(
            f,
            "  scanning took {} ms, {} % of the threads' run time; moving {} ms, {} % of its age",
            milliseconds(report.scan_ns),
            percent(self.scan_share),
            milliseconds(report.move_ns),
            percent(self.move_share),
        )?;
        writeln!(
            f,
            "  {} threads, of which {} collide in the activity set; {} events lost",
            report.threads, report.collisions, report.events_lost
        )
    }
}

fn fmt_regions(f: &mut fmt::Formatter<'_>, report: &PublishedReport) -> fmt::Result {
    let nodes = shown_nodes(report);
    write!(f, "\n{}\n{}", memory_table(report, &nodes), work_table(report))?;
    tiers::fmt(f, report)?;
    write!(f, "\n{}", skips_table(report))?;
    for region in report.regions.iter().filter(|region| !region.failed.is_empty()) {
        let failed = region.failed.iter().map(|(number, pages)| (errno::name(*number), *pages));
        writeln!(f, "  {}: failed pages: {}", name(region), counts(failed))?;
    }
    Ok(())
}

/// Returns the nodes of the balancer, and other nodes that have its pages.
fn shown_nodes(report: &PublishedReport) -> Vec<u32> {
    let elsewhere = report.regions.iter().flat_map(|region| region.pages_by_node.keys());
    let nodes: BTreeSet<u32> = report.nodes.iter().chain(elsewhere).copied().collect();
    nodes.into_iter().take(NODES_SHOWN).collect()
}

fn name(region: &Region) -> String {
    format!("{:x}-{:x}", region.start, region.end)
}

fn memory_table(report: &PublishedReport, nodes: &[u32]) -> TextTable {
    let right = Align::Right;
    let mut table =
        TextTable::new([("region", Align::Left), ("access", Align::Left), ("MiB", right)]);
    let columns = nodes.iter().map(|node| (format!("node {node}"), right));
    table.group("% of pages on".to_owned(), columns);
    table.group("pages".to_owned(), ["absent", "pending"].map(|name| (name, right)));
    for region in &report.regions {
        let access = if region.gone { "gone" } else { region.access.name() };
        let bytes = region.end.saturating_sub(region.start);
        let mut row = vec![name(region), access.to_owned(), mebibytes(bytes)];
        row.extend(nodes.iter().map(|node| {
            let pages = region.pages_by_node.get(node).copied().unwrap_or(0);
            percent(share(pages, region.pages()))
        }));
        row.extend([region.absent, region.pending].map(|pages| pages.to_string()));
        table.row(row);
    }
    table
}

fn work_table(report: &PublishedReport) -> TextTable {
    let right = Align::Right;
    let mut table = TextTable::new([("region", Align::Left)]);
    table.group("% of accesses".to_owned(), ["local", "private"].map(|name| (name, right)));
    table.group("threads".to_owned(), [("active", right)]);
    table.group("pages".to_owned(), ["scanned", "moved"].map(|name| (name, right)));
    table.group("ms".to_owned(), ["scan", "move"].map(|name| (name, right)));
    for region in &report.regions {
        table.row(vec![
            name(region),
            percent(region.local_share()),
            percent(region.private_share()),
            region.active.to_string(),
            region.scanned.to_string(),
            region.moved.to_string(),
            milliseconds(region.scan_ns),
            milliseconds(region.move_ns),
        ]);
    }
    table
}

fn skips_table(report: &PublishedReport) -> TextTable {
    let names = SkipReason::ALL.map(|reason| (reason.to_string(), Align::Right));
    let columns = [("skipped".to_owned(), Align::Left)].into_iter().chain(names);
    let mut table = TextTable::new(columns);
    for region in &report.regions {
        let mut row = vec![name(region)];
        row.extend(SkipReason::ALL.map(|reason| region.skipped_for(reason).to_string()));
        table.row(row);
    }
    table
}
