//! Buckets of every source, and readings of one moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::Buckets;
use super::takes::Takes;
use super::tallies::COPIED;
use crate::id::Source;
use crate::sys::atomic::AtomicU32;
use crate::sys::steps::{self, Fence, Step};

fn read<const N: usize>(buckets: &Buckets) -> ([u64; N], f64) {
    let mut counts = [0; N];
    let sum = buckets.read(&mut counts);
    (counts, sum)
}

#[test]
fn every_source_counts_and_adds() {
    for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
        let buckets = Buckets::with_source(source, 5).expect("an available source");
        for n in 0..1000 {
            buckets.record(n % 7, n as f64);
            buckets.record_many(2, 3, 0.5);
        }
        let expected = [143, 143, 3143, 143, 143 + 143 + 142];
        assert_eq!(read(&buckets), (expected, 499_500.0 + 500.0), "{source}");
    }
}

#[test]
fn the_same_bucket_again_and_again() {
    let buckets = Buckets::new(3);
    for n in 1..=5 {
        buckets.record(0, 1.0);
        assert_eq!(read(&buckets), ([n, 0, 0], n as f64));
    }
    buckets.record(2, 10.0);
    buckets.record(0, 1.0);
    assert_eq!(read(&buckets), ([6, 0, 1], 16.0));
    assert_eq!(read::<1>(&buckets), ([6], 16.0), "fewer than there are");
    assert_eq!(read::<4>(&buckets), ([6, 0, 1, 0], 16.0), "more than there are");
}

#[test]
fn nothing_is_lost_while_others_read() {
    const RECORDS: usize = if cfg!(miri) { 100 } else { 200_000 };
    let buckets = Buckets::new(7);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let buckets = &buckets;
            let record = move || {
                (0..RECORDS).for_each(|n| buckets.record((n + thread) % 7, (n % 3) as f64));
            };
            scope.spawn(record);
        }
        scope.spawn(|| {
            let mut before = ([0; 7], 0.0);
            for _ in 0..RECORDS / 100 {
                let now = read::<7>(&buckets);
                assert!(before.0.iter().zip(&now.0).all(|(before, now)| before <= now));
                assert!(before.1 <= now.1 && now.1 <= 8.0 * RECORDS as f64);
                before = now;
            }
        });
    });
    let (counts, sum) = read::<7>(&buckets);
    assert_eq!(counts.iter().sum::<u64>(), 4 * RECORDS as u64);
    assert_eq!(sum, 4.0 * (0..RECORDS).map(|n| n % 3).sum::<usize>() as f64);
}

#[test]
fn a_bucket_beyond_the_last_is_the_last() {
    let buckets = Buckets::new(Buckets::MAX);
    buckets.record(usize::MAX, 1.0);
    buckets.record_many(5000, 0, 7.0);
    let mut counts = vec![0; Buckets::MAX];
    assert_eq!((buckets.read(&mut counts), counts[Buckets::MAX - 1]), (1.0, 1));
}

#[test]
#[should_panic(expected = "1 to 2048")]
fn no_buckets_are_refused() {
    _ = Buckets::new(0);
}

#[test]
#[should_panic(expected = "1 to 2048")]
fn too_many_buckets_are_refused() {
    _ = Buckets::new(Buckets::MAX + 1);
}

/// Every value is that of its bucket, so the counts of a reading tell its sum.
#[test]
fn the_counts_and_the_sum_of_a_reading_belong_together() {
    const READINGS: usize = if cfg!(miri) { 20 } else { 20_000 };
    for &source in Source::ALL {
        let Ok(buckets) = Buckets::with_source(source, 7) else { continue };
        let done = AtomicBool::new(false);
        let recorded = std::thread::scope(|scope| {
            let writers = [1, 2, 3].map(|step| {
                let (buckets, done) = (&buckets, &done);
                scope.spawn(move || {
                    let mut records = 0;
                    while !done.load(Relaxed) {
                        buckets.record(records * step % 7, worth(records * step % 7));
                        records += 1;
                    }
                    records as u64
                })
            });
            let told = |(counts, sum): ([u64; 7], f64)| {
                (0..7).map(|bucket| counts[bucket] as f64 * worth(bucket)).sum::<f64>() == sum
            };
            let torn = (0..READINGS).find(|_| !told(read::<7>(&buckets)));
            // Before the assertion: the writers end if it fails.
            done.store(true, Relaxed);
            assert_eq!(torn, None, "{source}");
            writers.map(|writer| writer.join().expect("a writer")).iter().sum::<u64>()
        });
        assert_eq!(read::<7>(&buckets).0.iter().sum::<u64>(), recorded, "{source}");
    }
}

