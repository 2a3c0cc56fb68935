//! percid's metrics as observable instruments of the SDK's meters.

use std::collections::BTreeMap;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use percid_metrics::{Counter, Family, FloatCounter, Gauge};
use percid_opentelemetry::{report, report_family};

/// Returns the SDK's exported data: the values of all series, by instrument and attributes, as
/// text.
fn exported(register: impl FnOnce(&Meter), change: impl FnOnce()) -> BTreeMap<String, String> {
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    register(&provider.meter("test"));
    change();
    provider.force_flush().expect("an export");
    let all = exporter.get_finished_metrics().expect("metrics");
    let last = all.last().expect("a collection");
    let metrics = last.scope_metrics().flat_map(|scope| scope.metrics());
    metrics.flat_map(|metric| series(metric.name(), metric.data())).collect()
}

fn series(name: &str, data: &AggregatedMetrics) -> Vec<(String, String)> {
    match data {
        AggregatedMetrics::U64(data) => series_of(name, data),
        AggregatedMetrics::I64(data) => series_of(name, data),
        AggregatedMetrics::F64(data) => series_of(name, data),
    }
}

fn series_of<T: Copy + ToString>(name: &str, data: &MetricData<T>) -> Vec<(String, String)> {
    let named = |attributes: Vec<&KeyValue>| {
        let attributes = attributes.iter().map(|it| format!(" {}={}", it.key, it.value));
        format!("{name}{}", attributes.collect::<String>())
    };
    match data {
        MetricData::Sum(sum) => sum
            .data_points()
            .map(|it| (named(it.attributes().collect()), it.value().to_string()))
            .collect(),
        MetricData::Gauge(gauge) => gauge
            .data_points()
            .map(|it| (named(it.attributes().collect()), it.value().to_string()))
            .collect(),
        _ => panic!("{name} is a histogram"),
    }
}

#[test]
fn the_sdk_reports_what_percid_has_counted() {
    static BALANCE: percid::Counter = percid::Counter::new();
    static PAID: percid::FloatCounter = percid::FloatCounter::new();
    let (counter, seconds, gauge) = (Counter::default(), FloatCounter::default(), Gauge::default());
    let register = |meter: &Meter| {
        let france = [KeyValue::new("country", "fr")];
        let orders = report(counter.clone(), france);
        meter.u64_observable_counter("orders").with_unit("{order}").with_callback(orders).build();
        let report_seconds = report(seconds.clone(), []);
        meter.f64_observable_counter("seconds").with_callback(report_seconds).build();
        let level = meter.f64_observable_gauge("level");
        level.with_callback(report(gauge.clone(), [])).build();
        let in_use = meter.f64_observable_up_down_counter("in_use");
        in_use.with_callback(report(gauge.clone(), [])).build();
        let balance = meter.i64_observable_up_down_counter("balance");
        balance.with_callback(report(&BALANCE, [])).build();
        meter.f64_observable_counter("paid").with_callback(report(&PAID, [])).build();
    };
    let change = || {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..10_000).for_each(|_| counter.inc()));
            }
        });
        seconds.inc_by(0.25);
        gauge.set(2.5);
        BALANCE.add(-7);
        PAID.add(1.5);
    };
    let expected = [
        ("balance", "-7"),
        ("in_use", "2.5"),
        ("level", "2.5"),
        ("orders country=fr", "80000"),
        ("paid", "1.5"),
        ("seconds", "0.25"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(exported(register, change), BTreeMap::from(expected));
}

#[test]
fn the_sdk_reports_all_of_a_family() {
    let family = Family::<(&str, u16), Counter>::default();
    let register = |meter: &Meter| {
        let attributes = |(path, status): &(&'static str, u16)| {
            vec![KeyValue::new("path", *path), KeyValue::new("status", i64::from(*status))]
        };
        let callback = report_family(family.clone(), attributes);
        meter.u64_observable_counter("requests").with_callback(callback).build();
    };
    let change = || {
        family.with(&("/", 200), |counter| counter.inc_by(3));
        family.with(&("/", 404), Counter::inc);
        family.with(&("/a", 200), Counter::inc);
    };
    let all = exported(register, change);
    let values: Vec<&str> = all.values().map(String::as_str).collect();
    assert_eq!(all.len(), 3, "{all:?}");
    let is_order_of_sdk = |a: &str, b: &str| all.contains_key(a) || all.contains_key(b);
    assert!(is_order_of_sdk("requests path=/ status=200", "requests status=200 path=/"), "{all:?}");
    assert_eq!(values.iter().filter(|value| **value == "1").count(), 2);
    assert!(values.contains(&"3"));
}
