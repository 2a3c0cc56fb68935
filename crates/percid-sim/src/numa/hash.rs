//! Study of the activity sets: the bits that the threads of a process get, and the number of
//! threads that share a bit.

use std::collections::BTreeMap;

use percid_rules::scan::Width;
use serde::Serialize;

/// The method of choosing a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The lowest bits of the thread's ID, six for 64 bits.
    #[serde(rename = "pid_6bit")]
    LowBits,
    /// The upper bits of the product of the thread's ID and the hash's multiplier.
    #[serde(rename = "hash32")]
    Hash,
}

impl Method {
    /// Both methods.
    pub const ALL: [Method; 2] = [Method::LowBits, Method::Hash];

    /// Returns the name, as in the published tables.
    pub fn name(self) -> &'static str {
        match self {
            Method::LowBits => "pid_6bit",
            Method::Hash => "hash32",
        }
    }

    /// Returns the bit of a thread.
    pub fn bit(self, width: Width, thread: u32) -> u32 {
        match self {
            Method::LowBits => thread & (width.bits() - 1),
            Method::Hash => width.bit(thread),
        }
    }
}

/// Returns the number of threads for each bit that at least one thread has.
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
    /// Name of the table.
    pub table: &'static str,
    /// ID of the main thread.
    pub main: u32,
    /// IDs of the first and the last worker.
    pub workers: (u32, u32),
}

/// The tables with known thread IDs. Every published frequency follows from these, except for
/// workers that never scanned in the run with 64 workers.
pub const PUBLISHED: [Published; 4] = [
    Published { table: "iter0/8-thread", main: 4280, workers: (4350, 4357) },
    Published { table: "iter0/16-thread", main: 4411, workers: (4412, 4427) },
    Published { table: "iter0/32-thread", main: 4528, workers: (4529, 4560) },
    Published { table: "iter0/64-thread", main: 4569, workers: (4570, 4633) },
];

impl Published {
    /// Returns the IDs of all threads.
    pub fn threads(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        std::iter::once(self.main).chain(self.workers.0..=self.workers.1)
    }
}

/// The ability of an activity set to distinguish the threads of a process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crowd {
    /// Number of threads, which have consecutive IDs.
    pub threads: u32,
    /// Number of bits of the set.
    pub bits: u32,
    /// Method of choosing the bit.
    pub method: Method,
    /// Number of distinct bits of the threads: minimum, mean, maximum.
    pub distinct: (u32, f64, u32),
    /// Share of pairs of threads that have the same bit.
    pub colliding_pairs: f64,
    /// Share of first IDs for which no two threads collide.
    pub free: f64,
}

/// Exclusive upper bound of thread IDs in Linux' default configuration.
pub const IDS: u32 = 32_768;

/// Counts exactly, over every range of `threads` consecutive IDs from 1 to [`IDS`] - 1. Takes one
/// step per ID. Returns `None` if there is no such range.
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

/// The threads of a range, counted by bit.
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
    /// Name and threads of the table.
    pub threads: Published,
    /// Method of choosing bits.
    pub method: Method,
    /// Computed frequencies of all threads, by bit.
    pub computed: BTreeMap<u32, u32>,
    /// Published frequencies, by bit.
    pub published: BTreeMap<u32, u32>,
    /// Number of workers missing from the run, if missing workers explain the difference.
    pub absent: Option<u32>,
}

impl Table {
    /// Returns `true` if every published frequency equals the computed one.
    pub fn exact(&self) -> bool {
        self.absent == Some(0)
    }
}

/// The study: the published tables, and crowds of many sizes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Study {
    /// The published tables, each with both methods.
    pub tables: Vec<Table>,
    /// Crowds of the requested sizes, by method and width.
    pub crowds: Vec<Crowd>,
    /// Maximum number of threads without any collision for any first ID, by width in bits.
    pub never_collide: Vec<(u32, u32)>,
    /// Minimum number of threads that always have every bit, so that the set gives no information, by
    /// width in bits.
    pub blind: Vec<(u32, u32)>,
}

/// Returns the whole study for processes with these numbers of threads. Sizes without ranges are
/// left out.
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

/// Returns the number of threads that are computed and not published. Returns `None` if any bit has
/// more published than computed threads.
fn absent(computed: &BTreeMap<u32, u32>, published: &BTreeMap<u32, u32>) -> Option<u32> {
    let explained = published.iter().all(|(bit, count)| computed.get(bit) >= Some(count));
    explained.then(|| computed.values().sum::<u32>() - published.values().sum::<u32>())
}

fn never_collide(width: Width) -> u32 {
    // A larger range has a collision if a smaller one has, so the first failure decides.
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

    /// The tables follow from the thread IDs, except for nine silent workers in the largest one.
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

    /// The silent workers of the largest table are the same with both methods. Without them, both
    /// tables match exactly.
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
