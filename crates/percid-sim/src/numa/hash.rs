//! The study of the activity sets: which bits the threads of a process get, and how many share one.

use std::collections::BTreeMap;

use percid_rules::scan::Width;
use serde::Serialize;

/// How a bit is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The lowest six bits of the thread's ID.
    #[serde(rename = "pid_6bit")]
    LowBits,
    /// The upper bits of its product with the hash's multiplier.
    #[serde(rename = "hash32")]
    Hash,
}

impl Method {
    /// Both of them.
    pub const ALL: [Method; 2] = [Method::LowBits, Method::Hash];

    /// The name, as in the published tables.
    pub fn name(self) -> &'static str {
        match self {
            Method::LowBits => "pid_6bit",
            Method::Hash => "hash32",
        }
    }

    /// The bit of a thread.
    pub fn bit(self, width: Width, thread: u32) -> u32 {
        match self {
            Method::LowBits => thread & (width.bits() - 1),
            Method::Hash => width.bit(thread),
        }
    }
}

/// How many of the threads have each bit that any of them has.
pub fn frequencies(
    method: Method,
    width: Width,
    threads: impl IntoIterator<Item = u32>,
) -> BTreeMap<u32, u32> {
    let mut table = BTreeMap::new();
    for thread in threads {
        *table.entry(method.bit(width, thread)).or_insert(0) += 1;
    }
    table
}

/// The threads of a published table: consecutive workers, and the main thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Published {
    /// The table's name.
    pub table: &'static str,
    /// The main thread.
    pub main: u32,
    /// The first worker, and the last one.
    pub workers: (u32, u32),
}

/// The tables whose thread IDs are known. Every published frequency follows from them, but for
/// workers that happened never to scan in the run with 64.
pub const PUBLISHED: [Published; 4] = [
    Published { table: "iter0/8-thread", main: 4280, workers: (4350, 4357) },
    Published { table: "iter0/16-thread", main: 4411, workers: (4412, 4427) },
    Published { table: "iter0/32-thread", main: 4528, workers: (4529, 4560) },
    Published { table: "iter0/64-thread", main: 4569, workers: (4570, 4633) },
];

impl Published {
    /// All its threads.
    pub fn threads(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        std::iter::once(self.main).chain(self.workers.0..=self.workers.1)
    }
}

/// How well a set of one width tells the threads of a process apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crowd {
    /// Threads with consecutive IDs.
    pub threads: u32,
    /// Bits of the set.
    pub bits: u32,
    /// How the bit is chosen.
    pub method: Method,
    /// The distinct bits that they have: fewest, mean, most.
    pub distinct: (u32, f64, u32),
    /// The share of pairs of threads that pass for one another.
    pub colliding_pairs: f64,
    /// The share of first IDs for which no two threads collide.
    pub free: f64,
}

/// The greatest thread ID that Linux gives unless told otherwise, plus one.
pub const IDS: u32 = 32_768;

/// Counts, exactly, over every range of `threads` consecutive IDs from 1 to [`IDS`] - 1. Costs one
/// step per ID and method. `None` if there are no such ranges.
pub fn crowd(method: Method, width: Width, threads: u32) -> Option<Crowd> {
    if threads == 0 || threads >= IDS {
        return None;
    }
    let mut window = Window::new(width);
    (1..=threads).for_each(|thread| window.enter(method.bit(width, thread)));
    let mut tally = Tally::default();
    tally.note(&window, threads);
    for first in 2..=IDS - threads {
        window.leave(method.bit(width, first - 1));
        window.enter(method.bit(width, first + threads - 1));
        tally.note(&window, threads);
    }
    let ranges = f64::from(IDS - threads);
    let pairs = u64::from(threads) * u64::from(threads - 1) / 2;
    Some(Crowd {
        threads,
        bits: width.bits(),
        method,
        distinct: (tally.fewest, tally.distinct as f64 / ranges, tally.most),
        colliding_pairs: tally.pairs as f64 / (ranges * pairs.max(1) as f64),
        free: tally.free as f64 / ranges,
    })
}

