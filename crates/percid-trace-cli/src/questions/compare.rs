//! `percid trace compare`: the waits of two recordings, by names of processes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use percid_command::exit::{Exit, Failure};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::report::{self, Report};
use percid_command::table::Table;
use percid_command::trace_questions::{CompareArguments, QuestionArguments};
use percid_report::{Axis, Dot, Dots, Page};
use percid_trace::questions::{self, LatencySettings, ThreadLatency, UsageSettings};
use percid_trace::window::Window;
use serde::Serialize;

use super::names::Names;
use super::recording::{Head, LoadedRecording};
use crate::file;
use crate::printable::printable;
use crate::times::{ms, ms_if};

pub(crate) fn run(arguments: &CompareArguments, json: bool) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let first = &arguments.question;
    let mut second = QuestionArguments { file: arguments.other.clone(), ..first.clone() };
    second.html = None;
    let report = Report::to(first.html.as_deref())?;
    file::spare(first.html.as_deref(), &second.file)?;
    let a = Side::load(first, interrupt.clone())?;
    let b = Side::load(&second, interrupt)?;
    let is_whole = !a.head.is_interrupted() && !b.head.is_interrupted();
    let comparison = Comparison::new(a, b, &first.window.process)?;
    let top = first.limit as usize;
    let printed = match json {
        true => output::print_json(&comparison),
        false => output::print_text(&Text { comparison: &comparison, top }),
    };
    let exit = if is_whole { Exit::Complete } else { Exit::Interrupted };
    report.write(printed, || comparison.page(top, is_whole), exit)
}

/// One recording.
struct Side {
    head: Head,
    span_ns: u64,
    /// `None` if the recording does not support figures.
    names: Option<BTreeMap<String, Sums>>,
}

/// All processes with one name.
#[derive(Default)]
struct Sums {
    run_ns: u64,
    waits: ThreadLatency,
}

/// The JSON document.
#[derive(Debug, Serialize)]
struct Comparison {
    a: About,
    b: About,
    /// Threads by name, those that ran longest first.
    names: Option<Vec<Pair>>,
}

#[derive(Debug, Serialize)]
struct About {
    #[serde(flatten)]
    head: Head,
    span_ns: u64,
}

#[derive(Debug, Serialize)]
struct Pair {
    name: String,
    a: Option<Waits>,
    b: Option<Waits>,
}

/// The bounds of a time in 95 of 100 such recordings.
type Between = Option<(u64, u64)>;

#[derive(Debug, Serialize)]
struct Waits {
    run_ns: u64,
    waits: u64,
    preempted: u64,
    mean_ns: Option<u64>,
    median_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: u64,
    wake_up_p99_ns: Option<u64>,
    /// The bounds of these in 95 of 100 such recordings, if waits do not depend on each other. `null`: there
    /// are too few.
    mean_between_ns: Between,
    median_between_ns: Between,
    p99_between_ns: Between,
    wake_up_p99_between_ns: Between,
}

impl Side {
    /// The trace is given up before the next one is read.
    fn load(arguments: &QuestionArguments, interrupt: Interrupt) -> Result<Side, Failure> {
        // Not every recording has the requested processes.
        let mut all = arguments.clone();
        all.window.all |= !all.window.process.is_empty();
        all.window.process.clear();
        let recording = LoadedRecording::load_unless(&all, interrupt)?;
        if !recording.permits_figures() {
            let head = recording.into_head(true).0;
            return Ok(Side { head, span_ns: 0, names: None });
        }
        let (names, span_ns, is_whole) = sums(&recording);
        let head = recording.into_head(is_whole).0;
        Ok(Side { head, span_ns, names: Some(names) })
    }
}

fn sums(recording: &LoadedRecording<'_>) -> (BTreeMap<String, Sums>, u64, bool) {
    let trace = &recording.trace;
    let window: Window = recording.window;
    let processes = recording.processes.clone();
    let settings = LatencySettings { window, processes, ..LatencySettings::default() };
    let waits = recording.ask("waits", |control| questions::latency(trace, &settings, control));
    let settings = UsageSettings { window, slices: 1, processes: recording.processes.clone() };
    let usage = recording.ask("usage", |control| questions::usage(trace, &settings, control));
    let mut sums: BTreeMap<String, Sums> = BTreeMap::new();
    let names = Names::new(trace, &waits.known);
    let name = |thread| names.process(names.thread(thread).process);
    for (thread, found) in &waits.threads {
        sums.entry(name(*thread)).or_default().waits.add(found);
    }
    // The same recording is followed in the same way, so the threads have the same numbers.
    for cell in &usage.cells {
        sums.entry(name(cell.thread)).or_default().run_ns += cell.ns;
    }
    let span_ns = usage.to.saturating_sub(usage.from);
    (sums, span_ns, waits.is_whole && usage.is_whole)
}

