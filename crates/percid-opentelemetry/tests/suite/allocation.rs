//! Recording does not allocate, once this CPU has found the series.

use allocation_counter::measure;
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use percid_opentelemetry::PercidMeterProvider;

const CALLS: u64 = 1000;

/// Returns the number of allocations in many calls of `record`. The thread may migrate to another
/// CPU, which then looks the series up. So the minimum of some attempts is returned.
fn allocations(record: impl Fn()) -> u64 {
    let tries = (0..10).map(|_| measure(|| (0..CALLS).for_each(|_| record())).count_total);
    tries.min().unwrap_or(u64::MAX)
}

#[test]
fn what_is_recorded_allocates_nothing() {
    let provider = PercidMeterProvider::builder().with_cardinality_limit(1).build();
    let meter = provider.meter("m");
    let counter = meter.u64_counter("c").build();
    let histogram = meter.f64_histogram("h").build();
    let attributes = [
        KeyValue::new("path", "/index".to_owned()),
        KeyValue::new("status", 200),
        KeyValue::new("path", "/".to_owned()),
    ];
    let bound = counter.bind(&attributes);
    assert_eq!(allocations(|| counter.add(1, &[])), 0);
    assert_eq!(allocations(|| counter.add(1, &attributes)), 0);
    assert_eq!(allocations(|| histogram.record(1.5, &attributes)), 0);
    assert_eq!(allocations(|| bound.add(1)), 0);
    // Negative controls: an allocation is counted, and beyond the limit there are some.
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(7)))), CALLS);
    let other = [KeyValue::new("path", "/other"), KeyValue::new("status", 200)];
    assert!(allocations(|| counter.add(1, &other)) >= CALLS);
}
