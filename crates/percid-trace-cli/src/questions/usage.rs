//! The subcommand `percid trace usage`, which shows what CPUs run over time, and when they idle
//! while a thread waits for another CPU.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use percid_command::exit::{Exit, Failure};
use percid_command::table::Table;
use percid_command::trace_questions::UsageArguments;
use percid_report::Page;
use percid_trace::Trace;
use percid_trace::quality::{Quality, Reason};
use percid_trace::questions::{self, CpuUsage, SliceUsage, Usage, UsageSettings};
use percid_trace::threads::ThreadNumber;
use serde::Serialize;

use super::names::{Named, Names};
use super::recording::{AnalysisFigures, LoadedRecording};
use crate::times::{ms, percent, seconds};

pub(crate) fn run(arguments: &UsageArguments, json: bool) -> Result<Exit, Failure> {
    let recording = LoadedRecording::load(&arguments.question)?;
    if !recording.permits_figures() {
        return recording.tell(TITLE, UsageFigures::default(), true, json);
    }
    let settings = UsageSettings {
        window: recording.window,
        processes: recording.processes.clone(),
        slices: arguments.slices as u32,
    };
    let found =
        recording.ask("usage", |control| questions::usage(&recording.trace, &settings, control));
    let reasons = unseen(&recording.trace, &recording.quality);
    let figures = UsageFigures::new(&recording.trace, &found, recording.lines(), reasons);
    recording.tell(TITLE, figures, found.is_whole, json)
}

const TITLE: &str = "percid trace usage";

/// Returns the reasons why it is not known what CPUs did at some times, as sentences.
fn unseen(trace: &Trace, judged: &Quality) -> Vec<String> {
    let hides = |reason: &Reason| {
        !matches!(
            reason,
            Reason::NoStates | Reason::Truncated | Reason::NotInherited | Reason::NoSwitch
        )
    };
    let found = judged.limitations.iter().map(|found| found.reason).filter(hides);
    let mut reasons: Vec<Reason> = found.collect();
    // A few inferred switches do not limit conclusions, but they hide turns.
    let is_inferred = |reason: &Reason| matches!(reason, Reason::Inferred(_));
    if judged.inferred > 0 && !reasons.iter().any(is_inferred) {
        reasons.push(Reason::Inferred(judged.inferred));
    }
    let mut sentences: Vec<String> = reasons.iter().map(Reason::to_string).collect();
    if !trace.origin.coverage.filtered {
        sentences.push(
            "what a CPU ran before its first switch is not known if that thread was seen elsewhere before"
                .to_owned(),
        );
    }
    sentences
}

/// The figures of the JSON document. Figures that the recording does not support are `None`.
#[derive(Debug, Default, Serialize)]
struct UsageFigures {
    begin_ns: u64,
    end_ns: u64,
    slice_ns: u64,
    /// `true` if only some threads were recorded: what CPUs did otherwise was not seen.
    #[serde(skip)]
    sees_some_only: bool,
    /// The reasons why `not_seen_ns` is not 0.
    not_seen_because: Vec<String>,
    cpus: Option<Vec<CpuFigures>>,
    /// The threads, in descending order of time on CPUs.
    threads: Option<Vec<ThreadFigures>>,
    threads_left_out: usize,
}

#[derive(Debug, Serialize)]
struct CpuFigures {
    cpu: usize,
    busy_ns: u64,
    idle_ns: u64,
    /// Time that the recording does not show, in nanoseconds.
    not_seen_ns: u64,
    idle_while_waiting_ns: u64,
    /// The idle period in which most time was lost.
    worst: Option<Worst>,
    slices: Vec<Part>,
}

#[derive(Debug, Serialize)]
struct Worst {
    since_ns: u64,
    lost_ns: u64,
}

#[derive(Debug, Serialize)]
struct Part {
    busy_ns: u64,
    idle_ns: u64,
    idle_while_waiting_ns: u64,
}

#[derive(Debug, Serialize)]
struct ThreadFigures {
    #[serde(flatten)]
    who: Named,
    run_ns: u64,
    cells: Vec<CellFigures>,
}

/// Time that a thread ran on a CPU in a slice.
#[derive(Debug, Serialize)]
struct CellFigures {
    cpu: u32,
    slice: u32,
    ns: u64,
}