impl Comparison {
    fn new(a: Side, b: Side, wanted: &[String]) -> Result<Comparison, Failure> {
        let names = a.names.zip(b.names).map(|(a, b)| pairs(&a, &b, wanted));
        if let (Some([]), [first, ..]) = (names.as_deref(), wanted) {
            let none = "no process of either trace has this name";
            return Err(Failure::Usage(format!("--process {first}: {none}")));
        }
        Ok(Comparison {
            a: About { head: a.head, span_ns: a.span_ns },
            b: About { head: b.head, span_ns: b.span_ns },
            names,
        })
    }

    fn table(&self, top: usize) -> Table {
        let columns = [
            "process",
            "",
            "CPU ms/s",
            "waits/s",
            "preempted/s",
            "mean",
            "median",
            "99 %",
            "longest",
            "wake-up 99 %",
        ];
        let mut table = Table::new(columns, 2);
        for pair in self.names.iter().flatten().take(top) {
            let name = if pair.name.is_empty() { "unnamed" } else { &pair.name };
            table.row(row(&printable(name), "A", pair.a.as_ref(), self.a.span_ns));
            table.row(row("", "B", pair.b.as_ref(), self.b.span_ns));
            if let (Some(a), Some(b)) = (&pair.a, &pair.b) {
                let quotients = quotients((a, self.a.span_ns), (b, self.b.span_ns));
                table.row(heading("B/A", quotients.iter().map(Quotient::text)));
                table.row(heading("between", quotients.iter().map(Quotient::bounds)));
            }
        }
        table
    }

    fn heads(&self) -> String {
        format!("A: {}\nB: {}", self.a.head, self.b.head)
    }

    /// Returns the change of the first process that waited in both, in one sentence.
    fn verdict(&self) -> String {
        let both = |pair: &Pair| {
            let [a, b] = [&pair.a, &pair.b].map(|waits| waits.as_ref()?.p99_ns);
            Some((printable(&pair.name), a?, b?))
        };
        let names = self.names.iter().flatten();
        match names.clone().find_map(both) {
            None => format!("0 of {} names have waits in both recordings.", names.count()),
            Some((name, a, b)) => {
                let [a, b] = [a, b].map(ms);
                format!("99 % of the waits of {name} are at most {a} ms in A and {b} ms in B.")
            }
        }
    }

    /// Returns the 99th percentile of the waits of each name.
    fn dots(&self, top: usize) -> Dots {
        let time = Axis::new("wait").unit("ms").logarithmic();
        let mut dots = Dots::new(Axis::new("process"), time, ["A", "B"]).reference();
        for pair in self.names.iter().flatten().take(top) {
            let values = [&pair.a, &pair.b].map(|waits| {
                let waits = waits.as_ref()?;
                waits.p99_ns.map(|ns| ns as f64 / 1e6)
            });
            dots.row(printable(&pair.name), [Dot::new(values)]);
        }
        dots
    }

    fn page(&self, top: usize, is_whole: bool) -> Page {
        let (title, heads) = ("percid trace compare", self.heads());
        let mut page = report::page(title, self.verdict(), &heads, !is_whole);
        if self.names.is_some() {
            page.chart("99 % of the waits are shorter", "", self.dots(top));
            page.section("Waits for a CPU, times in ms", CHANCE);
            self.table(top).show_on(&mut page);
        }
        page
    }
}

const CHANCE: &str = "B/A is between the two figures below it in 95 of 100 such pairs of recordings, if waits \
do not depend on each other: if 1 is between them, the difference may be chance. There is no such statement for \
the longest waits, nor from too few.";

fn pairs(a: &BTreeMap<String, Sums>, b: &BTreeMap<String, Sums>, wanted: &[String]) -> Vec<Pair> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let is_wanted = |name: &&&String| wanted.is_empty() || wanted.contains(name);
    let pair = |name: &String| Pair {
        name: name.clone(),
        a: a.get(name).map(Waits::from_sums),
        b: b.get(name).map(Waits::from_sums),
    };
    let mut pairs: Vec<Pair> = names.iter().filter(is_wanted).map(|name| pair(name)).collect();
    let run_ns = |waits: &Option<Waits>| waits.as_ref().map_or(0, |waits| waits.run_ns);
    pairs.sort_by_key(|pair| Reverse(run_ns(&pair.a).saturating_add(run_ns(&pair.b))));
    pairs
}

impl Waits {
    fn from_sums(sums: &Sums) -> Waits {
        let times = &sums.waits.run_queue;
        Waits {
            run_ns: sums.run_ns,
            waits: times.count,
            preempted: sums.waits.preempted,
            mean_ns: times.mean_ns(),
            median_ns: times.quantile_ns(0.5),
            p99_ns: times.quantile_ns(0.99),
            max_ns: times.max_ns,
            wake_up_p99_ns: sums.waits.wake_up.quantile_ns(0.99),
            mean_between_ns: times.mean_between_ns(),
            median_between_ns: times.quantile_between_ns(0.5),
            p99_between_ns: times.quantile_between_ns(0.99),
            wake_up_p99_between_ns: sums.waits.wake_up.quantile_between_ns(0.99),
        }
    }

