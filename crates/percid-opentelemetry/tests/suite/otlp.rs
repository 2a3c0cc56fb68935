//! The exporter's requests to a real server, and its reaction to the answers.

use crate::server;

use std::net::{TcpListener, TcpStream};
#[cfg(feature = "otlp-tls")]
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use opentelemetry::metrics::{AsyncInstrument, MeterProvider};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1 as common;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Sent;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Metric, NumberDataPoint, ScopeMetrics,
};
use percid_opentelemetry::otlp::{Clock, OtlpBuilder, OtlpExporter};
use percid_opentelemetry::{Error, PercidMeterProvider};
use prost::Message;
use server::{Answer, OK, PATIENCE, Request, Server};

/// A clock that only advances in pauses. It skips them, and records them.
struct Skips {
    now: Mutex<Instant>,
    pauses: Mutex<Vec<Duration>>,
}

impl Skips {
    fn new() -> Arc<Skips> {
        Arc::new(Skips { now: Mutex::new(Instant::now()), pauses: Mutex::default() })
    }

    fn pauses(&self) -> Vec<Duration> {
        self.pauses.lock().expect("no panic").clone()
    }
}

impl Clock for Skips {
    fn now(&self) -> Instant {
        *self.now.lock().expect("no panic")
    }

    fn pauses(&self, wait: Duration) {
        *self.now.lock().expect("no panic") += wait;
        let mut pauses = self.pauses.lock().expect("no panic");
        pauses.push(wait);
        assert!(pauses.len() < 1000, "it never ends");
    }
}

/// The system's clock, which reports when a pause begins.
struct Tells(Mutex<Sender<Duration>>);

impl Tells {
    fn new() -> (Arc<Tells>, Receiver<Duration>) {
        let (sender, pauses) = channel();
        (Arc::new(Tells(Mutex::new(sender))), pauses)
    }
}

impl Clock for Tells {
    fn pauses(&self, wait: Duration) {
        // The test may have ended.
        _ = self.0.lock().expect("no panic").send(wait);
    }
}

/// A provider, its errors, and an exporter to `server`, which exports on request or at an interval.
struct Setup {
    provider: PercidMeterProvider,
    told: Arc<Mutex<Vec<Error>>>,
    exporter: OtlpExporter,
}

impl Setup {
    fn new(server: &Server, options: impl FnOnce(OtlpBuilder) -> OtlpBuilder) -> Setup {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tells = Arc::clone(&told);
        let provider = PercidMeterProvider::builder()
            .with_resource([KeyValue::new("service.name", "shop")])
            .with_error_handler(move |error| tells.lock().expect("no panic").push(error.clone()))
            .build();
        // The long timeout prevents failures on a slow machine. The long interval prevents exports
        // that were not requested, even after a clock has skipped some hours.
        let builder = OtlpBuilder::new().with_endpoint(&*server.endpoint).with_timeout(PATIENCE);
        let builder = builder.with_interval(Duration::MAX);
        let exporter = options(builder).start(&provider).expect("an exporter");
        Setup { provider, told, exporter }
    }

    /// Adds a counter that has counted.
    fn counting(server: &Server, options: impl FnOnce(OtlpBuilder) -> OtlpBuilder) -> Setup {
        let setup = Setup::new(server, options);
        setup.provider.meter("m").u64_counter("c").build().add(3, &[]);
        setup
    }

    fn told(&self) -> Vec<Error> {
        self.told.lock().expect("no panic").clone()
    }
}

fn scopes(request: &Request) -> &[ScopeMetrics] {
    assert_eq!(request.message.resource_metrics.len(), 1);
    &request.message.resource_metrics[0].scope_metrics
}

fn metric<'a>(request: &'a Request, name: &str) -> &'a Metric {
    let mut metrics = scopes(request).iter().flat_map(|scope| &scope.metrics);
    metrics.find(|metric| metric.name == name).expect("a metric of this name")
}

