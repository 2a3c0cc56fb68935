//! The effects of values, attributes and names on instruments.

use crate::collected;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use collected::{distribution, metric, number, numbers};
use opentelemetry::metrics::MeterProvider;
use opentelemetry::{Array, InstrumentationScope, KeyValue, Value};
use percid_opentelemetry::data::{Buckets, Data, Number};
use percid_opentelemetry::{Error, PercidMeterProvider};

fn provider() -> PercidMeterProvider {
    PercidMeterProvider::builder().build()
}

/// Returns a provider, and the list of its errors.
fn telling(limit: usize) -> (PercidMeterProvider, Arc<Mutex<Vec<Error>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = Arc::clone(&told);
    let provider = PercidMeterProvider::builder()
        .with_cardinality_limit(limit)
        .with_error_handler(move |error| tells.lock().expect("no panic").push(error.clone()))
        .build();
    (provider, told)
}

fn told(told: &Mutex<Vec<Error>>) -> Vec<Error> {
    std::mem::take(&mut *told.lock().expect("no panic"))
}

fn overflow() -> [KeyValue; 1] {
    [KeyValue::new("otel.metric.overflow", true)]
}

#[test]
fn attributes_are_a_set() {
    let provider = provider();
    let counter = provider.meter("m").u64_counter("c").build();
    let [a, b, old] = [KeyValue::new("a", 1), KeyValue::new("b", "x"), KeyValue::new("a", 0)];
    for _ in 0..3 {
        counter.add(1, &[a.clone(), b.clone()]);
        counter.add(1, &[b.clone(), a.clone()]);
        counter.add(1, &[old.clone(), b.clone(), a.clone()]);
        counter.bind(&[b.clone(), old.clone(), a.clone()]).add(1);
    }
    assert_eq!(numbers(&provider, "c").len(), 1);
    assert_eq!(number(&provider, "c", &[a.clone(), b.clone()]), Some(Number::U64(12)));
    // Negative control: another value, or one attribute less, is another series.
    counter.add(1, &[old, b.clone()]);
    counter.add(1, &[b]);
    counter.add(1, &[]);
    assert_eq!(numbers(&provider, "c").len(), 4);
}

#[test]
fn a_value_that_is_no_number_has_one_series() {
    let provider = provider();
    let counter = provider.meter("m").u64_counter("c").build();
    (0..10).for_each(|_| counter.add(1, &[KeyValue::new("a", Value::F64(f64::NAN))]));
    assert_eq!(numbers(&provider, "c").len(), 1);
}

/// The API hashes the bits of numbers, and the length and items of arrays. Types make no
/// difference.
#[test]
fn attributes_of_one_hash_are_told_apart() {
    let provider = provider();
    let counter = provider.meter("m").u64_counter("c").build();
    let values = [
        [Value::I64(7), Value::F64(f64::from_bits(7))],
        [Value::Array(Array::I64(Vec::new())), Value::Array(Array::Bool(Vec::new()))],
    ];
    for (key, pair) in ["number", "array"].into_iter().zip(values) {
        let [one, other] = pair.map(|value| KeyValue::new(key, value));
        let hash = |attribute: &KeyValue| {
            let mut hasher = DefaultHasher::new();
            attribute.hash(&mut hasher);
            hasher.finish()
        };
        assert_eq!(hash(&one), hash(&other));
        for _ in 0..3 {
            let first = KeyValue::new("a", key);
            counter.add(1, &[first.clone(), one.clone()]);
            counter.add(1, &[first, other.clone()]);
        }
    }
    let values: Vec<Number> = numbers(&provider, "c").iter().map(|point| point.value).collect();
    assert_eq!(values, [Number::U64(3); 4]);
}

