//! Tracks of a page that show what CPUs ran: colours are processes, patterns are IDs.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use percid_report::{Align, Table, TrackSpan, Tracks};
use percid_trace::event::Cpu;
use percid_trace::overview::Span;

/// Maximum size of all tracks of one page together, and of one of them, in bytes. With the tables
/// the page stays below a megabyte.
const ALL_BYTES: usize = 560_000;
const BYTES: usize = 200_000;
/// Size of a span that can be zoomed into, in bytes.
const SPAN_BYTES: usize = 10;
/// Number of processes that have their own colour.
const COLOURED: usize = 5;
/// Threads that are named on a page, those that are seen in most spans first.
const NAMED: usize = 1500;
/// Rows of the table of processes.
const LISTED: usize = 100;

/// Returns the maximum size of one picture on a page that has several.
pub(crate) fn bytes(pictures: usize) -> usize {
    (ALL_BYTES / pictures.max(1)).min(BYTES)
}

/// Returns the maximum number of spans of each of them.
pub(crate) fn spans(pictures: usize) -> usize {
    bytes(pictures) * 2 / 3 / SPAN_BYTES
}

/// A process, for the legend.
pub(crate) struct Process {
    /// Name with the process's number.
    pub(crate) label: String,
    /// Time that it ran on CPUs, in milliseconds, formatted as everywhere.
    pub(crate) ms: String,
    pub(crate) threads: u64,
}

/// Processes and threads, the same for all tracks of a page. `K` is a thread.
pub(crate) struct Cast<K> {
    processes: Vec<Process>,
    /// The name and the process of each.
    threads: Vec<(K, String, usize)>,
    places: HashMap<K, usize>,
    cpus: Vec<Cpu>,
}

impl<K: Copy + Eq + Hash + Ord> Cast<K> {
    /// Those of the processes, those that ran longest first, and of the threads in some spans. `of` is
    /// a thread's name and its process by place; what has none is not drawn.
    pub(crate) fn new(
        processes: Vec<Process>,
        spans: impl Iterator<Item = (K, Cpu)>,
        of: impl Fn(K) -> Option<(String, usize)>,
    ) -> Cast<K> {
        let mut seen: HashMap<K, u64> = HashMap::new();
        let mut cpus = BTreeSet::new();
        for (thread, cpu) in spans {
            *seen.entry(thread).or_default() += 1;
            cpus.insert(cpu);
        }
        let mut seen: Vec<(K, u64)> = seen.into_iter().collect();
        seen.sort_by_key(|&(thread, spans)| (std::cmp::Reverse(spans), thread));
        let named = seen.into_iter().filter_map(|(thread, _)| {
            let (name, process) = of(thread)?;
            Some((thread, name, process))
        });
        let threads: Vec<(K, String, usize)> = named.collect();
        let places = threads.iter().enumerate().map(|(at, (thread, ..))| (*thread, at)).collect();
        Cast { processes, threads, places, cpus: cpus.into_iter().collect() }
    }

    /// Tracks of these spans, from one time to another. `number` is what spans are numbered by.
    pub(crate) fn tracks<U: Copy>(
        &self,
        spans: &[Span<U>],
        (from, to): (u64, u64),
        number: Option<&str>,
        thread_and_number: impl Fn(U) -> (K, u32),
        bytes: usize,
    ) -> Tracks {
        let mut tracks = Tracks::new("CPU", from, to, self.table()).bytes(bytes);
        if let Some(number) = number {
            tracks = tracks.numbered(number);
        }
        for process in self.processes.iter().take(COLOURED) {
            let Process { label, ms, threads } = process;
            let noun = if *threads == 1 { "thread" } else { "threads" };
            tracks.kind(format!("{label}: {ms} ms, {threads} {noun}"));
        }
        if let Some(others) = self.processes.len().checked_sub(COLOURED).filter(|&more| more > 0) {
            tracks.kind(format!("{others} other processes"));
        }
        for (_, name, process) in self.threads.iter().take(NAMED) {
            let label = self.processes.get(*process).map_or("", |process| process.label.as_str());
            tracks.thing(format!("{label}, thread {name}"), (*process).min(COLOURED));
        }
        let nameless =
            (self.threads.len() > NAMED).then(|| tracks.thing("one of many threads", COLOURED));
        for cpu in &self.cpus {
            tracks.row(cpu.to_string());
        }
        for span in spans {
            let (thread, number) = thread_and_number(span.what);
            let thing = self.places.get(&thread).copied();
            let thing = thing.and_then(|at| if at < NAMED { Some(at) } else { nameless });
            let (Some(thing), Ok(row)) = (thing, self.cpus.binary_search(&span.row)) else {
                continue;
            };
            tracks.span(TrackSpan { row, thing, number, from: span.from, to: span.to });
        }
        tracks
    }

    fn table(&self) -> Table {
        let mut table = Table::new([
            ("process", Align::Left),
            ("on CPUs, ms", Align::Right),
            ("threads", Align::Right),
        ]);
        for Process { label, ms, threads } in self.processes.iter().take(LISTED) {
            table.row([label.clone(), ms.clone(), threads.to_string()]);
        }
        table
    }
}
