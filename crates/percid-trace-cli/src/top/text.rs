//! A screen as text.

use std::fmt;

use percid_command::table::Table;
use percid_command::trace_top::Sort;

use super::figures::{Cpu, Line, TopFigures};
use crate::printable::labelled;
use crate::printable::printable;
use crate::times::{ms, percent};

/// A screen.
pub(super) struct Screen<'a> {
    pub(super) figures: &'a TopFigures,
    pub(super) sort: Sort,
    /// Number of lines of the table; `None` for as many as fit.
    pub(super) rows: Option<usize>,
    /// Size of the screen: lines, and characters in a line. `None` if there is no terminal.
    pub(super) size: Option<(usize, usize)>,
}

/// Lines of the table where there is no terminal.
const ROWS: usize = 20;

/// Characters of a line of CPUs where there is no terminal.
const COLUMNS: usize = 100;

/// Lines of CPUs, at most.
const CPU_LINES: usize = 6;

/// Lines of a table that are not about a thread.
const HEADING: usize = 2;

impl fmt::Display for Screen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.head();
        text.push(String::new());
        let room = self.size.map_or(ROWS, |(lines, _)| lines.saturating_sub(text.len() + HEADING));
        let rows = self.rows.unwrap_or(room);
        text.extend(self.table(rows).to_string().lines().map(str::to_owned));
        let more = self.figures.lines().len().saturating_sub(rows);
        if more > 0 {
            text.push(format!("  and {more} more"));
        }
        let (lines, columns) = self.size.unwrap_or((usize::MAX, usize::MAX));
        for line in text.iter().take(lines) {
            let end = line.char_indices().nth(columns).map_or(line.len(), |(end, _)| end);
            writeln!(f, "{}", &line[..end])?;
        }
        Ok(())
    }
}

impl Screen<'_> {
    fn head(&self) -> Vec<String> {
        let figures = self.figures;
        let seconds = |ns: u64| format!("{}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1000);
        let own = match figures.own_cpu_ns {
            Some(ns) => format!("; percid {} % of a CPU", percent(ns, figures.own_span_ns)),
            None => String::new(),
        };
        let mut head = vec![format!(
            "From {} to {} s: {} switches, {} wake-ups, {} events lost{own}",
            seconds(figures.since_ns),
            seconds(figures.until_ns),
            figures.switches,
            figures.wakeups,
            figures.lost,
        )];
        if let Some(ns) = figures.idle_while_waiting_ns {
            head.push(format!("CPUs idled while work waited: {} ms", ms(ns)));
        }
        if figures.left_out > 0 {
            head.push(format!(
                "{} EVENTS LEFT OUT (--max-events): the figures are of the first {} ms",
                figures.left_out,
                ms(figures.covered_ns)
            ));
        }
        if figures.intervals_skipped > 0 {
            head.push(format!(
                "{} INTERVALS before this one were over too soon to be shown",
                figures.intervals_skipped
            ));
        }
        head.extend(self.cpus());
        head
    }

    /// Returns the load of each CPU, with as many in a line as fit.
    fn cpus(&self) -> Vec<String> {
        let columns = self.size.map_or(COLUMNS, |(_, columns)| columns);
        let covered = self.figures.covered_ns;
        let mut lines = vec!["Busy:".to_owned()];
        for (nr, cpu) in self.figures.cpus.iter().enumerate() {
            let told = format!("  CPU {} {:>5} %", cpu.cpu, percent(cpu.busy_ns, covered));
            let fits = |line: &String| line.len() + told.len() <= columns || line.len() <= 5;
            if !lines.last().is_some_and(fits) {
                if lines.len() == CPU_LINES {
                    let rest = &self.figures.cpus[nr..];
                    let busy: u64 = rest.iter().map(|cpu: &Cpu| cpu.busy_ns).sum();
                    let mean = percent(busy, covered.saturating_mul(rest.len() as u64));
                    lines.push(format!("       and {} more, {mean} % on average", rest.len()));
                    break;
                }
                lines.push("     ".to_owned());
            }
            if let Some(line) = lines.last_mut() {
                line.push_str(&told);
            }
        }
        lines
    }

    fn table(&self, rows: usize) -> Table {
        let first = if self.figures.threads.is_some() { "thread" } else { "process" };
        let marked = |name: &str, sort: Sort| match self.sort == sort {
            true => format!("{name} <"),
            false => name.to_owned(),
        };
        let mut columns = vec![first.to_owned()];
        if self.figures.threads.is_some() {
            columns.push("process".to_owned());
        }
        let names = columns.len();
        columns.extend([
            marked("run %", Sort::Run),
            marked("waited ms", Sort::Wait),
            "longest".to_owned(),
            "waits".to_owned(),
            marked("switches", Sort::Switches),
            marked("moves", Sort::Migrations),
            marked("preempted", Sort::Preempted),
            "mostly by".to_owned(),
        ]);
        let mut table = Table::new(columns, names).ending_in_texts(1);
        for line in self.figures.lines().iter().take(rows) {
            table.row(line.cells(self.figures.covered_ns));
        }
        table
    }
}

impl Line {
    fn cells(&self, covered_ns: u64) -> Vec<String> {
        let mut cells = match self.thread {
            Some(thread) => vec![labelled(&self.name, thread), self.process.to_string()],
            None => vec![labelled(&self.name, self.process)],
        };
        let by = self.preempted_by.as_ref().map_or_else(
            || "-".to_owned(),
            |by| format!("{} ({}), {}", printable(&by.name), by.number, by.times),
        );
        cells.extend([
            percent(self.run_ns, covered_ns),
            ms(self.waited_ns),
            ms(self.longest_wait_ns),
            self.waits.to_string(),
            self.switches.to_string(),
            self.migrations.to_string(),
            self.preempted.to_string(),
            by,
        ]);
        cells
    }
}