#[test]
fn beyond_the_limit_all_is_counted_together() {
    let (provider, errors) = telling(10);
    let counter = provider.meter("m").u64_counter("c").build();
    let bound = counter.bind(&[KeyValue::new("n", 0)]);
    for n in 0..100 {
        counter.add(1, &[KeyValue::new("n", n)]);
    }
    counter.bind(&[KeyValue::new("n", 99)]).add(1);
    bound.add(1);
    assert_eq!(numbers(&provider, "c").len(), 11);
    assert_eq!(number(&provider, "c", &overflow()), Some(Number::U64(91)));
    assert_eq!(number(&provider, "c", &[KeyValue::new("n", 0)]), Some(Number::U64(2)));
    counter.add(1, &[]);
    assert_eq!(number(&provider, "c", &[]), Some(Number::U64(1)));
    assert_eq!(told(&errors), [Error::Overflow { name: "c".to_owned(), limit: 10 }]);
    assert_eq!(provider.errors(), 1);
}

/// Negative control of the previous test: series up to the limit are separate.
#[test]
fn up_to_the_limit_nothing_overflows() {
    let (provider, errors) = telling(10);
    let counter = provider.meter("m").u64_counter("c").build();
    (0..10).for_each(|n| counter.add(1, &[KeyValue::new("n", n)]));
    assert_eq!(number(&provider, "c", &overflow()), None);
    assert!(told(&errors).is_empty());
}

#[test]
fn the_specification_limits_series_to_2000() {
    let provider = PercidMeterProvider::builder().with_error_handler(|_| ()).build();
    let counter = provider.meter("m").u64_counter("c").build();
    (0..3000).for_each(|n| counter.add(1, &[KeyValue::new("n", n)]));
    assert_eq!(numbers(&provider, "c").len(), 2001);
    assert_eq!(number(&provider, "c", &overflow()), Some(Number::U64(1000)));
}

#[test]
fn counters_ignore_what_would_make_them_fall_and_what_is_no_number() {
    let provider = provider();
    let meter = provider.meter("m");
    let counter = meter.f64_counter("counter").build();
    let balance = meter.f64_up_down_counter("balance").build();
    let bound = counter.bind(&[]);
    for value in [2.5, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0] {
        counter.add(value, &[]);
        bound.add(value);
        balance.add(value, &[]);
    }
    assert_eq!(number(&provider, "counter", &[]), Some(Number::F64(5.0)));
    assert_eq!(number(&provider, "balance", &[]), Some(Number::F64(1.5)));
    let Some(Data::Sum { is_monotonic, .. }) = metric(&provider, "balance").map(|it| it.data)
    else {
        panic!("a sum")
    };
    assert!(!is_monotonic);
}

#[test]
fn integers_wrap_around() {
    let provider = provider();
    let counter = provider.meter("m").u64_counter("c").build();
    counter.add(u64::MAX, &[]);
    assert_eq!(number(&provider, "c", &[]), Some(Number::U64(u64::MAX)));
    counter.add(3, &[]);
    assert_eq!(number(&provider, "c", &[]), Some(Number::U64(2)));
}

#[test]
fn gauges_have_what_was_recorded_last() {
    let provider = provider();
    let meter = provider.meter("m");
    let [unsigned, signed, float] = ["unsigned", "signed", "float"];
    let gauge = meter.u64_gauge(unsigned).build();
    [u64::MAX, 3, u64::MAX - 1].into_iter().for_each(|value| gauge.record(value, &[]));
    meter.i64_gauge(signed).build().record(i64::MIN, &[]);
    let gauge = meter.f64_gauge(float).build();
    let bound = gauge.bind(&[]);
    assert_eq!(number(&provider, float, &[]), None, "nothing was recorded");
    bound.record(-0.5);
    assert_eq!(number(&provider, unsigned, &[]), Some(Number::U64(u64::MAX - 1)));
    assert_eq!(number(&provider, signed, &[]), Some(Number::I64(i64::MIN)));
    assert_eq!(number(&provider, float, &[]), Some(Number::F64(-0.5)));
    gauge.record(f64::NAN, &[]);
    let Some(Number::F64(value)) = number(&provider, float, &[]) else { panic!("a float") };
    assert!(value.is_nan());
}