fn numbers<'a>(request: &'a Request, name: &str) -> &'a [NumberDataPoint] {
    match &metric(request, name).data {
        Some(Data::Sum(sum)) => &sum.data_points,
        Some(Data::Gauge(gauge)) => &gauge.data_points,
        other => panic!("{other:?}"),
    }
}

fn attribute(key: &str, value: Sent) -> common::KeyValue {
    let value = Some(common::AnyValue { value: Some(value) });
    common::KeyValue { key: key.to_owned(), value, ..Default::default() }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
    since.as_nanos() as u64
}

#[test]
fn what_was_recorded_is_received() {
    let server = Server::new([OK]);
    let before = now();
    let setup = Setup::new(&server, |builder| builder.with_header("X-Key", "secret"));
    let scope = InstrumentationScope::builder("checkout")
        .with_version("1.2")
        .with_schema_url("https://example.com/schema")
        .with_attributes([KeyValue::new("k", 1)])
        .build();
    let meter = setup.provider.meter_with_scope(scope);
    let counter =
        meter.u64_counter("orders").with_unit("{order}").with_description("placed").build();
    counter.add(2, &[KeyValue::new("b", true), KeyValue::new("a", "x")]);
    counter.add(5, &[KeyValue::new("a", "x"), KeyValue::new("b", true)]);
    meter.i64_up_down_counter("balance").build().add(-4, &[]);
    meter.f64_gauge("level").build().record(0.5, &[]);
    let histogram = meter.f64_histogram("price").with_boundaries(vec![1.0, 10.0]).build();
    [0.5, 1.0, 7.0, 70.0].into_iter().for_each(|value| histogram.record(value, &[]));
    meter.f64_observable_counter("seen").with_callback(|it| it.observe(1.5, &[])).build();
    setup.exporter.force_flush().expect("an export");
    let after = now();

    let request = server.request().expect("a request");
    assert_eq!(request.line, "POST /v1/metrics HTTP/1.1");
    for header in ["content-type: application/x-protobuf", "x-key: secret"] {
        assert!(request.headers.iter().any(|it| it == header), "{:?}", request.headers);
    }
    assert!(request.headers.iter().any(|it| it.starts_with("user-agent: percid-opentelemetry/")));

    let all = &request.message.resource_metrics[0];
    let resource = &all.resource.as_ref().expect("a resource").attributes;
    assert!(resource.contains(&attribute("service.name", Sent::StringValue("shop".to_owned()))));
    assert!(resource.iter().any(|it| it.key == "telemetry.sdk.name"));
    let [of_scope] = scopes(&request) else { panic!("one scope") };
    assert_eq!(of_scope.schema_url, "https://example.com/schema");
    let scope = of_scope.scope.as_ref().expect("a scope");
    assert_eq!((&*scope.name, &*scope.version), ("checkout", "1.2"));
    assert_eq!(scope.attributes, [attribute("k", Sent::IntValue(1))]);

    let orders = metric(&request, "orders");
    assert_eq!((&*orders.unit, &*orders.description), ("{order}", "placed"));
    let Some(Data::Sum(sum)) = &orders.data else { panic!("a sum") };
    assert!(sum.is_monotonic);
    assert_eq!(sum.aggregation_temporality(), AggregationTemporality::Cumulative);
    let [point] = &sum.data_points[..] else { panic!("one series") };
    let expected =
        [attribute("a", Sent::StringValue("x".to_owned())), attribute("b", Sent::BoolValue(true))];
    assert_eq!((&point.attributes[..], point.value), (&expected[..], Some(Number::AsInt(7))));
    assert!(before <= point.start_time_unix_nano);
    assert!(point.start_time_unix_nano <= point.time_unix_nano && point.time_unix_nano <= after);

    let value = |name| numbers(&request, name)[0].value;
    assert_eq!(value("balance"), Some(Number::AsInt(-4)));
    assert_eq!(value("level"), Some(Number::AsDouble(0.5)));
    assert_eq!(value("seen"), Some(Number::AsDouble(1.5)));
    assert_eq!(numbers(&request, "level")[0].start_time_unix_nano, 0);
    let Some(Data::Histogram(histogram)) = &metric(&request, "price").data else {
        panic!("a histogram")
    };
    assert_eq!(histogram.aggregation_temporality(), AggregationTemporality::Cumulative);
    let [point] = &histogram.data_points[..] else { panic!("one series") };
    assert_eq!((point.count, point.sum), (4, Some(78.5)));
    assert_eq!(
        (&point.explicit_bounds[..], &point.bucket_counts[..]),
        (&[1.0, 10.0][..], &[2, 1, 1][..])
    );
    assert_eq!(of_scope.metrics.len(), 5);
    assert!(setup.told().is_empty());
}

