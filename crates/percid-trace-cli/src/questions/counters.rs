//! `percid trace counters`: counter values while threads ran, compared with a model.

use std::cmp::Reverse;
use std::fmt;

use percid_command::exit::{Exit, Failure};
use percid_command::presets;
use percid_command::table::Table;
use percid_command::this_machine::Numbering;
use percid_command::trace_questions::CountersArguments;
use percid_report::Page;
use percid_trace::Trace;
use percid_trace::event::Tid;
use percid_trace::questions::{
    self, Before, Counters, CountersSettings, Distance, PAUSES, TurnCounts,
};
use serde::Serialize;

use super::names::{Named, Names};
use super::recording::{AnalysisFigures, LoadedRecording};
use crate::printable::{labelled, printable};
use crate::replay::misfit;
use crate::times::ms;

pub(crate) fn run(arguments: &CountersArguments, json: bool) -> Result<Exit, Failure> {
    let machine = presets::machine(&arguments.machine, Numbering::Kernel)?;
    let recording = LoadedRecording::load(&arguments.question)?;
    if recording.trace.origin.counters.is_empty() {
        return Err(Failure::Usage(nothing(&recording)));
    }
    if !recording.permits_figures() {
        return recording.tell(TITLE, CounterFigures::default(), true, json);
    }
    let processes = recording.processes.clone();
    let settings = CountersSettings { window: recording.window, processes };
    let found = recording.ask("counters", |control| {
        questions::counters(&recording.trace, &machine, &settings, control)
    });
    let found = found.map_err(misfit)?;
    let lines = recording.lines();
    let mut figures = CounterFigures::new(&recording.trace, &found, lines, arguments.threads);
    figures.machine = Some(machine.name.clone());
    recording.tell(TITLE, figures, found.is_whole, json)
}

const TITLE: &str = "percid trace counters";

/// Returns the message for a recording without counters, which explains how to make one.
fn nothing(recording: &LoadedRecording<'_>) -> String {
    let file = recording.arguments.file.display();
    format!(
        "{file}: nothing was counted in this recording; `percid trace record --counters \
         cycles,instructions,cache-misses` counts, or where the processor has no counters \
         `--counters task-clock,page-faults`"
    )
}

/// The figures of the JSON document. `None` stands for what the recording does not support.
#[derive(Debug, Default, Serialize)]
struct CounterFigures {
    machine: Option<String>,
    /// The names of the counters.
    counters: Option<Vec<String>>,
    /// Turns in the figures, turns that were left out because counters were lent to others, and how
    /// often these threads stopped running, by the schedule.
    turns: Option<u64>,
    lent_turns: Option<u64>,
    switches: Option<u64>,
    /// Processes, those that ran longest first.
    processes: Option<Vec<ProcessCounts>>,
    processes_left_out: usize,
    /// Threads, if requested by --threads, those that ran longest first.
    threads: Option<Vec<ThreadCounts>>,
    threads_left_out: usize,
    distances: Option<Vec<DistanceCounts>>,
}

#[derive(Debug, Serialize)]
struct ProcessCounts {
    process: Tid,
    name: String,
    #[serde(flatten)]
    counts: CountedTurns,
}

#[derive(Debug, Serialize)]
struct ThreadCounts {
    #[serde(flatten)]
    who: Named,
    #[serde(flatten)]
    counts: CountedTurns,
}

#[derive(Debug, Serialize)]
struct DistanceCounts {
    before: &'static str,
    pause_below_ns: Option<u64>,
    /// The modelled cost of one turn, on average.
    warm_ns: Option<f64>,
    cold_ns: Option<f64>,
    #[serde(flatten)]
    counts: CountedTurns,
    /// The place in words, for people.
    #[serde(skip)]
    place: [String; 2],
}

#[derive(Debug, Serialize)]
struct CountedTurns {
    turns: u64,
    run_ns: u64,
    counted: Vec<Count>,
}

/// The values of one counter.
#[derive(Debug, Serialize)]
struct Count {
    counter: String,
    sum: u64,
    mean: f64,
    median: u64,
    /// Per microsecond of run time.
    per_us: f64,
}