#[test]
fn a_boundary_belongs_to_the_bucket_below() {
    let provider = provider();
    let histogram = provider.meter("m").f64_histogram("h").with_boundaries(vec![1.0, 2.0]).build();
    for value in [0.0, 1.0, 1.0f64.next_up(), 2.0, 2.0f64.next_up(), 1e300] {
        histogram.record(value, &[]);
    }
    [f64::NAN, f64::INFINITY].into_iter().for_each(|value| histogram.record(value, &[]));
    let read = distribution(&provider, "h").expect("values");
    assert_eq!(read.buckets, Buckets::Explicit { bounds: vec![1.0, 2.0], counts: vec![2, 2, 2] });
    assert_eq!((read.count, read.sum.is_some_and(f64::is_finite)), (6, true));
}

#[test]
fn default_boundaries_are_the_specifications() {
    let provider = provider();
    let histogram = provider.meter("m").u64_histogram("h").build();
    [0, 5, 6, 10_000, 10_001].into_iter().for_each(|value| histogram.record(value, &[]));
    let Buckets::Explicit { bounds, counts } =
        distribution(&provider, "h").expect("values").buckets
    else {
        panic!("explicit")
    };
    let expected = [
        0.0, 5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 250.0, 500.0, 750.0, 1000.0, 2500.0, 5000.0,
        7500.0, 10000.0,
    ];
    assert_eq!(bounds, expected);
    assert_eq!(counts, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
}

#[test]
fn a_negative_value_takes_the_sum_away() {
    for builder in [
        PercidMeterProvider::builder(),
        PercidMeterProvider::builder().with_exponential_histograms(2),
    ] {
        let provider = builder.build();
        let histogram = provider.meter("m").f64_histogram("h").build();
        histogram.record(3.0, &[]);
        assert_eq!(distribution(&provider, "h").expect("a value").sum, Some(3.0));
        histogram.record(-1.0, &[]);
        let read = distribution(&provider, "h").expect("values");
        assert_eq!((read.count, read.sum), (2, None));
    }
}

#[test]
fn without_boundaries_there_are_no_buckets() {
    let provider = provider();
    let histogram = provider.meter("m").f64_histogram("h").with_boundaries(Vec::new()).build();
    histogram.record(3.0, &[]);
    let read = distribution(&provider, "h").expect("a value");
    assert_eq!((read.count, read.sum), (1, Some(3.0)));
    assert_eq!(read.buckets, Buckets::Explicit { bounds: Vec::new(), counts: Vec::new() });
}

#[test]
fn what_cannot_be_is_ignored_and_told() {
    let (provider, errors) = telling(10);
    let meter = provider.meter("m");
    let bad_boundaries =
        [vec![1.0, 1.0], vec![2.0, 1.0], vec![f64::NAN], (0..2048).map(f64::from).collect()];
    for boundaries in bad_boundaries {
        let histogram = meter.f64_histogram("h").with_boundaries(boundaries).build();
        histogram.record(1.0, &[]);
        histogram.bind(&[]).record(1.0);
        assert_eq!(told(&errors), [Error::Boundaries("h".to_owned())]);
    }
    meter.u64_counter("1st").build().add(1, &[]);
    assert_eq!(told(&errors), [Error::Name("1st".to_owned())]);
    meter.u64_observable_gauge("µ").with_callback(|it| it.observe(1, &[])).build();
    assert_eq!(told(&errors), [Error::Name("µ".to_owned())]);
    meter.u64_counter("c").with_unit("µs").build().add(1, &[]);
    assert_eq!(told(&errors), [Error::Unit { name: "c".to_owned(), unit: "µs".to_owned() }]);
    assert_eq!(provider.errors(), 7);
    assert!(provider.collect().scopes.is_empty());
}

#[test]
fn the_same_instrument_is_one_and_another_of_its_name_is_told() {
    let (provider, errors) = telling(10);
    let meter = provider.meter("m");
    let seconds = || meter.u64_counter("Time").with_unit("s").with_description("spent");
    seconds().build().add(1, &[]);
    provider
        .meter("m")
        .u64_counter("time")
        .with_unit("s")
        .with_description("spent")
        .build()
        .add(2, &[]);
    assert!(told(&errors).is_empty());
    assert_eq!(number(&provider, "Time", &[]), Some(Number::U64(3)));

    meter.u64_counter("time").with_unit("ms").build().add(7, &[]);
    assert_eq!(told(&errors), [Error::Conflict("time".to_owned())]);
    meter.f64_counter("Time").with_unit("s").with_description("spent").build().add(0.5, &[]);
    assert_eq!(told(&errors), [Error::Conflict("Time".to_owned())]);
    let metrics = &provider.collect().scopes[0].metrics;
    let found: Vec<(&str, &str)> = metrics.iter().map(|it| (&*it.name, &*it.unit)).collect();
    assert_eq!(found, [("Time", "s"), ("time", "ms"), ("Time", "s")]);
    assert_eq!(metrics[0].description, "spent");
}

#[test]
fn every_instrument_has_its_description_and_unit() {
    let provider = provider();
    let meter = provider.meter("m");
    let mut names = Vec::new();
    macro_rules! used {
        ($($instrument:ident: $use:ident;)*) => {$({
            names.push(stringify!($instrument));
            let builder = meter.$instrument(stringify!($instrument));
            let instrument = builder.with_description("for a test").with_unit("s").build();
            instrument.$use(1 as _, &[]);
        })*};
    }
    macro_rules! observed {
        ($($instrument:ident;)*) => {$({
            names.push(stringify!($instrument));
            let builder = meter.$instrument(stringify!($instrument));
            let builder = builder.with_description("for a test").with_unit("s");
            builder.with_callback(|it| it.observe(1 as _, &[])).build();
        })*};
    }
    used! {
        u64_counter: add;
        f64_counter: add;
        i64_up_down_counter: add;
        f64_up_down_counter: add;
        u64_gauge: record;
        i64_gauge: record;
        f64_gauge: record;
        u64_histogram: record;
        f64_histogram: record;
    }
    observed! {
        u64_observable_counter;
        f64_observable_counter;
        i64_observable_up_down_counter;
        f64_observable_up_down_counter;
        u64_observable_gauge;
        i64_observable_gauge;
        f64_observable_gauge;
    }
    for name in names {
        let metric = metric(&provider, name).expect(name);
        assert_eq!((&*metric.description, &*metric.unit), ("for a test", "s"), "{name}");
    }
}

#[test]
fn scopes_are_told_apart_by_all_they_have() {
    let provider = provider();
    let scope = |version: &'static str, key: i64| {
        InstrumentationScope::builder("m")
            .with_version(version)
            .with_schema_url("https://example.com/schema")
            .with_attributes([KeyValue::new("key", key)])
            .build()
    };
    for scope in [scope("1", 1), scope("2", 1), scope("1", 2), scope("1", 1)] {
        provider.meter_with_scope(scope).u64_counter("c").build().add(1, &[]);
    }
    let collection = provider.collect();
    let scopes: Vec<_> = collection.scopes.iter().map(|it| it.scope.clone()).collect();
    assert_eq!(scopes, [scope("1", 1), scope("2", 1), scope("1", 2)]);
}

