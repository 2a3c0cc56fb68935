//! Collections as messages of OTLP.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry::KeyValue;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue as Attribute};
use opentelemetry_proto::tonic::metrics::v1 as message;
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets as Row;
use opentelemetry_proto::tonic::resource::v1::Resource;
use percid_metrics::histogram::NativeSnapshot;

use crate::data::{
    Buckets, Collection, Data, Distribution, ExponentialBuckets, Metric, Number, Point,
    ScopeMetrics,
};

const CUMULATIVE: i32 = message::AggregationTemporality::Cumulative as i32;

/// The message that sends a collection.
///
/// OTLP's integers have a sign: what a `u64` has beyond 2^63 - 1 is sent as 2^63 - 1.
///
/// ```
/// use opentelemetry::metrics::MeterProvider;
/// use percid_opentelemetry::PercidMeterProvider;
///
/// let provider = PercidMeterProvider::builder().build();
/// provider.meter("shop").u64_counter("orders").build().add(3, &[]);
/// let request = percid_opentelemetry::otlp::request(&provider.collect());
/// assert_eq!(request.resource_metrics[0].scope_metrics[0].metrics[0].name, "orders");
/// ```
pub fn request(collection: &Collection) -> ExportMetricsServiceRequest {
    let resource = Resource { attributes: attributes(&collection.resource), ..Default::default() };
    let scopes = collection.scopes.iter().map(|scope| scope_metrics(scope, collection.time));
    let all = message::ResourceMetrics {
        resource: Some(resource),
        scope_metrics: scopes.collect(),
        schema_url: String::new(),
    };
    ExportMetricsServiceRequest { resource_metrics: vec![all] }
}

fn attributes(attributes: &[KeyValue]) -> Vec<Attribute> {
    attributes.iter().map(Attribute::from).collect()
}

fn scope_metrics(of_scope: &ScopeMetrics, time: SystemTime) -> message::ScopeMetrics {
    let ScopeMetrics { scope, metrics } = of_scope;
    message::ScopeMetrics {
        scope: Some(InstrumentationScope::from((scope, None))),
        metrics: metrics.iter().map(|it| metric(it, time)).collect(),
        schema_url: scope.schema_url().unwrap_or_default().to_owned(),
    }
}

fn metric(metric: &Metric, time: SystemTime) -> message::Metric {
    message::Metric {
        name: metric.name.to_string(),
        description: metric.description.to_string(),
        unit: metric.unit.to_string(),
        data: Some(data(&metric.data, time)),
        ..Default::default()
    }
}

fn data(data: &Data, time: SystemTime) -> message::metric::Data {
    match data {
        Data::Sum { is_monotonic, points } => message::metric::Data::Sum(message::Sum {
            data_points: points.iter().map(|point| number(point, point.start, time)).collect(),
            aggregation_temporality: CUMULATIVE,
            is_monotonic: *is_monotonic,
        }),
        Data::Gauge { points } => message::metric::Data::Gauge(message::Gauge {
            // 0: it has no beginning.
            data_points: points.iter().map(|point| number(point, UNIX_EPOCH, time)).collect(),
        }),
        Data::Histogram { points } => histogram(points, time),
    }
}

fn number(point: &Point<Number>, start: SystemTime, time: SystemTime) -> message::NumberDataPoint {
    use message::number_data_point::Value;
    let value = match point.value {
        Number::U64(value) => Value::AsInt(value.try_into().unwrap_or(i64::MAX)),
        Number::I64(value) => Value::AsInt(value),
        Number::F64(value) => Value::AsDouble(value),
    };
    message::NumberDataPoint {
        attributes: attributes(&point.attributes),
        start_time_unix_nano: nanoseconds(start),
        time_unix_nano: nanoseconds(time),
        value: Some(value),
        ..Default::default()
    }
}

/// All series of an instrument have buckets of one kind.
fn histogram(points: &[Point<Distribution>], time: SystemTime) -> message::metric::Data {
    let exponential: Vec<_> = points.iter().filter_map(|it| exponential(it, time)).collect();
    if !exponential.is_empty() {
        return message::metric::Data::ExponentialHistogram(message::ExponentialHistogram {
            data_points: exponential,
            aggregation_temporality: CUMULATIVE,
        });
    }
    message::metric::Data::Histogram(message::Histogram {
        data_points: points.iter().filter_map(|point| explicit(point, time)).collect(),
        aggregation_temporality: CUMULATIVE,
    })
}

fn explicit(point: &Point<Distribution>, time: SystemTime) -> Option<message::HistogramDataPoint> {
    let Distribution { count, sum, buckets } = &point.value;
    let Buckets::Explicit { bounds, counts } = buckets else { return None };
    Some(message::HistogramDataPoint {
        attributes: attributes(&point.attributes),
        start_time_unix_nano: nanoseconds(point.start),
        time_unix_nano: nanoseconds(time),
        count: *count,
        sum: *sum,
        bucket_counts: counts.clone(),
        explicit_bounds: bounds.clone(),
        ..Default::default()
    })
}

fn exponential(
    point: &Point<Distribution>,
    time: SystemTime,
) -> Option<message::ExponentialHistogramDataPoint> {
    let Distribution { count, sum, buckets } = &point.value;
    let Buckets::Exponential { scale, zero_count, positive, negative } = buckets else {
        return None;
    };
    Some(message::ExponentialHistogramDataPoint {
        attributes: attributes(&point.attributes),
        start_time_unix_nano: nanoseconds(point.start),
        time_unix_nano: nanoseconds(time),
        count: *count,
        sum: *sum,
        scale: *scale,
        zero_count: *zero_count,
        positive: Some(row(positive)),
        negative: Some(row(negative)),
        zero_threshold: NativeSnapshot::ZERO_THRESHOLD,
        ..Default::default()
    })
}

fn row(buckets: &ExponentialBuckets) -> Row {
    Row { offset: buckets.offset, bucket_counts: buckets.counts.clone() }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().try_into().unwrap_or(u64::MAX)
}
