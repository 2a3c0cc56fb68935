//! Many threads record while collections are made continuously: nothing is lost or counted twice.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, MeterProvider, SyncInstrument};
use percid_opentelemetry::PercidMeterProvider;
use percid_opentelemetry::data::{Buckets, Data, Distribution, Number, Point};

const THREADS: u64 = 8;
const ROUNDS: u64 = 40_000;

fn provider() -> PercidMeterProvider {
    PercidMeterProvider::builder().with_cardinality_limit(50).build()
}

/// Runs threads that call `record` with the numbers of the thread and of the round. One more thread
/// calls `read` continuously.
fn race(record: impl Fn(u64, u64) + Sync, read: impl Fn() + Sync) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !is_over.load(Relaxed) {
                read();
            }
        });
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let record = &record;
                scope.spawn(move || (0..ROUNDS).for_each(|round| record(thread, round)));
            }
        });
        is_over.store(true, Relaxed);
        reader.join().expect("no panic");
    });
}

fn data(provider: &PercidMeterProvider) -> Option<Data> {
    let mut collection = provider.collect();
    Some(collection.scopes.pop()?.metrics.pop()?.data)
}

fn total(data: Option<Data>) -> u64 {
    let value = |point: &Point<Number>| match point.value {
        Number::U64(value) => value,
        Number::I64(value) => value as u64,
        Number::F64(value) => value as u64,
    };
    match data {
        Some(Data::Sum { points, .. }) => points.iter().map(value).sum(),
        None => 0,
        other => panic!("{other:?}"),
    }
}

/// Returns the total of a counter that all threads use, with attributes beyond the limit, without
/// attributes, and bound. No reading may be less than an earlier one.
fn total_of(counter: &Counter<u64>, read: impl Fn() -> u64 + Sync) -> u64 {
    let bound = counter.bind(&[KeyValue::new("n", 3)]);
    let last = AtomicU64::new(0);
    race(
        |thread, round| {
            counter.add(1, &[KeyValue::new("n", ((thread + round) % 70) as i64)]);
            counter.add(1, &[KeyValue::new("n", 1), KeyValue::new("t", thread as i64 % 2)]);
            counter.add(1, &[]);
            bound.add(1);
        },
        || {
            let now = read();
            assert!(last.swap(now, Relaxed) <= now, "a sum has fallen");
        },
    );
    read()
}

const ALL: u64 = THREADS * ROUNDS * 4;

#[test]
fn counters_lose_nothing() {
    let provider = provider();
    let counter = provider.meter("exact").u64_counter("counter").build();
    assert_eq!(total_of(&counter, || total(data(&provider))), ALL);
}

/// Negative control: a counter that loses additions is detected.
#[test]
fn a_lossy_counter_is_noticed() {
    #[derive(Default)]
    struct Lossy(AtomicU64);

    impl SyncInstrument<u64> for Lossy {
        fn measure(&self, measurement: u64, _: &[KeyValue]) {
            let before = self.0.load(SeqCst);
            if before.is_multiple_of(1000) {
                std::thread::yield_now();
            }
            // For readers, the value never falls.
            self.0.fetch_max(before + measurement, SeqCst);
        }
    }

    let lossy = Arc::new(Lossy::default());
    let counter = Counter::new(Arc::clone(&lossy) as _);
    // It ignores bound updates.
    let expected = ALL / 4 * 3;
    assert!(total_of(&counter, || lossy.0.load(SeqCst)) < expected);
}

#[test]
fn floats_and_balances_lose_nothing() {
    let provider = provider();
    let float = provider.meter("float").f64_counter("sum").build();
    let balance = provider.meter("balance").i64_up_down_counter("balance").build();
    let floating = provider.meter("floating").f64_up_down_counter("balance").build();
    race(
        |thread, _| {
            let attributes = [KeyValue::new("t", thread as i64)];
            float.add(0.5, &attributes);
            balance.add(3, &attributes);
            balance.add(-2, &attributes);
            floating.add(1.5, &attributes);
            floating.add(-0.5, &attributes);
        },
        || _ = provider.collect(),
    );
    let totals = |scope: &opentelemetry::InstrumentationScope| {
        let collection = provider.collect();
        let found = collection.scopes.into_iter().find(|it| it.scope == *scope);
        total(found.map(|mut it| it.metrics.remove(0).data))
    };
    let [float, balance, floating] = ["float", "balance", "floating"]
        .map(|name| totals(&opentelemetry::InstrumentationScope::builder(name).build()));
    let calls = THREADS * ROUNDS;
    assert_eq!((float, balance, floating), (calls / 2, calls, calls));
}

fn counted(distribution: &Distribution) -> u64 {
    match &distribution.buckets {
        Buckets::Explicit { counts, .. } => counts.iter().sum(),
        Buckets::Exponential { zero_count, positive, negative, .. } => {
            zero_count + positive.counts.iter().chain(&negative.counts).sum::<u64>()
        }
        other => panic!("{other:?}"),
    }
}

fn distributions(provider: &PercidMeterProvider) -> Vec<Distribution> {
    match data(provider) {
        Some(Data::Histogram { points }) => points.into_iter().map(|point| point.value).collect(),
        None => Vec::new(),
        other => panic!("{other:?}"),
    }
}

fn histograms_lose_nothing(provider: &PercidMeterProvider) {
    let histogram = provider.meter("exact").u64_histogram("histogram").build();
    let bound = histogram.bind(&[KeyValue::new("n", 1)]);
    race(
        |thread, round| {
            histogram.record(round % 3000, &[KeyValue::new("n", (thread % 4) as i64)]);
            bound.record(round % 100);
        },
        || {
            for distribution in distributions(provider) {
                assert_eq!(counted(&distribution), distribution.count);
            }
        },
    );
    let all = distributions(provider);
    assert_eq!(all.iter().map(|it| it.count).sum::<u64>(), THREADS * ROUNDS * 2);
    assert_eq!(all.iter().map(counted).sum::<u64>(), THREADS * ROUNDS * 2);
    let of_thread: u64 = (0..ROUNDS).map(|round| round % 3000 + round % 100).sum();
    let sum: f64 = all.iter().filter_map(|it| it.sum).sum();
    assert_eq!(sum, (THREADS * of_thread) as f64);
}

#[test]
fn histograms_with_boundaries_lose_nothing() {
    histograms_lose_nothing(&provider());
}

#[test]
fn exponential_histograms_lose_nothing() {
    histograms_lose_nothing(&PercidMeterProvider::builder().with_exponential_histograms(5).build());
}