#[test]
fn exponential_histograms_are_received() {
    let server = Server::new([OK]);
    let provider = PercidMeterProvider::builder().with_exponential_histograms(1).build();
    let exporter = OtlpBuilder::new().with_endpoint(&*server.endpoint).start(&provider);
    let histogram = provider.meter("m").f64_histogram("h").build();
    // Limits are 1, 1.41, 2, 2.83, 4.
    [0.0, 1.0, 1.5, 3.0, 4.0, 4.0].into_iter().for_each(|value| histogram.record(value, &[]));
    exporter.expect("an exporter").force_flush().expect("an export");
    let request = server.request().expect("a request");
    let Some(Data::ExponentialHistogram(histogram)) = &metric(&request, "h").data else {
        panic!("an exponential histogram")
    };
    let [point] = &histogram.data_points[..] else { panic!("one series") };
    assert_eq!((point.scale, point.count, point.sum), (1, 6, Some(13.5)));
    assert_eq!((point.zero_count, point.zero_threshold), (1, 2f64.powi(-128)));
    let positive = point.positive.as_ref().expect("buckets");
    assert_eq!((positive.offset, &positive.bucket_counts[..]), (-1, &[1, 0, 1, 0, 3][..]));
}

#[test]
fn all_types_of_attributes_are_received() {
    let server = Server::new([OK]);
    let setup = Setup::new(&server, |builder| builder);
    let strings = Array::String(vec![StringValue::from("x"), StringValue::from("y")]);
    let attributes = [
        KeyValue::new("a", 1.5),
        KeyValue::new("b", Value::Array(Array::I64(vec![1, 2]))),
        KeyValue::new("c", Value::Array(strings)),
    ];
    setup.provider.meter("m").u64_counter("c").build().add(u64::MAX, &attributes);
    setup.exporter.force_flush().expect("an export");
    let request = server.request().expect("a request");
    let point = &numbers(&request, "c")[0];
    assert_eq!(point.value, Some(Number::AsInt(i64::MAX)), "OTLP has no more");
    let array = |values: Vec<Sent>| {
        let values = values.into_iter().map(|value| common::AnyValue { value: Some(value) });
        Sent::ArrayValue(common::ArrayValue { values: values.collect() })
    };
    let text = |text: &str| Sent::StringValue(text.to_owned());
    let expected = [
        attribute("a", Sent::DoubleValue(1.5)),
        attribute("b", array(vec![Sent::IntValue(1), Sent::IntValue(2)])),
        attribute("c", array(vec![text("x"), text("y")])),
    ];
    assert_eq!(point.attributes, expected);
}