#[test]
fn series_begin_when_they_are_made() {
    let provider = provider();
    let counter = provider.meter("m").u64_counter("c").build();
    let before = SystemTime::now();
    counter.add(1, &[]);
    let after = SystemTime::now();
    std::thread::sleep(std::time::Duration::from_millis(2));
    counter.add(1, &[KeyValue::new("later", true)]);
    let [first, second] = &numbers(&provider, "c")[..] else { panic!("two series") };
    assert!((before..=after).contains(&first.start) && second.start > after);
    assert_eq!(numbers(&provider, "c")[0].start, first.start, "it stays");
    assert!(provider.collect().time >= second.start);
}

#[test]
fn observables_are_asked_at_each_collection() {
    let (provider, errors) = telling(3);
    let meter = provider.meter("m");
    let asked = Arc::new(Mutex::new(0));
    let counts = Arc::clone(&asked);
    meter
        .u64_observable_counter("c")
        .with_callback(move |it| {
            *counts.lock().expect("no panic") += 1;
            for n in 0..10 {
                it.observe(n as u64, &[KeyValue::new("n", n), KeyValue::new("a", 1)]);
            }
            // Again: the last value is used.
            it.observe(40, &[KeyValue::new("a", 1), KeyValue::new("n", 0)]);
        })
        .with_callback(|it| it.observe(5, &[]))
        .build();
    assert_eq!(*asked.lock().expect("no panic"), 0);
    let series = |n: i64| [KeyValue::new("a", 1), KeyValue::new("n", n)];
    for time in 1..=2 {
        assert_eq!(number(&provider, "c", &series(0)), Some(Number::U64(40)));
        assert_eq!(*asked.lock().expect("no panic"), time);
    }
    assert_eq!(number(&provider, "c", &series(2)), Some(Number::U64(2)));
    assert_eq!(
        number(&provider, "c", &overflow()),
        Some(Number::U64(3 + 4 + 5 + 6 + 7 + 8 + 9 + 5))
    );
    assert_eq!(told(&errors), [Error::Overflow { name: "c".to_owned(), limit: 3 }]);
}