impl CounterFigures {
    fn new(trace: &Trace, found: &Counters, lines: usize, of_threads: bool) -> CounterFigures {
        let names = Names::new(trace, &found.known);
        let counters = &trace.origin.counters;
        let mut processes: Vec<&(Tid, TurnCounts)> = found.processes.iter().collect();
        processes.sort_by_key(|(process, counts)| (Reverse(counts.run_ns), *process));
        let process = |&&(process, ref counts): &&(Tid, TurnCounts)| ProcessCounts {
            process,
            name: names.process(process),
            counts: CountedTurns::new(counts, counters),
        };
        let mut threads: Vec<_> = found.threads.iter().filter(|_| of_threads).collect();
        threads.sort_by_key(|(thread, counts)| (Reverse(counts.run_ns), *thread));
        let thread = |&&(thread, ref counts): &&(_, TurnCounts)| ThreadCounts {
            who: names.thread(thread),
            counts: CountedTurns::new(counts, counters),
        };
        CounterFigures {
            machine: None,
            counters: Some(counters.clone()),
            turns: Some(found.processes.iter().map(|(_, counts)| counts.turns).sum()),
            lent_turns: Some(found.lent),
            switches: Some(found.switches),
            processes_left_out: processes.len().saturating_sub(lines),
            processes: Some(processes.iter().take(lines).map(process).collect()),
            threads_left_out: threads.len().saturating_sub(lines),
            threads: of_threads.then(|| threads.iter().take(lines).map(thread).collect()),
            distances: Some(
                found.distances.iter().map(|found| DistanceCounts::new(found, counters)).collect(),
            ),
        }
    }

    /// Returns a table that begins with these columns, followed by those of all counters.
    fn table(&self, columns: &[&str], names: usize) -> Table {
        let counters = self
            .counters
            .iter()
            .flatten()
            .flat_map(|counter| [printable(counter), "median".to_owned(), "/us".to_owned()]);
        let columns = columns.iter().map(|&column| column.to_owned());
        Table::new(columns.chain(counters), names)
    }

    fn processes(&self, top: usize) -> Table {
        let mut table = self.table(&["process", "turns", "run ms"], 1);
        for ProcessCounts { process, name, counts } in self.processes.iter().flatten().take(top) {
            table.row(counts.row([labelled(name, *process)], [ms(counts.run_ns)]));
        }
        table
    }

    fn threads(&self, top: usize) -> Option<Table> {
        let threads = self.threads.as_ref()?;
        let mut table = self.table(&["thread", "process", "turns", "run ms"], 2);
        for ThreadCounts { who, counts } in threads.iter().take(top) {
            let names = [who.label(), who.process.to_string()];
            table.row(counts.row(names, [ms(counts.run_ns)]));
        }
        Some(table)
    }

    fn distances(&self) -> Table {
        let columns = ["ran before", "pause", "turns", "run us", "warm us", "cold us"];
        let mut table = self.table(&columns, 2);
        for distance in self.distances.iter().flatten() {
            let DistanceCounts { warm_ns, cold_ns, counts, place, .. } = distance;
            let run_us = figure(counts.mean(counts.run_ns) / 1000.0);
            let us = |ns: &Option<f64>| ns.map_or_else(|| "-".to_owned(), |ns| figure(ns / 1000.0));
            table.row(counts.row(place.clone(), [run_us, us(warm_ns), us(cold_ns)]));
        }
        table
    }

    fn summary(&self) -> String {
        let [turns, lent, switches] = [self.turns, self.lent_turns, self.switches];
        let [turns, lent_turns, switches] = [turns, lent, switches].map(Option::unwrap_or_default);
        let machine = self.machine.as_deref().unwrap_or("no machine");
        let lent = match lent_turns {
            0 => String::new(),
            lent => format!(
                " {lent} more are left out, because the processor's counters were lent to others \
                 meanwhile (multiplexed): ask for fewer of them at once."
            ),
        };
        // Kernels of guests have been seen to do this when a CPU ceases to idle.
        let untold = match turns + lent_turns < switches / 2 {
            true => {
                " The counts of the others are unknown: the kernel did not record when they began."
            }
            false => "",
        };
        format!(
            "Counted in {turns} turns; the schedule has {switches} switches away from these \
             threads.{untold}{lent} Distances and modelled costs are those of {machine}."
        )
    }

    fn more(&self, top: usize) -> (usize, usize) {
        let processes = self.processes.iter().flatten().skip(top).count();
        let threads = self.threads.iter().flatten().skip(top).count();
        (self.processes_left_out + processes, self.threads_left_out + threads)
    }
}

