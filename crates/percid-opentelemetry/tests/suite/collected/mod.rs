//! The contents of a collection, by names.

use opentelemetry::KeyValue;
use percid_opentelemetry::PercidMeterProvider;
use percid_opentelemetry::data::{Data, Distribution, Metric, Number, Point};

/// Returns the metric of the instrument with this name.
pub(crate) fn metric(provider: &PercidMeterProvider, name: &str) -> Option<Metric> {
    let metrics = provider.collect().scopes.into_iter().flat_map(|scope| scope.metrics);
    metrics.into_iter().find(|metric| metric.name == name)
}

pub(crate) fn numbers(provider: &PercidMeterProvider, name: &str) -> Vec<Point<Number>> {
    match metric(provider, name).map(|metric| metric.data) {
        Some(Data::Sum { points, .. } | Data::Gauge { points }) => points,
        None => Vec::new(),
        other => panic!("{other:?}"),
    }
}

/// Returns the number of the series with these attributes, which are sorted.
pub(crate) fn number(
    provider: &PercidMeterProvider,
    name: &str,
    attributes: &[KeyValue],
) -> Option<Number> {
    let points = numbers(provider, name);
    points.iter().find(|point| *point.attributes == *attributes).map(|point| point.value)
}

pub(crate) fn distribution(provider: &PercidMeterProvider, name: &str) -> Option<Distribution> {
    match metric(provider, name)?.data {
        Data::Histogram { points } => points.into_iter().next().map(|point| point.value),
        other => panic!("{other:?}"),
    }
}