#[test]
fn a_callback_that_panics_is_told_and_the_others_are_asked() {
    let (provider, errors) = telling(10);
    let meter = provider.meter("m");
    meter
        .f64_observable_gauge("g")
        .with_callback(|it| {
            it.observe(1.5, &[KeyValue::new("a", 1)]);
            panic!("in a callback, as the test wants it");
        })
        .with_callback(|it| it.observe(2.5, &[]))
        .build();
    assert_eq!(numbers(&provider, "g").len(), 2);
    assert_eq!(told(&errors), [Error::Callback("g".to_owned())]);
}

#[test]
fn a_callback_may_use_instruments_and_make_some() {
    let provider = provider();
    let meter = provider.meter("m");
    let of_callback = meter.clone();
    meter
        .i64_observable_up_down_counter("o")
        .with_callback(move |it| {
            of_callback.u64_counter("made").build().add(1, &[]);
            it.observe(-1, &[]);
        })
        .build();
    assert_eq!(number(&provider, "o", &[]), Some(Number::I64(-1)));
    provider.collect();
    assert_eq!(number(&provider, "made", &[]), Some(Number::U64(3)));
}

#[test]
fn what_an_observable_reports_first_began_at_the_collection_before() {
    let provider = provider();
    let has_more = Arc::new(Mutex::new(false));
    let more = Arc::clone(&has_more);
    let made = SystemTime::now();
    provider
        .meter("m")
        .u64_observable_counter("c")
        .with_callback(move |it| {
            it.observe(1, &[]);
            if *more.lock().expect("no panic") {
                it.observe(1, &[KeyValue::new("more", true)]);
            }
        })
        .build();
    let first = provider.collect().time;
    *has_more.lock().expect("no panic") = true;
    // From the second collection on, both remain.
    for _ in 0..2 {
        let points = numbers(&provider, "c");
        let start = |is_more: bool| {
            let mut points = points.iter();
            points.find(|it| it.attributes.is_empty() != is_more).expect("a series").start
        };
        assert!((made..=first).contains(&start(false)));
        assert_eq!(start(true), first);
    }
}

#[test]
fn observed_counters_ignore_what_sums_ignore() {
    let provider = provider();
    let meter = provider.meter("m");
    let observe = |it: &dyn opentelemetry::metrics::AsyncInstrument<f64>| {
        for (n, value) in [1.0, -1.0, f64::NAN, f64::INFINITY].into_iter().enumerate() {
            it.observe(value, &[KeyValue::new("n", n as i64)]);
        }
    };
    meter.f64_observable_counter("c").with_callback(observe).build();
    meter.f64_observable_up_down_counter("u").with_callback(observe).build();
    meter.f64_observable_gauge("g").with_callback(observe).build();
    let series = ["c", "u", "g"].map(|name| numbers(&provider, name).len());
    assert_eq!(series, [1, 2, 4]);
}

#[test]
fn the_global_provider_can_be_percids() {
    let provider = provider();
    opentelemetry::global::set_meter_provider(provider.clone());
    opentelemetry::global::meter("m").u64_counter("c").build().add(2, &[]);
    assert_eq!(number(&provider, "c", &[]), Some(Number::U64(2)));
}