/// The threads of a range, bit by bit.
struct Window {
    threads: Vec<u32>,
    distinct: u32,
    pairs: u64,
}

impl Window {
    fn new(width: Width) -> Window {
        Window { threads: vec![0; width.bits() as usize], distinct: 0, pairs: 0 }
    }

    fn enter(&mut self, bit: u32) {
        let count = &mut self.threads[bit as usize];
        self.pairs += u64::from(*count);
        self.distinct += u32::from(*count == 0);
        *count += 1;
    }

    fn leave(&mut self, bit: u32) {
        let count = &mut self.threads[bit as usize];
        *count -= 1;
        self.pairs -= u64::from(*count);
        self.distinct -= u32::from(*count == 0);
    }
}

struct Tally {
    fewest: u32,
    most: u32,
    distinct: u64,
    pairs: u64,
    free: u64,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { fewest: u32::MAX, most: 0, distinct: 0, pairs: 0, free: 0 }
    }
}

impl Tally {
    fn note(&mut self, window: &Window, threads: u32) {
        self.fewest = self.fewest.min(window.distinct);
        self.most = self.most.max(window.distinct);
        self.distinct += u64::from(window.distinct);
        self.pairs += window.pairs;
        self.free += u64::from(window.distinct == threads);
    }
}

/// A table computed from its thread IDs, beside the published one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Its name and its threads.
    pub threads: Published,
    /// How bits were chosen.
    pub method: Method,
    /// Frequencies by bit, of all threads.
    pub computed: BTreeMap<u32, u32>,
    /// As published.
    pub published: BTreeMap<u32, u32>,
    /// The workers that must have been missing from the run, if the difference is of that kind.
    pub absent: Option<u32>,
}

impl Table {
    /// Whether every published frequency is the computed one.
    pub fn exact(&self) -> bool {
        self.absent == Some(0)
    }
}

/// The study: the published tables, and crowds of many sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Study {
    /// The published tables, each by both methods.
    pub tables: Vec<Table>,
    /// Crowds of the asked sizes, by method and width.
    pub crowds: Vec<Crowd>,
    /// By width in bits: the most threads of which no two collide, whatever their first ID.
    pub never_collide: Vec<(u32, u32)>,
    /// By width in bits: the fewest threads that always have every bit, so that the set tells
    /// nothing.
    pub blind: Vec<(u32, u32)>,
}

/// The whole study for processes of these numbers of threads. Sizes without ranges are left out.
pub fn study(sizes: &[u32]) -> Study {
    let widths = [Width::Bits64, Width::Bits128];
    let mut crowds = Vec::new();
    for &threads in sizes {
        for (method, width) in Method::ALL.into_iter().flat_map(|m| widths.map(|w| (m, w))) {
            crowds.extend(crowd(method, width, threads));
        }
    }
    Study {
        tables: tables(),
        crowds,
        never_collide: widths.map(|width| (width.bits(), never_collide(width))).to_vec(),
        blind: widths.map(|width| (width.bits(), blind(width))).to_vec(),
    }
}

fn tables() -> Vec<Table> {
    let published = crate::published::hashes();
    let mut tables = Vec::new();
    for threads in PUBLISHED {
        for method in Method::ALL {
            let rows = published.iter();
            let rows = rows.filter(|row| row.table == threads.table && row.method == method.name());
            let published = rows.map(|row| (row.value, row.frequency)).collect();
            let computed = frequencies(method, Width::Bits64, threads.threads());
            let absent = absent(&computed, &published);
            tables.push(Table { threads: threads.clone(), method, computed, published, absent });
        }
    }
    tables
}

/// How many threads are computed and not published; `None` if more are published than computed
/// anywhere.
fn absent(computed: &BTreeMap<u32, u32>, published: &BTreeMap<u32, u32>) -> Option<u32> {
    let explained = published.iter().all(|(bit, count)| computed.get(bit) >= Some(count));
    explained.then(|| computed.values().sum::<u32>() - published.values().sum::<u32>())
}

