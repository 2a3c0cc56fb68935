//! Search for the thread IDs that gave a table of activity sets: the inverse of
//! [`hash`](super::hash).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use percid_rules::scan::Width;
use serde::Serialize;

use super::hash::Method;

/// A table of a run: the number of its threads for each bit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Method of choosing bits.
    pub method: Method,
    /// Number of bits of the sets.
    pub width: Width,
    /// Number of threads by bit.
    pub frequencies: BTreeMap<u32, u32>,
}

/// Thread IDs that give all tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Match {
    /// The first of the consecutive IDs.
    pub first: u32,
    /// The last one.
    pub last: u32,
    /// The thread outside this range, if there is one: the nearest ID below `first` that has its
    /// bits. Main threads are older than their workers.
    pub main: Option<u32>,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Matches {
    /// Number of threads that are in no table because they never scanned: the minimum that is
    /// needed.
    pub missing: u32,
    /// The matching IDs, in ascending order; empty if no IDs give the tables.
    pub matches: Vec<Match>,
}

/// Exclusive upper bound of thread IDs on Linux, for all settings.
pub const MOST_IDS: u32 = 1 << 22;

/// Searches consecutive IDs below `below`, with or without one additional main thread, that give
/// all of these tables of one run exactly. If there are none, up to `missing` threads may be in no
/// table; they must be the same in each. If there are more than two tables, each is compared with
/// the first one. Takes one step for each ID and table, and more for each range that nearly
/// matches.
///
/// # Errors
///
/// Returns what was expected of the tables, if they are inconsistent.
pub fn search(observed: &[Observed], missing: u32, below: u32) -> Result<Matches, String> {
    let threads = check(observed)?;
    for missing in 0..=missing {
        let together = ranges(observed, threads + missing, below, fits_together);
        let apart = ranges(observed, threads + missing - 1, below, fits_apart);
        let is_new = |found: &Match| found.main.is_none_or(|main| main + 1 != found.first);
        let mut matches: Vec<Match> =
            together.into_iter().chain(apart.into_iter().filter(is_new)).collect();
        matches.sort_by_key(|found| (found.first, found.main));
        if !matches.is_empty() {
            return Ok(Matches { missing, matches });
        }
    }
    Ok(Matches { missing, matches: Vec::new() })
}

/// Checks the tables and returns the number of threads of each.
fn check(observed: &[Observed]) -> Result<u32, String> {
    let mut threads = None;
    for table in observed {
        let bits = table.width.bits();
        if let Some(bit) = table.frequencies.keys().find(|&&bit| bit >= bits) {
            return Err(format!("expected bits from 0 to {}, found {bit}", bits - 1));
        }
        let sum: u64 = table.frequencies.values().map(|&count| u64::from(count)).sum();
        if !(1..u64::from(MOST_IDS)).contains(&sum) {
            return Err(format!("expected 1 to {} threads, found {sum}", MOST_IDS - 1));
        }
        let expected = *threads.get_or_insert(sum);
        if sum != expected {
            return Err(format!("expected {expected} threads in each table, found {sum}"));
        }
    }
    let threads = threads.ok_or("expected a table")?;
    Ok(threads as u32)
}

/// Checks if a range that begins at this ID fits the tables. Returns the additional main thread, if
/// there is one.
type Fits = fn(&[Gap<'_>], u32) -> Option<Option<u32>>;

/// Checks all ranges of this number of IDs with `fits`, and returns the matching ones.
fn ranges(observed: &[Observed], threads: u32, below: u32, fits: Fits) -> Vec<Match> {
    if threads == 0 || threads >= below {
        return Vec::new();
    }
    let mut gaps: Vec<Gap<'_>> = observed.iter().map(Gap::new).collect();
    let mut found = Vec::new();
    for last in 1..below {
        gaps.iter_mut().for_each(|gap| gap.add(last, -1));
        if last > threads {
            gaps.iter_mut().for_each(|gap| gap.add(last - threads, 1));
        }
        if last >= threads {
            let first = last + 1 - threads;
            let fitting = fits(&gaps, first).filter(|_| lack_the_same(&gaps, first..=last));
            found.extend(fitting.map(|main| Match { first, last, main }));
        }
    }
    found
}

/// Number of a table's threads that are not in the range, by bit.
struct Gap<'a> {
    table: &'a Observed,
    threads: Vec<i64>,
    /// Number of bits with threads of the table that are not in the range.
    open: u32,
}

impl Gap<'_> {
    fn new(table: &Observed) -> Gap<'_> {
        let mut threads = vec![0; table.width.bits() as usize];
        for (&bit, &count) in &table.frequencies {
            threads[bit as usize] = i64::from(count);
        }
        let open = threads.iter().filter(|&&count| count > 0).count() as u32;
        Gap { table, threads, open }
    }

    fn add(&mut self, thread: u32, count: i64) {
        let bit = self.table.method.bit(self.table.width, thread);
        let threads = &mut self.threads[bit as usize];
        self.open -= u32::from(*threads > 0);
        *threads += count;
        self.open += u32::from(*threads > 0);
    }

    /// Returns the only bit for which the table has more threads than the range, if it has exactly
    /// one more.
    fn only(&self) -> Option<u32> {
        let bit = self.threads.iter().position(|&count| count > 0)?;
        (self.open == 1 && self.threads[bit] == 1).then_some(bit as u32)
    }
}

