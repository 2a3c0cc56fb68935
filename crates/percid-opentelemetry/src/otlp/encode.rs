//! Encoding of collections as OTLP messages.

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

/// Returns the message that sends a collection.
///
/// OTLP's integers are signed: a `u64` above 2^63 - 1 is sent as 2^63 - 1.
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
            // 0: a gauge has no start time.
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

/// Encodes a histogram. All series of an instrument have buckets of one kind.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use opentelemetry_proto::tonic::common::v1::AnyValue;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Sent;

    use super::*;

    fn system_time(nanoseconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(nanoseconds)
    }

    fn point<T>(key: &'static str, value: T) -> Point<T> {
        Point { attributes: Arc::new([KeyValue::new(key, 1)]), start: system_time(3), value }
    }

    fn sent(key: &str) -> Vec<Attribute> {
        let value = Some(AnyValue { value: Some(Sent::IntValue(1)) });
        vec![Attribute { key: key.to_owned(), value, ..Default::default() }]
    }

    fn named(name: &'static str, data: Data) -> Metric {
        Metric { name: name.into(), description: "for".into(), unit: "in".into(), data }
    }

    fn expected(name: &str, data: message::metric::Data) -> message::Metric {
        let (name, data) = (name.to_owned(), Some(data));
        let (description, unit) = ("for".to_owned(), "in".to_owned());
        message::Metric { name, description, unit, data, ..Default::default() }
    }

    fn numbers() -> Vec<Point<Number>> {
        let numbers = [Number::U64(7), Number::U64(u64::MAX), Number::I64(-7), Number::F64(0.5)];
        numbers.map(|number| point("a", number)).to_vec()
    }

    fn expected_numbers(start: u64) -> Vec<message::NumberDataPoint> {
        use message::number_data_point::Value::{AsDouble, AsInt};
        let values = [AsInt(7), AsInt(i64::MAX), AsInt(-7), AsDouble(0.5)];
        let point = |value| message::NumberDataPoint {
            attributes: sent("a"),
            start_time_unix_nano: start,
            time_unix_nano: 2_000_000_005,
            value: Some(value),
            ..Default::default()
        };
        values.map(point).to_vec()
    }

    #[test]
    fn a_message_has_all_that_a_collection_has() {
        let row = |offset, counts: &[u64]| ExponentialBuckets { offset, counts: counts.to_vec() };
        let explicit = Buckets::Explicit { bounds: vec![1.0], counts: vec![2, 3] };
        let (positive, negative) = (row(-1, &[1, 2]), row(4, &[3]));
        let exponential = Buckets::Exponential { scale: 2, zero_count: 6, positive, negative };
        let histogram = |key, sum, buckets| {
            let points = vec![point(key, Distribution { count: 5, sum, buckets })];
            Data::Histogram { points }
        };
        let metrics = vec![
            named("sum", Data::Sum { is_monotonic: true, points: numbers() }),
            named("balance", Data::Sum { is_monotonic: false, points: Vec::new() }),
            named("gauge", Data::Gauge { points: numbers() }),
            named("explicit", histogram("b", Some(2.5), explicit)),
            named("exponential", histogram("c", None, exponential)),
        ];
        let builder = opentelemetry::InstrumentationScope::builder("scope").with_version("1");
        let scope = builder.with_schema_url("schema").build();
        let collection = Collection {
            time: system_time(2_000_000_005),
            resource: Arc::new([KeyValue::new("r", 1)]),
            scopes: vec![ScopeMetrics { scope, metrics }],
        };

        let sum = |is_monotonic, data_points| {
            let aggregation_temporality = CUMULATIVE;
            message::metric::Data::Sum(message::Sum {
                data_points,
                aggregation_temporality,
                is_monotonic,
            })
        };
        let gauge = message::Gauge { data_points: expected_numbers(0) };
        let explicit = message::HistogramDataPoint {
            attributes: sent("b"),
            start_time_unix_nano: 3,
            time_unix_nano: 2_000_000_005,
            count: 5,
            sum: Some(2.5),
            bucket_counts: vec![2, 3],
            explicit_bounds: vec![1.0],
            ..Default::default()
        };
        let exponential = message::ExponentialHistogramDataPoint {
            attributes: sent("c"),
            start_time_unix_nano: 3,
            time_unix_nano: 2_000_000_005,
            count: 5,
            scale: 2,
            zero_count: 6,
            positive: Some(Row { offset: -1, bucket_counts: vec![1, 2] }),
            negative: Some(Row { offset: 4, bucket_counts: vec![3] }),
            zero_threshold: 2f64.powi(-128),
            ..Default::default()
        };
        let metrics = vec![
            expected("sum", sum(true, expected_numbers(3))),
            expected("balance", sum(false, Vec::new())),
            expected("gauge", message::metric::Data::Gauge(gauge)),
            expected(
                "explicit",
                message::metric::Data::Histogram(message::Histogram {
                    data_points: vec![explicit],
                    aggregation_temporality: CUMULATIVE,
                }),
            ),
            expected(
                "exponential",
                message::metric::Data::ExponentialHistogram(message::ExponentialHistogram {
                    data_points: vec![exponential],
                    aggregation_temporality: CUMULATIVE,
                }),
            ),
        ];
        let (name, version) = ("scope".to_owned(), "1".to_owned());
        let scope = InstrumentationScope { name, version, ..Default::default() };
        let of_scope =
            message::ScopeMetrics { scope: Some(scope), metrics, schema_url: "schema".to_owned() };
        let all = message::ResourceMetrics {
            resource: Some(Resource { attributes: sent("r"), ..Default::default() }),
            scope_metrics: vec![of_scope],
            schema_url: String::new(),
        };
        assert_eq!(CUMULATIVE, 2, "the protocol's number");
        let expected = ExportMetricsServiceRequest { resource_metrics: vec![all] };
        assert_eq!(request(&collection), expected);
    }

    #[test]
    fn times_that_have_no_number_are_the_nearest() {
        assert_eq!(nanoseconds(UNIX_EPOCH - Duration::from_secs(1)), 0);
        assert_eq!(nanoseconds(UNIX_EPOCH + Duration::from_secs(1 << 40)), u64::MAX);
    }
}
