//! Buckets of every source, and readings of one moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::Buckets;
use super::tallies::COPIED;
use crate::id::Source;
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