    /// Returns the rates per second: time on CPUs in ms, waits, preemptions.
    fn rates(&self, span_ns: u64) -> [f64; 3] {
        let seconds = span_ns.max(1) as f64 / 1e9;
        let counts = [self.run_ns as f64 / 1e6, self.waits as f64, self.preempted as f64];
        counts.map(|count| count / seconds)
    }

    /// Times, and what they are between.
    fn times(&self) -> [(Option<u64>, Between); 5] {
        [
            (self.mean_ns, self.mean_between_ns),
            (self.median_ns, self.median_between_ns),
            (self.p99_ns, self.p99_between_ns),
            (Some(self.max_ns), None),
            (self.wake_up_p99_ns, self.wake_up_p99_between_ns),
        ]
    }
}

fn row(name: &str, side: &str, waits: Option<&Waits>, span_ns: u64) -> Vec<String> {
    let mut cells = vec![name.to_owned(), side.to_owned()];
    let rates = waits.map(|waits| waits.rates(span_ns).map(|rate| format!("{rate:.1}")));
    cells.extend(rates.unwrap_or_else(|| ["-"; 3].map(str::to_owned)));
    let Some(waits) = waits else {
        cells.extend(["-"; 5].map(str::to_owned));
        return cells;
    };
    cells.extend([waits.mean_ns, waits.median_ns, waits.p99_ns].map(ms_if));
    cells.extend([ms(waits.max_ns), ms_if(waits.wake_up_p99_ns)]);
    cells
}

/// B divided by A, if that is known.
enum Quotient {
    /// The quotient, and its interval if it is known. The interval has no upper bound if A may be
    /// 0.
    Of(f64, Option<(f64, Option<f64>)>),
    TooFew,
    /// One of the two has no value.
    None,
}

impl Quotient {
    fn text(&self) -> String {
        match self {
            Quotient::Of(quotient, _) => format!("x {quotient:.2}"),
            Quotient::TooFew | Quotient::None => "-".to_owned(),
        }
    }

    fn bounds(&self) -> String {
        match self {
            Quotient::Of(_, Some((low, Some(high)))) => format!("{low:.2}-{high:.2}"),
            Quotient::Of(_, Some((low, None))) => format!("> {low:.2}"),
            Quotient::TooFew => "too few".to_owned(),
            Quotient::Of(_, None) | Quotient::None => "-".to_owned(),
        }
    }

    /// Compares times on CPUs, which have no bounds: there is one of each.
    fn of_times_on_cpus(a: f64, b: f64) -> Quotient {
        if a > 0.0 { Quotient::Of(b / a, None) } else { Quotient::None }
    }

    /// Compares rates of events, with bounds by the standard deviation of the logarithm.
    fn of_counts((a, a_rate): (u64, f64), (b, b_rate): (u64, f64)) -> Quotient {
        if a.min(b) < MIN_RANDOM_EVENTS {
            return if a.max(b) == 0 { Quotient::None } else { Quotient::TooFew };
        }
        let quotient = b_rate / a_rate;
        let factor = (1.96 * (1.0 / a as f64 + 1.0 / b as f64).sqrt()).exp();
        Quotient::Of(quotient, Some((quotient / factor, Some(quotient * factor))))
    }

    fn of_times(
        (a, a_between): (Option<u64>, Between),
        (b, b_between): (Option<u64>, Between),
    ) -> Quotient {
        let (Some(a), Some(b)) = (a, b) else { return Quotient::None };
        let (Some((a_low, a_high)), Some((b_low, b_high))) = (a_between, b_between) else {
            return Quotient::TooFew;
        };
        if a == 0 || a_high == 0 {
            return Quotient::None;
        }
        let by = |b: u64, a: u64| b as f64 / a as f64;
        let high = (a_low > 0).then(|| by(b_high, a_low));
        Quotient::Of(by(b, a), Some((by(b_low, a_high), high)))
    }
}

/// Smallest number of random events from which a rate can be estimated.
const MIN_RANDOM_EVENTS: u64 = 10;

fn quotients((a, a_span): (&Waits, u64), (b, b_span): (&Waits, u64)) -> Vec<Quotient> {
    let ([a_run, a_waits, a_stops], [b_run, b_waits, b_stops]) = (a.rates(a_span), b.rates(b_span));
    let rates = [
        Quotient::of_times_on_cpus(a_run, b_run),
        Quotient::of_counts((a.waits, a_waits), (b.waits, b_waits)),
        Quotient::of_counts((a.preempted, a_stops), (b.preempted, b_stops)),
    ];
    let times = a.times().into_iter().zip(b.times());
    rates.into_iter().chain(times.map(|(a, b)| Quotient::of_times(a, b))).collect()
}

/// A row that belongs to the ones above it.
fn heading(what: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    [String::new(), what.to_owned()].into_iter().chain(cells).collect()
}

struct Text<'a> {
    comparison: &'a Comparison,
    top: usize,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Text { comparison, top } = self;
        write!(f, "{}", comparison.heads())?;
        let Some(names) = &comparison.names else { return Ok(()) };
        writeln!(f, "{CHANCE}\n\n{}", comparison.table(*top))?;
        match names.len().saturating_sub(*top) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more names that ran less"),
        }
    }
}