fn worth(bucket: usize) -> f64 {
    (1 + bucket * bucket) as f64
}

/// More buckets than a reading copies: values are held, which needs a fence where there are
/// sections.
#[test]
fn many_buckets_are_read_at_one_moment_too() {
    for &source in Source::ALL {
        let Ok(buckets) = Buckets::with_source(source, COPIED + 1) else { continue };
        for times in 1..4 {
            buckets.record(COPIED, 2.5);
            let fences = Arc::new(AtomicU64::new(0));
            let counted = Arc::clone(&fences);
            let watching = steps::watch(move |step| {
                counted.fetch_add(u64::from(step == Step::Membarrier(Fence::OfAll)), Relaxed);
                None
            });
            let mut counts = [0; COPIED + 1];
            let sum = buckets.read(&mut counts);
            drop(watching);
            assert_eq!((sum, counts[COPIED]), (2.5 * times as f64, times), "{source}");
            let sections = u64::from(source != Source::Atomic);
            assert_eq!(fences.load(Relaxed), sections, "{source}");
        }
    }
}

#[test]
#[cfg_attr(
    not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))),
    ignore = "mappings are refused on Linux only"
)]
fn records_without_memory_are_counted() {
    let buckets = Buckets::new(2);
    let watching = steps::watch(|step| {
        matches!(step, Step::Claim(_) | Step::Map(_)).then_some(Err(steps::REFUSED))
    });
    buckets.record(0, 0.5);
    buckets.record_many(1, 3, 0.5);
    drop(watching);
    assert_eq!((read(&buckets), buckets.unrecorded()), (([0, 0], 0.0), 4));
}

#[test]
fn every_source_counts_batches() {
    for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
        let buckets = Buckets::with_source(source, 4).expect("an available source");
        for n in 0..10 {
            buckets.record(3, 0.5);
            buckets.record_all(&[1, 0, n], 2.0);
            buckets.record_all(&[0, 3, 0, 1, 1, 1], 10.0);
            buckets.record_all(&[0; 9], 77.0);
            buckets.record_all(&[], 77.0);
        }
        assert_eq!(read(&buckets), ([10, 30, 45, 40], 125.0), "{source}");
    }
}

/// An operation that finds its ID's value held works on one that has batches.
#[test]
fn a_value_with_batches_counts_single_values_too() {
    for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
        let buckets = Buckets::with_source(source, 3).expect("an available source");
        buckets.record(0, 1.0);
        for n in 1..=4 {
            buckets.record_all(&[0, n, 0], 0.25);
            let held: Vec<_> =
                buckets.tallies.visit().filter(|value| value.id().is_some()).collect();
            buckets.record(2, 100.0);
            buckets.record(0, 1000.0);
            buckets.record_all(&[5, 0, 0], 0.5);
            drop(held);
        }
        assert_eq!(read(&buckets), ([1 + 4 * 6, 10, 4], 4404.0), "{source}");
        assert_eq!(taken(&buckets), ([1 + 4 * 6, 10, 4], 4404.0), "{source}");
        buckets.record_all(&[1, 1, 1], 3.0);
        assert_eq!(read(&buckets), ([1, 1, 1], 3.0), "{source}");
    }
}

#[test]
fn every_source_takes_everything_once() {
    for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
        let buckets = Buckets::with_source(source, 3).expect("an available source");
        assert_eq!(taken(&buckets), ([0; 3], 0.0), "{source}");
        for n in 1..5 {
            buckets.record(1, f64::INFINITY);
            assert_eq!(taken(&buckets), ([0, 1, 0], f64::INFINITY), "{source}");
            buckets.record_many(2, n, 7.0);
            buckets.record_all(&[n], 1.0);
            assert_eq!(taken(&buckets), ([n, 0, n], 8.0), "{source}");
            assert_eq!(read(&buckets), ([0; 3], 0.0), "{source}");
        }
    }
}

#[test]
#[should_panic(expected = "an element for each bucket")]
fn counts_that_would_be_lost_are_refused() {
    Buckets::new(3).take(&mut [0; 2]);
}

/// A thread of the parent was taking values when the process forked.
#[test]
fn a_reading_ends_a_take_whose_thread_has_gone() {
    let buckets = Buckets::new(2);
    buckets.record(0, 2.0);
    buckets.takes.begin();
    assert_eq!(read(&buckets), ([1, 0], 2.0));
    assert!(!buckets.takes.is_under_way());
}