#[test]
fn the_last_of_many_exports_has_all_that_many_threads_counted() {
    let server = Server::new([OK]);
    let setup = Setup::new(&server, |it| it.with_interval(Duration::from_millis(1)));
    let counter = setup.provider.meter("m").u64_counter("c").build();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let counter = &counter;
            scope.spawn(move || {
                for n in 0..20_000 {
                    counter.add(1, &[KeyValue::new("n", (n + thread) % 10)]);
                }
            });
        }
    });
    // At intervals, without a request.
    let first = server.request().expect("a request");
    setup.exporter.shutdown().expect("an export");
    let requests: Vec<Request> = [first].into_iter().chain(server.all()).collect();
    let total = |request: &Request| -> i64 {
        let value = |point: &NumberDataPoint| match point.value {
            Some(Number::AsInt(value)) => value,
            other => panic!("{other:?}"),
        };
        numbers(request, "c").iter().map(value).sum()
    };
    let totals: Vec<i64> = requests.iter().map(total).collect();
    assert!(totals.is_sorted());
    assert_eq!(totals.last(), Some(&160_000));
    let start = |request: &Request| {
        let first = numbers(request, "c")
            .iter()
            .find(|it| it.attributes == [attribute("n", Sent::IntValue(0))]);
        first.map(|it| it.start_time_unix_nano)
    };
    let mut starts: Vec<u64> = requests.iter().filter_map(start).collect();
    starts.dedup();
    assert_eq!(starts.len(), 1, "cumulative: a series begins once");
}

#[test]
fn without_series_nothing_is_sent() {
    let server = Server::new([OK]);
    let setup = Setup::new(&server, |builder| builder);
    setup.exporter.force_flush().expect("nothing to export");
    setup.exporter.shutdown().expect("nothing to export");
    assert!(server.all().is_empty());
}

#[test]
fn what_may_pass_is_tried_again() {
    for status in [429, 502, 503, 504] {
        let later = || Answer::Says(status, "", b"later".to_vec());
        let (server, clock) = (Server::new([later(), later(), OK]), Skips::new());
        let setup = Setup::counting(&server, |it| it.with_clock(clock.clone()));
        setup.exporter.force_flush().expect("an export, at last");
        let requests = server.all();
        let [first, second, third] = &requests[..] else { panic!("{status}: three attempts") };
        assert!(first.message == second.message && second.message == third.message);
        let pauses = clock.pauses();
        let [one, two] = pauses[..] else { panic!("{status}: {pauses:?}") };
        assert!((500..=1500).contains(&one.as_millis()), "{pauses:?}");
        assert!((1000..=3000).contains(&two.as_millis()), "{pauses:?}");
        assert!(setup.told().is_empty());
    }
}

#[test]
fn a_closed_connection_is_tried_again() {
    let (server, clock) = (Server::new([Answer::Closes, OK]), Skips::new());
    let setup = Setup::counting(&server, |it| it.with_clock(clock.clone()));
    setup.exporter.force_flush().expect("an export, at last");
    assert_eq!((server.all().len(), clock.pauses().len()), (2, 1));
}

/// Uses the system's clock: a pause lasts as long as requested, at any speed of the machine.
#[test]
fn a_pause_lasts() {
    let server = Server::new([Answer::Says(503, "", Vec::new()), OK]);
    let (clock, pauses) = Tells::new();
    let setup = Setup::counting(&server, |it| it.with_clock(clock));
    let start = Instant::now();
    setup.exporter.force_flush().expect("an export, at last");
    let wait = pauses.recv().expect("a pause");
    assert!(start.elapsed() >= wait, "{:?} of {wait:?}", start.elapsed());
}

#[test]
fn what_the_receiver_asks_for_is_waited_for() {
    let server = Server::new([Answer::Says(503, "Retry-After: 3\r\n", Vec::new()), OK]);
    let clock = Skips::new();
    let setup = Setup::counting(&server, |it| it.with_clock(clock.clone()));
    setup.exporter.force_flush().expect("an export, at last");
    assert_eq!((server.all().len(), clock.pauses()), (2, vec![Duration::from_secs(3)]));
}