impl CountedTurns {
    fn new(counts: &TurnCounts, counters: &[String]) -> CountedTurns {
        let TurnCounts { turns, run_ns, sums, medians } = counts;
        let all = counters.iter().zip(sums.iter().zip(medians));
        let counted = all.map(|(counter, (&sum, &median))| Count {
            counter: counter.clone(),
            sum,
            mean: sum as f64 / (*turns).max(1) as f64,
            median,
            per_us: 1000.0 * sum as f64 / (*run_ns).max(1) as f64,
        });
        CountedTurns { turns: *turns, run_ns: *run_ns, counted: counted.collect() }
    }

    /// Returns the average per turn.
    fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.turns.max(1) as f64
    }

    /// A row with these names, how many turns there are, these times, and what was counted.
    fn row<const N: usize, const T: usize>(
        &self,
        names: [String; N],
        times: [String; T],
    ) -> Vec<String> {
        let mut row = names.to_vec();
        row.push(self.turns.to_string());
        row.extend(times);
        for Count { mean, median, per_us, .. } in &self.counted {
            row.extend([figure(*mean), median.to_string(), figure(*per_us)]);
        }
        row
    }
}

impl DistanceCounts {
    fn new(found: &Distance, counters: &[String]) -> DistanceCounts {
        let counts = CountedTurns::new(&found.counts, counters);
        let (before, place) = match found.before {
            Before::Here => ("here", "here"),
            Before::HereBeforeOthers => ("after_others", "after others"),
            Before::SameCore => ("same_core", "core"),
            Before::SameL3 => ("same_l3", "L3"),
            Before::SameNode => ("same_node", "node"),
            Before::OtherNode => ("other_node", "other node"),
            Before::Unknown => ("unknown", "unknown"),
        };
        let longest = PAUSES.last().map_or(0, |&ns| ns);
        let pause = match found.pause_below_ns {
            Some(ns) => format!("< {}", length(ns)),
            None if found.before == Before::Unknown => "-".to_owned(),
            None => format!(">= {}", length(longest)),
        };
        DistanceCounts {
            before,
            pause_below_ns: found.pause_below_ns,
            warm_ns: found.modelled.map(|modelled| counts.mean(modelled.warm_ns)),
            cold_ns: found.modelled.map(|modelled| counts.mean(modelled.cold_ns)),
            counts,
            place: [place.to_owned(), pause],
        }
    }
}

/// A whole number of microseconds or milliseconds.
fn length(ns: u64) -> String {
    match ns {
        1_000_000.. => format!("{} ms", ns / 1_000_000),
        _ => format!("{} us", ns / 1000),
    }
}

/// Formats a value with its significant digits.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

const OF_PROCESSES: &str = "Counted in a turn";
const OF_DISTANCES: &str = "By the place where the thread ran before";
const MODELLED: &str =
    "warm and cold us are what a model says that touching 16 kB costs more than at once again";

impl AnalysisFigures for CounterFigures {
    fn text(&self, top: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (processes, threads) = self.more(top);
        writeln!(f, "{}\n\n{OF_PROCESSES}:\n{}", self.summary(), self.processes(top))?;
        if processes > 0 {
            writeln!(f, "  and {processes} more processes that ran less")?;
        }
        if let Some(table) = self.threads(top) {
            writeln!(f, "\n{table}")?;
        }
        if threads > 0 {
            writeln!(f, "  and {threads} more threads that ran less")?;
        }
        writeln!(f, "\n{OF_DISTANCES}; {MODELLED}:\n{}", self.distances())
    }

    fn verdict(&self) -> String {
        let turns = self.turns.unwrap_or_default();
        let processes = self.processes.iter().flatten();
        match processes
            .clone()
            .next()
            .and_then(|first| Some((first, first.counts.counted.first()?)))
        {
            None => "0 turns were counted.".to_owned(),
            Some((first, Count { counter, mean, .. })) => format!(
                "{} of {} processes in {turns} turns ran longest, with {} {} a turn.",
                labelled(&first.name, first.process),
                processes.count() + self.processes_left_out,
                figure(*mean),
                printable(counter)
            ),
        }
    }

    fn show(&self, top: usize, page: &mut Page) {
        page.section(OF_PROCESSES, self.summary());
        self.processes(top).show_on(page);
        if let Some(table) = self.threads(top) {
            table.show_on(page);
        }
        page.section(OF_DISTANCES, MODELLED);
        self.distances().show_on(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_as_many_digits_as_say_something() {
        let found = [0.0, 0.12345, 2.34567, 234.567, 23456.7].map(figure);
        assert_eq!(found, ["0.0000", "0.1235", "2.35", "235", "23457"]);
        assert_eq!([10_000, 1_000_000, 100_000_000].map(length), ["10 us", "1 ms", "100 ms"]);
    }
}