fn never_collide(width: Width) -> u32 {
    // A wider range collides where a narrower one does, so the first failure decides.
    let free = |threads: &u32| crowd(Method::Hash, width, *threads).is_some_and(|c| c.free == 1.0);
    (1..=width.bits()).take_while(free).last().unwrap_or(0)
}

fn blind(width: Width) -> u32 {
    let sees = |threads: &u32| {
        crowd(Method::Hash, width, *threads).is_some_and(|c| c.distinct.0 < width.bits())
    };
    (width.bits()..IDS).take_while(sees).last().map_or(width.bits(), |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a run whose nine silent workers are known gives.
    #[test]
    fn the_published_tables_follow_from_their_thread_ids() {
        let tables = tables();
        assert_eq!(tables.len(), 8);
        for table in &tables {
            let silent = if table.threads.table == "iter0/64-thread" { 9 } else { 0 };
            assert_eq!(table.absent, Some(silent), "{table:?}");
            assert_eq!(table.exact(), silent == 0);
        }
    }

    /// The silent workers of the largest table are the same by both methods: leaving them out gives
    /// both tables exactly.
    #[test]
    fn the_silent_workers_explain_both_tables() {
        let tables = tables();
        let of = |method| {
            let mut found = tables.iter().filter(|t| t.threads.workers.0 == 4570);
            found.find(|table| table.method == method).expect("a table")
        };
        let (low, hash) = (of(Method::LowBits), of(Method::Hash));
        let missing = |table: &Table, thread: u32| {
            let bit = table.method.bit(Width::Bits64, thread);
            table.published.get(&bit).copied().unwrap_or(0) < table.computed[&bit]
        };
        let silent: Vec<u32> =
            low.threads.threads().filter(|&t| missing(low, t) && missing(hash, t)).collect();
        assert_eq!(silent.len(), 9, "{silent:?}");
        let seen = || low.threads.threads().filter(|thread| !silent.contains(thread));
        assert_eq!(frequencies(Method::LowBits, Width::Bits64, seen()), low.published);
        assert_eq!(frequencies(Method::Hash, Width::Bits64, seen()), hash.published);
    }

    /// Negative control: IDs that are off by one do not give the tables.
    #[test]
    fn other_thread_ids_do_not_give_the_tables() {
        let tables = tables();
        for table in tables.iter().filter(|table| table.exact()) {
            let shifted = table.threads.threads().map(|thread| thread + 1);
            assert_ne!(frequencies(table.method, Width::Bits64, shifted), table.published);
        }
    }

    #[test]
    fn the_rules_that_follow() {
        let study = study(&[65, 129, 385]);
        let mean = |threads, bits| {
            let mut crowds = study.crowds.iter().filter(|crowd| crowd.method == Method::Hash);
            let found = crowds.find(|crowd| (crowd.threads, crowd.bits) == (threads, bits));
            (found.expect("a crowd").distinct.1 * 10.0).round() / 10.0
        };
        assert_eq!((mean(65, 64), mean(129, 64)), (55.3, 64.0));
        assert_eq!((mean(65, 128), mean(129, 128), mean(385, 128)), (65.0, 114.7, 128.0));
        assert_eq!(study.never_collide[0], (64, 34));
        assert!(study.blind[0].1 <= 129, "{:?}", study.blind);
        println!("{:?} {:?}", study.never_collide, study.blind);
    }

    #[test]
    fn sizes_without_ranges_have_no_crowd() {
        assert!(crowd(Method::Hash, Width::Bits64, 0).is_none());
        assert!(crowd(Method::Hash, Width::Bits64, IDS).is_none());
        let all = crowd(Method::LowBits, Width::Bits64, IDS - 1).expect("one range");
        assert_eq!(all.distinct, (64, 64.0, 64));
    }
}