/// Negative control of the previous tests: a permanent error is not retried.
#[test]
fn what_cannot_pass_is_told_once() {
    for status in [400, 401, 404, 413, 500, 501, 301] {
        let server = Server::new([Answer::Says(status, "", b"\x12\x05wrong".to_vec()), OK]);
        let setup = Setup::counting(&server, |builder| builder);
        let expected = Error::Refused { status, answer: "wrong".to_owned() };
        assert_eq!(setup.exporter.force_flush(), Err(expected.clone()));
        assert_eq!((server.all().len(), setup.told()), (1, vec![expected]));
        assert_eq!(setup.provider.errors(), 1);
        // The next collection contains all values.
        setup.exporter.force_flush().expect("an export");
        assert_eq!(
            numbers(&server.request().expect("a request"), "c")[0].value,
            Some(Number::AsInt(3))
        );
    }
}

/// The last attempt has more time left than it needs: the answer is decisive, not the time. There
/// is none when the timeout is over.
#[test]
fn attempts_end_with_the_timeout() {
    for (timeout, pauses) in [(35_000, 3), (30_000, 2)] {
        let asks = "Retry-After: 10000\r\n";
        let (server, clock) = (Server::new([Answer::Says(503, asks, Vec::new())]), Skips::new());
        let setup = Setup::counting(&server, |it| {
            it.with_timeout(Duration::from_secs(timeout)).with_clock(clock.clone())
        });
        let expected = Error::Refused { status: 503, answer: String::new() };
        assert_eq!(setup.exporter.force_flush(), Err(expected));
        assert_eq!(clock.pauses(), vec![Duration::from_secs(10_000); pauses]);
        assert_eq!(server.all().len(), pauses + 1);
    }
}

/// The exporter's clock does not advance, so the timeout of one attempt expires. No time is not
/// the same as no limit.
#[test]
fn a_receiver_that_does_not_answer_is_given_up() {
    for timeout in [Duration::from_millis(300), Duration::ZERO] {
        let (server, clock) = (Server::new([Answer::Hangs, OK]), Skips::new());
        let setup =
            Setup::counting(&server, |it| it.with_timeout(timeout).with_clock(clock.clone()));
        let result = setup.exporter.force_flush();
        assert!(matches!(result, Err(Error::Unreachable(_))), "{result:?}");
        assert!(clock.pauses().is_empty(), "there was no time for another attempt");
    }
}

#[test]
fn without_a_receiver_it_is_told() {
    // This end of a connection does not listen. While it is connected, no other socket can listen.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let held = TcpStream::connect(address).expect("a connection");
    let server = Server::new([OK]);
    let endpoint = format!("http://{}/v1/metrics", held.local_addr().expect("an address"));
    let setup = Setup::counting(&server, |it| {
        let short = it.with_endpoint(endpoint).with_timeout(Duration::from_millis(300));
        short.with_clock(Skips::new())
    });
    let result = setup.exporter.force_flush();
    assert!(matches!(result, Err(Error::Unreachable(_))), "{result:?}");
    assert_eq!(setup.told().len(), 1);
    assert!(server.all().is_empty());
}

#[test]
fn points_that_were_refused_are_told() {
    let answer = |points, text: &str| {
        let error_message = text.to_owned();
        let partly = ExportMetricsPartialSuccess { rejected_data_points: points, error_message };
        let answer = ExportMetricsServiceResponse { partial_success: Some(partly) };
        Answer::Says(200, "", answer.encode_to_vec())
    };
    let server = Server::new([answer(2, "too old"), answer(0, ""), Answer::Says(200, "", vec![7])]);
    let setup = Setup::counting(&server, |builder| builder);
    let expected = Error::PartlyRefused { points: 2, answer: "too old".to_owned() };
    assert_eq!(setup.exporter.force_flush(), Err(expected));
    setup.exporter.force_flush().expect("nothing was refused");
    assert!(matches!(setup.exporter.force_flush(), Err(Error::Answer(_))));
    assert_eq!((setup.told().len(), server.all().len()), (2, 3));
}