/// A handler that interrupts a take reads something and takes nothing, and neither waits.
#[test]
fn a_take_inside_a_take_takes_nothing() {
    for &source in Source::ALL {
        let Ok(buckets) = Buckets::with_source(source, 2) else { continue };
        let buckets = Arc::new(buckets);
        buckets.record(1, 2.5);
        let visit = buckets.tallies.visit();
        buckets.takes.begin();
        assert_eq!(taken::<2>(&buckets), ([0; 2], 0.0), "{source}");
        assert_eq!(read(&buckets), ([0, 1], 2.5), "{source}");
        assert!(buckets.takes.is_under_way(), "{source}");
        buckets.takes.end();
        drop(visit);
        assert_eq!(taken(&buckets), ([0, 1], 2.5), "{source}");
    }
}

/// Values whose fence is refused stay, and values without an ID are taken all the same.
#[test]
fn what_cannot_be_held_stays_for_the_next_take() {
    for &source in Source::ALL.iter().filter(|&&source| source != Source::Atomic) {
        let Ok(buckets) = Buckets::with_source(source, 2) else { continue };
        buckets.record(0, 2.0);
        let of_id = buckets.tallies.iter().any(|(id, _)| id.is_some());
        buckets.record_all(&[0, 1], 5.0);
        let refusing = steps::watch(|step| {
            matches!(step, Step::Membarrier(Fence::OfAll)).then_some(Err(steps::REFUSED))
        });
        let (first, sum) = taken::<2>(&buckets);
        drop(refusing);
        if of_id {
            assert_eq!((first, sum), ([0, 1], 5.0), "{source}");
            assert_eq!(taken(&buckets), ([1, 0], 2.0), "{source}");
        }
    }
}

/// Batches and single records, each worth what its buckets say, beside readings and takes: each
/// reading and each take tells its sum, and the takes and the rest are everything.
#[test]
fn takes_and_batches_belong_together() {
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 5_000 };
    for &source in Source::ALL {
        let Ok(buckets) = Buckets::with_source(source, 7) else { continue };
        let done = AtomicBool::new(false);
        let (buckets, done) = (&buckets, &done);
        std::thread::scope(|scope| {
            let batches = scope.spawn(move || until(done, |n| record_batch(buckets, n)));
            let records = scope.spawn(move || {
                until(done, |n| {
                    buckets.record(n % 7, worth(n % 7));
                    1
                })
            });
            let reads = scope.spawn(move || {
                let mut torn = 0;
                until(done, |_| {
                    torn += u64::from(!tells(read(buckets)));
                    0
                });
                torn
            });
            let (mut all, mut torn) = (0, 0);
            for _ in 0..ROUNDS {
                let now = taken(buckets);
                torn += u64::from(!tells(now));
                all += now.0.iter().sum::<u64>();
            }
            // Before the assertions: the others end if one fails.
            done.store(true, Relaxed);
            let [recorded, batched, torn_reads] =
                [records, batches, reads].map(|thread| thread.join().expect("no panic"));
            assert_eq!((torn, torn_reads), (0, 0), "{source}");
            let rest = read::<7>(buckets).0.iter().sum::<u64>();
            assert_eq!(all + rest, recorded + batched, "{source}");
        });
    }
}

/// Calls a function with numbers until it is done, and returns the sum of its results.
fn until(done: &AtomicBool, mut round: impl FnMut(usize) -> u64) -> u64 {
    (0..).take_while(|_| !done.load(Relaxed)).map(&mut round).sum()
}

fn record_batch(buckets: &Buckets, n: usize) -> u64 {
    let mut counts = [0; 7];
    (counts[n % 7], counts[n * 3 % 7], counts[n * 5 % 7]) = (1, 2, n as u64 % 3);
    buckets.record_all(&counts, sum_told_by(&counts));
    counts.iter().sum()
}

fn sum_told_by(counts: &[u64; 7]) -> f64 {
    (0..7).map(|bucket| counts[bucket] as f64 * worth(bucket)).sum()
}

fn tells((counts, sum): ([u64; 7], f64)) -> bool {
    sum_told_by(&counts) == sum
}

fn taken<const N: usize>(buckets: &Buckets) -> ([u64; N], f64) {
    let mut counts = [0; N];
    let sum = buckets.take(&mut counts);
    (counts, sum)
}

#[test]
fn a_reading_during_a_take_has_no_result() {
    let takes = Takes { number: AtomicU32::new(0) };
    assert_eq!(takes.without(|| 1), Some(1));
    assert_eq!(takes.without(|| takes.begin()), None);
    assert!(takes.is_under_way());
    assert_eq!(takes.without(|| ()), None);
    takes.end();
    let whole = || {
        takes.begin();
        takes.end();
    };
    assert_eq!((takes.without(whole), takes.is_under_way()), (None, false));
    takes.end();
    assert_eq!(takes.without(|| 2), Some(2));
}
