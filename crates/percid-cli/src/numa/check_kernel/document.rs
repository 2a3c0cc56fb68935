//! The printed results: the JSON document and the text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use percid_command::report;
use percid_report::{Axis, Bars, Page};
use serde::Serialize;

use super::faults::{Faults, OfNode};
use super::observation::Observation;
use super::verdict::{Advice, Confidence, Evidence, Verdict, judge};
use crate::numa::figures::{mebibytes, percent, share};
use crate::numa::kernel_counters::{KernelCounters, told};
use crate::numa::nodes::{self, KernelBalancing};
use crate::numa::pages::page_size;
use crate::numa::process::Process;

/// The document of `percid numa check-kernel --json`.
#[derive(Debug, Serialize)]
pub(super) struct CostDocument {
    pid: u32,
    name: String,
    seconds: f64,
    /// `kernel.numa_balancing`; `null` if the kernel has no such setting.
    kernel_balancing: Option<u32>,
    nodes_with_memory: usize,
    /// Counters of the whole machine during the observation.
    kernel_counters: KernelCounters,
    local_share_first: Option<f64>,
    local_share_last: Option<f64>,
    /// Bytes of all mappings; `null` if the kernel does not report them or access is denied.
    memory_before: Option<BTreeMap<u32, u64>>,
    memory_after: Option<BTreeMap<u32, u64>>,
    /// The kernel's per-thread fault counts; `null` if the kernel does not record them.
    threads: Option<Faults>,
    /// The accesses by the nodes on which the threads were last seen; empty if the kernel records
    /// nothing.
    by_node: BTreeMap<u32, OfNode>,
    /// The share of the accesses that the threads made in proportion to their run time.
    spread: Option<f64>,
    /// Pages that balancing moved, as a share of the process's pages.
    moved_share: Option<f64>,
    /// The share of the process's run time spent in the kernel: an upper bound of the cost of
    /// balancing.
    system_share: Option<f64>,
    /// The process's share of the machine's run time.
    share_of_machine: Option<f64>,
    verdict: Verdict,
    ended: bool,
    interrupted: bool,
}

impl CostDocument {
    pub(super) fn new(process: Process, name: String, seen: &Observation) -> CostDocument {
        let balancing = KernelBalancing::read();
        let local = |counters: &KernelCounters| {
            let faults = counters.numa_hint_faults?;
            share(counters.numa_hint_faults_local?, faults)
        };
        let pages = |memory: &BTreeMap<u32, u64>| memory.values().sum::<u64>() / page_size() as u64;
        let resident = seen.memory_after.as_ref().map(pages);
        let moved = seen.faults.map(|faults| faults.moved).or(seen.all.numa_pages_migrated);
        let moved_share = moved.zip(resident);
        let moved_share = moved_share.and_then(|(moved, resident)| share(moved, resident));
        let run = seen.process.zip(seen.machine);
        let share_of_machine = run.and_then(|(own, all)| share(own.all(), all.all()));
        let evidence = Evidence {
            nodes: nodes::with_memory().len(),
            is_on: balancing.is_on(),
            faults: seen.all.numa_hint_faults.unwrap_or(0),
            private: seen.faults.and_then(|faults| share(faults.private, faults.all())),
            spread: seen.spread,
            local_first: local(&seen.first),
            local_last: local(&seen.last).or(local(&seen.all)),
            moved: moved_share,
            share_of_machine,
        };
        CostDocument {
            pid: process.number,
            name,
            seconds: seen.seconds,
            kernel_balancing: balancing.value,
            nodes_with_memory: evidence.nodes,
            kernel_counters: seen.all,
            local_share_first: evidence.local_first,
            local_share_last: evidence.local_last,
            memory_before: seen.memory_before.clone(),
            memory_after: seen.memory_after.clone(),
            threads: seen.faults,
            by_node: seen.by_node.clone(),
            spread: seen.spread,
            moved_share,
            system_share: seen.process.and_then(|own| share(own.system, own.all())),
            share_of_machine,
            verdict: judge(&evidence),
            ended: seen.ended,
            interrupted: seen.interrupted,
        }
    }