/// The receiver accepts the message, but its answer has more bytes than are read.
#[test]
fn an_answer_that_is_too_long_is_told() {
    let server = Server::new([Answer::Says(200, "", vec![0; 1 << 20])]);
    let setup = Setup::counting(&server, |builder| builder);
    let result = setup.exporter.force_flush();
    assert!(matches!(result, Err(Error::Answer(_))), "{result:?}");
    assert_eq!((setup.told().len(), server.all().len()), (1, 1));
}

#[test]
fn the_last_export_is_tried_again() {
    let server = Server::new([Answer::Says(503, "", Vec::new()), OK]);
    let setup = Setup::counting(&server, |it| it.with_clock(Skips::new()));
    setup.exporter.shutdown().expect("an export, at last");
    assert_eq!((server.all().len(), setup.told()), (2, Vec::new()));
}

#[test]
fn after_shutdown_there_is_no_export() {
    // More than once: a thread that is not joined may have ended all the same.
    for _ in 0..50 {
        let (server, clock) = (Server::new([OK]), Skips::new());
        let setup = Setup::counting(&server, |it| it.with_clock(clock.clone()));
        assert_eq!(format!("{:?}", setup.exporter), "OtlpExporter { has_stopped: false, .. }");
        setup.exporter.shutdown().expect("an export");
        assert_eq!(format!("{:?}", setup.exporter), "OtlpExporter { has_stopped: true, .. }");
        assert_eq!(server.all().len(), 1);
        assert_eq!(setup.exporter.force_flush(), Err(Error::Stopped));
        assert_eq!(setup.exporter.shutdown(), Err(Error::Stopped));
        drop(setup);
        // A thread that has not ended would still refer to the clock.
        assert_eq!((Arc::strong_count(&clock), server.all().len()), (1, 0));
    }
}

/// A clock that is an hour later whenever it is read: no wait takes time.
struct Hurries(Mutex<Instant>);

impl Clock for Hurries {
    fn now(&self) -> Instant {
        let mut now = self.0.lock().expect("no panic");
        *now += Duration::from_secs(3600);
        *now
    }
}

/// The exporter's thread is in a callback that does not return.
#[test]
fn shutdown_does_not_wait_for_a_thread_that_does_not_stop() {
    let server = Server::new([OK]);
    let clock = Arc::new(Hurries(Mutex::new(Instant::now())));
    let setup = Setup::new(&server, |it| it.with_clock(clock));
    let (end, must_end) = channel();
    let must_end = Mutex::new(must_end);
    let callback = move |_: &dyn AsyncInstrument<u64>| {
        // The sender is dropped.
        must_end.lock().expect("no panic").recv().expect_err("nothing is sent");
    };
    let meter = setup.provider.meter("m");
    meter.u64_observable_counter("c").with_callback(callback).build();
    let end: Sender<()> = end;
    assert_eq!(setup.exporter.shutdown(), Err(Error::Stopped));
    drop(end);
}

#[test]
fn dropping_exports_for_the_last_time() {
    let server = Server::new([OK]);
    drop(Setup::counting(&server, |builder| builder));
    assert_eq!(
        numbers(&server.request().expect("a request"), "c")[0].value,
        Some(Number::AsInt(3))
    );
}

/// Uses the system's clock: the cancelled pause would last for a day.
#[test]
fn shutdown_gives_up_what_is_tried_again() {
    let day = Duration::from_secs(86_400);
    let server = Server::new([Answer::Says(503, "Retry-After: 86400\r\n", Vec::new()), OK]);
    let (clock, pauses) = Tells::new();
    let setup = Setup::counting(&server, |it| {
        it.with_interval(Duration::from_millis(1)).with_timeout(2 * day).with_clock(clock)
    });
    assert_eq!(pauses.recv_timeout(PATIENCE), Ok(day));
    let (done, end) = channel();
    let Setup { told, exporter, .. } = setup;
    std::thread::spawn(move || _ = done.send(exporter.shutdown()));
    assert_eq!(end.recv_timeout(PATIENCE), Ok(Ok(())), "the last export");
    assert_eq!(server.all().len(), 2);
    assert!(matches!(told.lock().expect("no panic")[..], [Error::Refused { status: 503, .. }]));
}