/// Returns `true` if some threads of the range have exactly the bits that each table lacks.
fn lack_the_same(gaps: &[Gap<'_>], threads: RangeInclusive<u32>) -> bool {
    let Some((one, others)) = gaps.split_first() else { return true };
    others.iter().all(|other| Lacking::new(one, other, threads.clone()).explained())
}

/// The threads that two tables lack, as a bipartite matching. Each missing thread reduces the count
/// of one bit in either table. All counts reach 0 if there is an augmenting path for every missing
/// thread.
struct Lacking {
    /// Number of threads that each table lacks, by bit.
    left: Vec<i64>,
    right: Vec<i64>,
    /// Bits of each thread that could be missing, and `true` if the thread is in the matching.
    threads: Vec<(usize, usize, bool)>,
}

impl Lacking {
    fn new(left: &Gap<'_>, right: &Gap<'_>, threads: RangeInclusive<u32>) -> Lacking {
        let lacking = |gap: &Gap<'_>| gap.threads.iter().map(|&count| (-count).max(0)).collect();
        let bit = |gap: &Gap<'_>, thread| gap.table.method.bit(gap.table.width, thread) as usize;
        let mut lacking =
            Lacking { left: lacking(left), right: lacking(right), threads: Vec::new() };
        if lacking.left.iter().all(|&count| count == 0) {
            return lacking;
        }
        let bits = threads.map(|thread| (bit(left, thread), bit(right, thread), false));
        lacking.threads =
            bits.filter(|&(l, r, _)| lacking.left[l] > 0 && lacking.right[r] > 0).collect();
        lacking
    }

    fn explained(mut self) -> bool {
        for bit in 0..self.left.len() {
            while self.left[bit] > 0 {
                if !self.take(bit, &mut vec![false; self.threads.len()]) {
                    return false;
                }
                self.left[bit] -= 1;
            }
        }
        self.right.iter().all(|&count| count == 0)
    }

    /// Adds one more thread with this bit of the left table to the matching. Replaces threads of
    /// the matching if needed. Returns `true` if it succeeded.
    fn take(&mut self, bit: usize, seen: &mut [bool]) -> bool {
        for at in 0..self.threads.len() {
            let (left, right, is_taken) = self.threads[at];
            if left != bit || is_taken || seen[at] {
                continue;
            }
            seen[at] = true;
            if self.right[right] > 0 {
                self.right[right] -= 1;
                self.threads[at].2 = true;
                return true;
            }
            for other in 0..self.threads.len() {
                let (its_left, its_right, is_taken) = self.threads[other];
                if its_right != right || !is_taken || seen[other] {
                    continue;
                }
                seen[other] = true;
                if self.take(its_left, seen) {
                    self.threads[other].2 = false;
                    self.threads[at].2 = true;
                    return true;
                }
            }
        }
        false
    }
}

/// Accepts a range that contains all threads.
fn fits_together(gaps: &[Gap<'_>], _first: u32) -> Option<Option<u32>> {
    gaps.iter().all(|gap| gap.open == 0).then_some(None)
}

/// Accepts a range that contains all threads but one, if there is an ID for that one.
fn fits_apart(gaps: &[Gap<'_>], first: u32) -> Option<Option<u32>> {
    let bits: Vec<u32> = gaps.iter().map(Gap::only).collect::<Option<_>>()?;
    let has_bits = |thread: &u32| {
        gaps.iter()
            .zip(&bits)
            .all(|(gap, &bit)| gap.table.method.bit(gap.table.width, *thread) == bit)
    };
    (1..first).rev().find(has_bits).map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::hash::{IDS, PUBLISHED, frequencies};
    use super::*;

    fn tables(threads: impl Iterator<Item = u32> + Clone) -> Vec<Observed> {
        let table = |method| Observed {
            method,
            width: Width::Bits64,
            frequencies: frequencies(method, Width::Bits64, threads.clone()),
        };
        Method::ALL.map(table).to_vec()
    }

    #[test]
    fn the_published_tables_lead_to_their_threads() {
        for run in &PUBLISHED[..3] {
            let found = search(&tables(run.threads()), 0, IDS).expect("tables");
            let (first, last) = run.workers;
            let is_beside = run.main + 1 == first;
            let expected = match is_beside {
                true => Match { first: run.main, last, main: None },
                false => Match { first, last, main: Some(run.main) },
            };
            assert!(found.matches.contains(&expected), "{run:?}: {found:?}");
            assert_eq!(found.missing, 0);
        }
    }

    #[test]
    fn one_table_leaves_more_doubt_than_two() {
        let both = tables(PUBLISHED[0].threads());
        let count = |tables: &[Observed]| search(tables, 0, IDS).expect("tables").matches.len();
        let [low, two] = [count(&both[..1]), count(&both)];
        assert!(low >= 500 && two >= 1 && two < low / 10, "{low} {two}");
    }

    /// Negative controls: a table with a thread moved to another bit, and one of threads that are
    /// not consecutive.
    #[test]
    fn tables_of_no_consecutive_threads_lead_nowhere() {
        let mut wrong = tables(1000..1032);
        let low = &mut wrong[0].frequencies;
        let (&bit, _) = low.iter().next().expect("a bit");
        low.remove(&bit);
        *low.entry((bit + 20) % 64).or_insert(0) += 1;
        *low.entry((bit + 1) % 64).or_insert(0) += 1;
        *low.get_mut(&((bit + 2) % 64)).expect("a bit") -= 1;
        assert_eq!(search(&wrong, 0, IDS).expect("tables").matches, []);
        let even = tables((1000..1064).step_by(2));
        assert_eq!(search(&even, 0, IDS).expect("tables").matches, []);
    }

    #[test]
    fn threads_that_never_scanned_may_be_missing() {
        let seen = || (1000..1032).filter(|thread| ![1007, 1020].contains(thread));
        assert_eq!(search(&tables(seen()), 1, IDS).expect("tables").matches, []);
        let found = search(&tables(seen()), 5, IDS).expect("tables");
        assert_eq!(found.missing, 2);
        assert!(found.matches.contains(&Match { first: 1000, last: 1031, main: None }));
    }

    /// Nine threads of the largest published run never scanned. With fewer missing threads, some
    /// ranges explain each table by itself, but not both by the same threads.
    #[test]
    fn both_tables_have_to_lack_the_same_threads() {
        let run = &PUBLISHED[3];
        let published = crate::published::hashes();
        let table = |method: Method| Observed {
            method,
            width: Width::Bits64,
            frequencies: published
                .iter()
                .filter(|row| row.table == run.table && row.method == method.name())
                .map(|row| (row.value, row.frequency))
                .collect(),
        };
        let both = Method::ALL.map(table);
        let found = search(&both, 9, IDS).expect("tables");
        assert_eq!(found.missing, 9, "{found:?}");
        let expected = Match { first: run.main, last: run.workers.1, main: None };
        assert!(found.matches.contains(&expected), "{found:?}");
        let low = search(&both[..1], 9, IDS).expect("tables");
        assert!(low.missing < 9, "one table alone is explained by fewer: {}", low.missing);
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        let table = |bit, count| Observed {
            method: Method::Hash,
            width: Width::Bits64,
            frequencies: BTreeMap::from([(bit, count)]),
        };
        for (tables, expected) in [
            (vec![], "expected a table"),
            (vec![table(64, 1)], "expected bits from 0 to 63, found 64"),
            (vec![table(3, 0)], "expected 1 to 4194303 threads, found 0"),
            (vec![table(3, 2), table(3, 3)], "expected 2 threads in each table, found 3"),
        ] {
            assert_eq!(search(&tables, 0, IDS), Err(expected.to_owned()));
        }
    }
}
