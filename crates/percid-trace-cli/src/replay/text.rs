//! A replay as text.

use std::fmt;

use percid_command::table::Table;

use crate::printable::printable;

use super::figures::{PolicyFigures, ProcessFigures, Results};

/// Message for a trace without processes.
pub(super) const NOBODY: &str = "No process runs in the trace.";

/// The results, of which `top` processes are shown.
pub(super) struct Text<'a> {
    pub(super) results: &'a Results,
    pub(super) top: usize,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Results { quality, trace, processes, area_bytes, .. } = self.results;
        write!(f, "{quality}\n{trace}")?;
        writeln!(f, "Replayed on {}, {area_bytes} bytes behind each ID.", machine(self.results))?;
        if processes.is_empty() && !self.results.interrupted {
            writeln!(f, "{NOBODY}")?;
        }
        for process in processes.iter().take(self.top) {
            writeln!(f, "\n{}", title(process))?;
            writeln!(f, "  {}", summary(process))?;
            write!(f, "{}", table(process))?;
            for left_out in &process.left_out {
                writeln!(f, "  {left_out}")?;
            }
            for sentence in &process.advice {
                writeln!(f, "  - {sentence}")?;
            }
        }
        let all = processes.len() as u64 + self.results.processes_left_out;
        let more = all.saturating_sub(self.top as u64);
        if more > 0 {
            let more = counted(more, "more process", "more processes");
            writeln!(f, "\nand {more} with fewer turns (--limit {all}, or --json)")?;
        }
        match &self.results.numa_scan {
            Some(scan) => write!(f, "{scan}"),
            None => Ok(()),
        }
    }
}

/// The machine and its shape.
pub(super) fn machine(results: &Results) -> String {
    let machine = &results.machine;
    format!(
        "{} ({}, {}, {}, {})",
        machine.name,
        counted(machine.cpus, "CPU", "CPUs"),
        counted(machine.cores, "core", "cores"),
        counted(machine.l3s, "L3 cache", "L3 caches"),
        counted(machine.nodes, "node", "nodes")
    )
}

/// Returns the title of a process.
pub(super) fn title(process: &ProcessFigures) -> String {
    let summary = &process.summary;
    let name =
        if summary.name.is_empty() { "unnamed".to_owned() } else { printable(&summary.name) };
    let guessed = if summary.guessed { ", by itself as far as the trace says" } else { "" };
    format!("{name} ({}{guessed})", summary.process)
}

/// Returns the figures that are the same under all policies.
pub(super) fn summary(process: &ProcessFigures) -> String {
    let summary = &process.summary;
    let moves = summary.moves;
    format!(
        "{}, at most {} at once, {} running at once; {:.3} s on CPUs in {}; moved {}, {} to another L3 cache, {} to \
         another node",
        counted(summary.threads, "thread", "threads"),
        summary.most_threads,
        summary.most_running,
        summary.run_ns as f64 / 1e9,
        counted(summary.turns, "turn", "turns"),
        counted(moves.all(), "time", "times"),
        moves.across_l3s(),
        moves.other_node
    )
}

/// The policies beside each other.
pub(super) fn table(process: &ProcessFigures) -> Table {
    let columns = [
        "policy", "IDs", "bound", "density", "CPU", "core", "L3", "node", "steals", "far", "nodes",
        "memory", "us/turn",
    ];
    let mut table = Table::new(columns, 1);
    for figures in &process.policies {
        table.row(row(figures));
    }
    table
}

fn row(figures: &PolicyFigures) -> [String; 13] {
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    [
        figures.policy.to_owned(),
        figures.ids_used.to_string(),
        figures.ids_bound.to_string(),
        format!("{:.2}", figures.density),
        percent(figures.same_cpu),
        percent(figures.same_core),
        percent(figures.same_l3),
        percent(figures.same_node),
        figures.steals.to_string(),
        figures.across_l3s.to_string(),
        figures.across_nodes.to_string(),
        memory(figures.memory_bytes),
        format!("{:.2}", figures.ns_per_turn / 1000.0),
    ]
}

/// A number of things.
fn counted<N: Into<u64>>(number: N, one: &str, many: &str) -> String {
    let number = number.into();
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Bytes in the largest unit in which they are at least one.
fn memory(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut amount = bytes as f64;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < units.len() {
        amount /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && amount < 100.0 && amount.fract() != 0.0);
    format!("{amount:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_in_units_that_fit() {
        let told = [0, 1023, 1024, 16384 * 11, 1536, 1 << 30].map(memory);
        assert_eq!(told, ["0 B", "1023 B", "1 KiB", "176 KiB", "1.5 KiB", "1 GiB"]);
    }
}