#[test]
fn many_may_flush_at_once() {
    let server = Server::new([OK]);
    let setup = Setup::counting(&server, |builder| builder);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                (0..20).for_each(|_| setup.exporter.force_flush().expect("an export"));
            });
        }
    });
    assert!(server.all().len() >= 20);
}

/// A handler that panics ends the thread. No call waits for it forever.
#[test]
fn a_handler_that_panics_stops_the_exporter() {
    let server = Server::new([Answer::Says(400, "", Vec::new())]);
    let provider = PercidMeterProvider::builder()
        .with_error_handler(|_| panic!("in a handler, as the test wants it"))
        .build();
    provider.meter("m").u64_counter("c").build().add(1, &[]);
    // With a clock that does not advance, no timeout expires. Calls return because the thread has
    // ended.
    let builder = OtlpBuilder::new().with_timeout(PATIENCE).with_clock(Skips::new());
    let exporter = builder.with_endpoint(&*server.endpoint).start(&provider);
    let exporter = exporter.expect("an exporter");
    let (done, end) = channel();
    std::thread::spawn(move || {
        _ = done.send(exporter.force_flush());
        _ = done.send(exporter.shutdown());
    });
    assert_eq!(end.recv_timeout(PATIENCE), Ok(Err(Error::Stopped)));
    assert_eq!(end.recv_timeout(PATIENCE), Ok(Err(Error::Stopped)));
}

#[test]
fn what_cannot_be_an_endpoint_is_an_error() {
    let provider = PercidMeterProvider::builder().build();
    let error = OtlpBuilder::new().with_endpoint("localhost:4318").start(&provider).map(|_| ());
    assert_eq!(error.expect_err("no URL").kind(), std::io::ErrorKind::InvalidInput);
}

/// Runs itself in a process whose system trusts no certificate.
#[cfg(feature = "otlp-tls")]
#[test]
fn https_without_certificates_is_an_error() {
    const IS_CHILD: &str = "PERCID_TEST_WITHOUT_CERTIFICATES";
    if std::env::var_os(IS_CHILD).is_none() {
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        child.args(["--exact", "otlp::https_without_certificates_is_an_error"]);
        child.env("SSL_CERT_FILE", "/dev/null").env("SSL_CERT_DIR", "/dev/null");
        let output = child.env(IS_CHILD, "1").output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let provider = PercidMeterProvider::builder().build();
    let builder = OtlpBuilder::new().with_endpoint("https://localhost/v1/metrics");
    let error = builder.start(&provider).map(|_| ()).expect_err("nobody is trusted");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
}

/// The receiver is not a TLS server, but detects that the exporter is a TLS client.
#[cfg(feature = "otlp-tls")]
#[test]
fn https_is_not_sent_in_the_clear() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("https://{}/v1/metrics", listener.local_addr().expect("an address"));
    let first = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a connection");
        let mut first = [0];
        std::io::Read::read_exact(&mut connection, &mut first).expect("a byte");
        first
    });
    let provider = PercidMeterProvider::builder().with_error_handler(|_| ()).build();
    provider.meter("m").u64_counter("c").build().add(1, &[]);
    // The attempt may take as long as the handshake's first record, at any speed of the machine.
    let builder = OtlpBuilder::new().with_timeout(PATIENCE).with_clock(Skips::new());
    let exporter = match builder.with_endpoint(endpoint).start(&provider) {
        Ok(exporter) => exporter,
        Err(error) => {
            return percid_skips::not_checked("export by OTLP over TLS", &error.to_string());
        }
    };
    let result = exporter.force_flush();
    assert!(matches!(result, Err(Error::Unreachable(_))), "{result:?}");
    // The type of a handshake record.
    assert_eq!(first.join().expect("no panic"), [22]);
}