    pub(super) fn page(&self) -> Page {
        let CostDocument { pid, seconds, verdict: Verdict { advice, reason, .. }, .. } = self;
        let advised = match advice {
            Advice::On => "should be on",
            Advice::Off => "should be off",
            Advice::CannotTell => "has no verdict",
        };
        let verdict = format!(
            "The kernel's balancing {advised} for process {pid}, observed for {seconds:.1} s: {reason}."
        );
        let what = format!("Process {pid} ({}).", self.name);
        let title = "percid numa check-kernel";
        let mut page = report::page(title, verdict, &what, self.interrupted);
        let memory = [&self.memory_before, &self.memory_after];
        let nodes: BTreeSet<u32> =
            memory.into_iter().flatten().flat_map(BTreeMap::keys).copied().collect();
        let (node, axis) = (Axis::new("node"), Axis::new("memory").unit("MiB"));
        let mut bars = Bars::grouped(node, axis, ["at first", "at the end"]);
        for node in &nodes {
            let on = |memory: &Option<BTreeMap<u32, u64>>| {
                let bytes = memory.as_ref()?.get(node).copied().unwrap_or(0);
                Some(bytes as f64 / (1_u64 << 20) as f64)
            };
            bars.category(format!("node {node}"), memory.map(on));
        }
        if !nodes.is_empty() {
            page.chart("Memory by node", "", bars);
        }
        page.section("All that was found", "").printed(self.to_string().trim_end());
        page
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted
    }
}

impl fmt::Display for CostDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended = if self.ended { ", until it ended" } else { "" };
        writeln!(f, "process {} ({}), {:.1} s{ended}", self.pid, self.name, self.seconds)?;
        writeln!(
            f,
            "kernel's balancing: {}",
            KernelBalancing { value: self.kernel_balancing }.text()
        )?;
        writeln!(
            f,
            "\ncounted for the whole machine, of whose run time the process had {} %:",
            percent(self.share_of_machine)
        )?;
        for (name, meaning, count) in self.kernel_counters.each() {
            writeln!(f, "  {:>10}  {name:21}  {meaning}", told(count))?;
        }
        writeln!(
            f,
            "\nlocal accesses: {} % of the first that were seen, {} % of the last",
            percent(self.local_share_first),
            percent(self.local_share_last),
        )?;
        writeln!(
            f,
            "memory: {}, then {}",
            by_node(&self.memory_before),
            by_node(&self.memory_after)
        )?;
        if let Some(threads) = self.threads {
            let private = percent(share(threads.private, threads.all()));
            let spread = percent(self.spread);
            writeln!(f, "accesses by the thread that made the one before: {private} %")?;
            writeln!(f, "accesses in proportion to the threads' run time: {spread} %")?;
        }
        for (node, of) in &self.by_node {
            let (local, threads) = (percent(share(of.local, of.accesses)), of.threads);
            writeln!(f, "local accesses of threads on node {node}: {local} % ({threads} threads)")?;
        }
        writeln!(f, "moved by balancing: {} % of its pages", percent(self.moved_share))?;
        writeln!(
            f,
            "in the kernel: {} % of its run time, of which balancing is a part",
            percent(self.system_share)
        )?;
        let advice = match self.verdict.advice {
            Advice::On => "on",
            Advice::Off => "off",
            Advice::CannotTell => "cannot tell",
        };
        write!(f, "\nverdict: {advice}: {}", self.verdict.reason)?;
        match (self.verdict.advice, self.verdict.confidence) {
            (Advice::CannotTell, _) => writeln!(f),
            (_, Confidence::High) => writeln!(f, " (high confidence)"),
            (_, Confidence::Medium) => writeln!(f, " (medium confidence)"),
            (_, Confidence::Low) => {
                writeln!(f, " (low confidence: much else ran, or it is not known)")
            }
        }
    }
}

fn by_node(memory: &Option<BTreeMap<u32, u64>>) -> String {
    let Some(memory) = memory else { return "the kernel does not say".to_owned() };
    let nodes =
        memory.iter().map(|(node, bytes)| format!("{} MiB on node {node}", mebibytes(*bytes)));
    nodes.collect::<Vec<_>>().join(", ")
}