impl UsageFigures {
    fn new(trace: &Trace, found: &Usage, lines: usize, reasons: Vec<String>) -> UsageFigures {
        let names = Names::new(trace, &found.known);
        let by_thread = found.cells.chunk_by(|a, b| a.thread == b.thread);
        let mut threads: Vec<(u64, &[questions::Cell])> =
            by_thread.map(|cells| (cells.iter().map(|cell| cell.ns).sum(), cells)).collect();
        let number = |cells: &[questions::Cell]| -> ThreadNumber {
            cells.first().map_or(0, |cell| cell.thread)
        };
        threads.sort_by_key(|(ns, cells)| (Reverse(*ns), number(cells)));
        let threads_left_out = threads.len().saturating_sub(lines);
        let told = threads.into_iter().take(lines).map(|(run_ns, cells)| ThreadFigures {
            who: names.thread(number(cells)),
            run_ns,
            cells: cells
                .iter()
                .map(|&questions::Cell { cpu, slice, ns, .. }| CellFigures { cpu, slice, ns })
                .collect(),
        });
        let span = found.to.saturating_sub(found.from);
        let cpus = found.cpus.iter().enumerate().map(|cpu| CpuFigures::new(cpu, span));
        let cpus: Vec<CpuFigures> = cpus.collect();
        let has_unseen = cpus.iter().any(|cpu| cpu.is_shown() && cpu.not_seen_ns > 0);
        UsageFigures {
            not_seen_because: if has_unseen { reasons } else { Vec::new() },
            begin_ns: found.from,
            end_ns: found.to,
            slice_ns: found.slice_ns,
            sees_some_only: trace.origin.coverage.filtered,
            cpus: Some(cpus),
            threads: Some(told.collect()),
            threads_left_out,
        }
    }

    /// Returns a table of the times of each CPU.
    fn cpus(&self) -> Table {
        let unseen = if self.sees_some_only { "not seen %" } else { "unknown %" };
        let columns = ["CPU", "busy %", "idle %", unseen, "idle while one waits, ms", "at s"];
        let mut table = Table::new(columns, 1);
        let span = self.end_ns.saturating_sub(self.begin_ns);
        for cpu in self.cpus.iter().flatten().filter(|cpu| cpu.is_shown()) {
            let worst = cpu.worst.as_ref().map(|worst| seconds(worst.since_ns));
            table.row([
                cpu.cpu.to_string(),
                percent(cpu.busy_ns, span),
                percent(cpu.idle_ns, span),
                percent(cpu.not_seen_ns, span),
                ms(cpu.idle_while_waiting_ns),
                worst.unwrap_or_else(|| "-".to_owned()),
            ]);
        }
        table
    }

    /// Returns a sentence with the reasons why something is not known, if something is not.
    fn reasons(&self) -> Option<String> {
        let what = if self.sees_some_only { "Not seen" } else { "Unknown" };
        let reasons = &self.not_seen_because;
        (!reasons.is_empty()).then(|| format!("{what} because {}.", reasons.join("; ")))
    }

    /// Returns a table of the time that each thread ran on each CPU.
    fn matrix(&self, top: usize) -> Table {
        let seen = self.cpus.iter().flatten().filter(|cpu| cpu.busy_ns > 0);
        let seen: Vec<usize> = seen.map(|cpu| cpu.cpu).take(COLUMNS).collect();
        let headings = ["thread", "ms"].map(str::to_owned).into_iter();
        let columns = headings.chain(seen.iter().map(|cpu| format!("CPU {cpu}")));
        let mut table = Table::new(columns, 1);
        for thread in self.threads.iter().flatten().take(top) {
            let mut on: HashMap<usize, u64> = HashMap::new();
            for cell in &thread.cells {
                *on.entry(cell.cpu as usize).or_default() += cell.ns;
            }
            let cells = seen.iter().map(|cpu| on.get(cpu).map_or("-".to_owned(), |&ns| ms(ns)));
            table.row([thread.who.label(), ms(thread.run_ns)].into_iter().chain(cells));
        }
        table
    }

    /// Returns a table of the share of time in which CPUs were busy in each slice, and of the
    /// thread that ran longest in it.
    fn over_time(&self) -> Table {
        let seen = self.cpus.iter().flatten().filter(|cpu| cpu.busy_ns > 0).take(COLUMNS);
        let seen: Vec<&CpuFigures> = seen.collect();
        let heading = ["from s", "lost ms"].map(str::to_owned).into_iter();
        let columns = heading.chain(seen.iter().map(|cpu| format!("CPU {} %", cpu.cpu)));
        let columns = columns.chain(["most by".to_owned()]);
        let mut table = Table::new(columns, 0).ending_in_texts(1);
        let slices = self.cpus.iter().flatten().map(|cpu| cpu.slices.len()).max().unwrap_or(0);
        let most = self.most_by_slice(slices);
        for (slice, most) in most.into_iter().enumerate() {
            let begin = self.begin_ns + self.slice_ns * slice as u64;
            if begin >= self.end_ns {
                break;
            }
            let length = self.slice_ns.min(self.end_ns - begin);
            let all = self.cpus.iter().flatten().filter_map(|cpu| cpu.slices.get(slice));
            let lost: u64 = all.map(|part| part.idle_while_waiting_ns).sum();
            let busy = seen.iter().map(|cpu| {
                cpu.slices.get(slice).map_or("-".to_owned(), |part| percent(part.busy_ns, length))
            });
            let most = most.map_or("-".to_owned(), |who| who.label());
            table.row([seconds(begin), ms(lost)].into_iter().chain(busy).chain([most]));
        }
        table
    }

    fn most_by_slice(&self, slices: usize) -> Vec<Option<&Named>> {
        let mut most: Vec<(u64, Option<&Named>)> = vec![(0, None); slices];
        for thread in self.threads.iter().flatten() {
            let mut in_slice: HashMap<u32, u64> = HashMap::new();
            for cell in &thread.cells {
                *in_slice.entry(cell.slice).or_default() += cell.ns;
            }
            for (slice, ns) in in_slice {
                if let Some(place) = most.get_mut(slice as usize).filter(|place| place.0 < ns) {
                    *place = (ns, Some(&thread.who));
                }
            }
        }
        most.into_iter().map(|(_, who)| who).collect()
    }
}

/// Maximum number of columns of CPUs in a table.
const COLUMNS: usize = 16;

impl CpuFigures {
    /// Returns `true` if anything is known about the CPU.
    fn is_shown(&self) -> bool {
        self.busy_ns + self.idle_ns > 0
    }

    fn new((cpu, usage): (usize, &CpuUsage), span: u64) -> CpuFigures {
        let sum = |part: fn(&SliceUsage) -> u64| usage.slices.iter().map(part).sum::<u64>();
        CpuFigures {
            cpu,
            busy_ns: sum(|slice| slice.busy_ns),
            idle_ns: sum(|slice| slice.idle_ns),
            not_seen_ns: span
                .saturating_sub(sum(|slice| slice.busy_ns) + sum(|slice| slice.idle_ns)),
            idle_while_waiting_ns: sum(|slice| slice.idle_while_waiting_ns),
            worst: usage.worst.map(|(since_ns, lost_ns)| Worst { since_ns, lost_ns }),
            slices: usage.slices.iter().map(Part::from_slice).collect(),
        }
    }
}

impl Part {
    fn from_slice(slice: &SliceUsage) -> Part {
        let SliceUsage { busy_ns, idle_ns, idle_while_waiting_ns } = *slice;
        Part { busy_ns, idle_ns, idle_while_waiting_ns }
    }
}

impl AnalysisFigures for UsageFigures {
    fn text(&self, top: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.cpus())?;
        if let Some(reasons) = self.reasons() {
            writeln!(f, "{reasons}\n")?;
        }
        writeln!(f, "Threads that ran longest, in ms on each CPU:\n\n{}", self.matrix(top))?;
        let more = self.threads_left_out + self.threads.iter().flatten().skip(top).count();
        if more > 0 {
            writeln!(f, "  and {more} more threads that ran less\n")?;
        }
        writeln!(f, "Over time, in slices of {} ms:\n\n{}", ms(self.slice_ns), self.over_time())
    }

    fn verdict(&self) -> String {
        let cpus = || self.cpus.iter().flatten().filter(|cpu| cpu.is_shown());
        let sum = |of: fn(&CpuFigures) -> u64| cpus().map(of).sum::<u64>();
        let (busy, seen) = (sum(|cpu| cpu.busy_ns), sum(|cpu| cpu.busy_ns + cpu.idle_ns));
        format!(
            "{} CPUs were busy for {} % of the time, and idled {} ms while a thread waited for another CPU.",
            cpus().count(),
            percent(busy, seen),
            ms(sum(|cpu| cpu.idle_while_waiting_ns))
        )
    }

    fn show(&self, top: usize, page: &mut Page) {
        page.section("CPUs", self.reasons().unwrap_or_default());
        self.cpus().show_on(page);
        page.section("Threads that ran longest, in ms on each CPU", "");
        self.matrix(top).show_on(page);
        page.section("Over time", format!("In slices of {} ms.", ms(self.slice_ns)));
        self.over_time().show_on(page);
    }
}
