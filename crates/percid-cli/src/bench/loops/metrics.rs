//! Metrics: one update through the interfaces that programs use, percid's and other crates'
//! (feature `metrics-peers`).
//!
//! The name of an operation is the action and the crate, with a space between.

use std::sync::LazyLock;

use metrics::{Recorder, counter, with_local_recorder};
use metrics_exporter_prometheus::{
    PrometheusBuilder as PeerBuilder, PrometheusRecorder as PeerRecorder,
};
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::{ManualReader, SdkMeterProvider};
use percid_metrics::{PrometheusBuilder, PrometheusRecorder};

use super::form::repeat;
use super::operation::{Account, Family, Measured, Operation};

/// Ten limits, the default number of clients, for values below a million.
const LIMITS: [f64; 10] = [1e2, 3e2, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 6e5, 9e5];
/// Label sets of a family: each thread uses all of them.
const PATHS: u64 = 64;

static METADATA: metrics::Metadata<'static> =
    metrics::Metadata::new("percid", metrics::Level::INFO, None);

pub(crate) fn operations() -> Vec<Operation> {
    let mut all = counters();
    all.extend(histograms());
    all.extend(macros());
    all.extend(families());
    all
}

/// A loop over a function, and a function that returns its count.
struct Each<T, F> {
    subject: T,
    update: F,
    counted: fn(&T) -> Option<u64>,
}

impl<T: Sync, F: Fn(&T, u64) + Sync> Measured for Each<T, F> {
    fn repeat(&self, times: u64, _: usize) {
        each(&self.subject, &self.update, times);
    }

    fn account(&self, done: u64) -> Option<Account> {
        (self.counted)(&self.subject).map(|counted| Account::of(done, counted as i64))
    }
}

#[inline(never)]
fn each<T, F: Fn(&T, u64)>(subject: &T, update: &F, times: u64) {
    repeat(times, |left| update(subject, left));
}

fn operation<T: Sync + 'static>(
    name: &'static str,
    subject: T,
    update: impl Fn(&T, u64) + Sync + 'static,
    counted: fn(&T) -> Option<u64>,
) -> Operation {
    Operation::other(Family::Metrics, name, Each { subject, update, counted })
}

/// Maps consecutive numbers to values all over the range.
#[inline(always)]
fn value(number: u64) -> f64 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as f64
}

fn percid_recorder() -> PrometheusRecorder {
    let builder = PrometheusBuilder::new().set_buckets(&LIMITS).expect("limits in order");
    builder.build_recorder()
}

fn peer_recorder() -> PeerRecorder {
    PeerBuilder::new().set_buckets(&LIMITS).expect("limits in order").build_recorder()
}

fn handle(recorder: &dyn Recorder) -> metrics::Counter {
    recorder.register_counter(&metrics::Key::from_static_name("updates"), &METADATA)
}

fn histogram_handle(recorder: &dyn Recorder) -> metrics::Histogram {
    recorder.register_histogram(&metrics::Key::from_static_name("values"), &METADATA)
}

fn counters() -> Vec<Operation> {
    let of_percid = percid_recorder();
    let of_peer = peer_recorder();
    let meter = otel().meter("percid");
    let otel_counter = meter.u64_counter("updates").build();
    let bound = otel_counter.bind(&[KeyValue::new("path", "/index")]);
    vec![
        operation(
            "counter_bound percid",
            percid::Counter::new(),
            |counter, _| counter.add(1),
            |counter| Some(counter.sum() as u64),
        ),
        operation(
            "counter_bound percid, metrics facade",
            handle(&of_percid),
            |counter, _| counter.increment(1),
            |_| None,
        ),
        operation(
            "counter_bound percid, prometheus-client",
            percid_metrics::Counter::default(),
            |counter, _| counter.inc(),
            |counter| Some(counter.get()),
        ),
        operation(
            "counter_bound metrics facade, empty handle",
            metrics::Counter::noop(),
            |counter, _| counter.increment(1),
            |_| None,
        ),
        operation(
            "counter_bound metrics-exporter-prometheus",
            handle(&of_peer),
            |counter, _| counter.increment(1),
            |_| None,
        ),
        operation(
            "counter_bound prometheus-client",
            prometheus_client::metrics::counter::Counter::<u64>::default(),
            |counter, _| _ = counter.inc(),
            |counter| Some(counter.get()),
        ),
        operation(
            "counter_bound prometheus",
            prometheus::IntCounter::new("updates", "updates").expect("a valid name"),
            |counter, _| counter.inc(),
            |counter| Some(counter.get()),
        ),
        operation("counter_bound opentelemetry_sdk", bound, |bound, _| bound.add(1), |_| None),
        operation(
            "counter_bound opentelemetry_sdk, 1 attribute",
            (otel_counter, [KeyValue::new("path", "/index")]),
            |(counter, attributes), _| counter.add(1, attributes),
            |_| None,
        ),
    ]
}

fn histograms() -> Vec<Operation> {
    let of_percid = percid_recorder();
    let native = PrometheusBuilder::new().build_recorder();
    let of_peer = peer_recorder();
    let limits = || LIMITS.iter().copied();
    let meter = otel().meter("percid");
    let histogram = meter.f64_histogram("values").with_boundaries(LIMITS.to_vec()).build();
    let bound = histogram.bind(&[]);
    let options = prometheus::HistogramOpts::new("values", "values").buckets(LIMITS.to_vec());
    vec![
        operation(
            "histogram_bound percid",
            percid::Histogram::new(),
            |histogram, left| histogram.record(value(left) as u64),
            |histogram| Some(histogram.snapshot().count()),
        ),
        operation(
            "histogram_bound percid FloatCounter, the sum alone",
            percid::FloatCounter::new(),
            |sum, left| sum.add(value(left)),
            |_| None,
        ),
        operation(
            "histogram_bound percid, metrics facade",
            histogram_handle(&of_percid),
            |histogram, left| histogram.record(value(left)),
            |_| None,
        ),
        operation(
            "histogram_bound percid, metrics facade, native",
            histogram_handle(&native),
            |histogram, left| histogram.record(value(left)),
            |_| None,
        ),
        operation(
            "histogram_bound percid, prometheus-client",
            percid_metrics::Histogram::new(LIMITS),
            |histogram, left| histogram.observe(value(left)),
            |histogram| Some(histogram.count()),
        ),
        operation(
            "histogram_bound metrics facade, empty handle",
            metrics::Histogram::noop(),
            |histogram, left| histogram.record(value(left)),
            |_| None,
        ),
        operation(
            "histogram_bound metrics-exporter-prometheus",
            Drained::new(histogram_handle(&of_peer), of_peer.handle()),
            |drained, left| drained.histogram.record(value(left)),
            |_| None,
        ),
        operation(
            "histogram_bound prometheus-client",
            prometheus_client::metrics::histogram::Histogram::new(limits()),
            |histogram, left| histogram.observe(value(left)),
            |_| None,
        ),
        operation(
            "histogram_bound prometheus",
            prometheus::Histogram::with_opts(options).expect("valid options"),
            |histogram, left| histogram.observe(value(left)),
            |histogram| Some(histogram.get_sample_count()),
        ),
        operation(
            "histogram_bound opentelemetry_sdk",
            bound,
            |bound, left| bound.record(value(left)),
            |_| None,
        ),
    ]
}

/// The exporter keeps every value until the page is requested; a thread requests it.
struct Drained {
    histogram: metrics::Histogram,
}

impl Drained {
    fn new(
        histogram: metrics::Histogram,
        page: metrics_exporter_prometheus::PrometheusHandle,
    ) -> Drained {
        let every = std::time::Duration::from_millis(100);
        // The thread ends with the program, as the exporter's own thread does.
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(every);
                page.run_upkeep();
            }
        });
        Drained { histogram }
    }
}

/// A macro that looks the metric up each time; the recorder is this thread's.
struct Unbound<R>(R, fn());

impl<R: Recorder + Sync> Measured for Unbound<R> {
    fn repeat(&self, times: u64, _: usize) {
        with_local_recorder(&self.0, || each(&(), &|(), _| (self.1)(), times));
    }

    fn account(&self, _: u64) -> Option<Account> {
        None
    }
}

fn macros() -> Vec<Operation> {
    let constant = || counter!("requests", "path" => "/index").increment(1);
    let changing = || {
        // The compiler does not know the label's value, so the facade allocates it.
        let path: &'static str = std::hint::black_box("/index");
        counter!("requests", "path" => path).increment(1);
    };
    let unbound = |name, of_percid: bool, update: fn()| match of_percid {
        true => Operation::other(Family::Metrics, name, Unbound(percid_recorder(), update)),
        false => Operation::other(Family::Metrics, name, Unbound(peer_recorder(), update)),
    };
    vec![
        unbound("counter_macro percid, metrics facade", true, constant),
        unbound("counter_macro percid, metrics facade, label not constant", true, changing),
        unbound("counter_macro metrics-exporter-prometheus", false, constant),
        unbound("counter_macro metrics-exporter-prometheus, label not constant", false, changing),
    ]
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Labels {
    path: &'static str,
    status: u16,
}

static LABELS: LazyLock<Vec<Labels>> = LazyLock::new(|| {
    let path = |number| -> &'static str { Box::leak(format!("/path/{number}").into_boxed_str()) };
    (0..PATHS).map(|number| Labels { path: path(number), status: 200 }).collect()
});

fn labels(left: u64) -> &'static Labels {
    &LABELS[(left % PATHS) as usize]
}

fn families() -> Vec<Operation> {
    use prometheus_client::metrics::counter::Counter as PeerCounter;
    use prometheus_client::metrics::family::Family as PeerFamily;
    type Ours = percid_metrics::Family<Labels, percid_metrics::Counter>;
    type Theirs = PeerFamily<Labels, PeerCounter>;
    let counted = |family: &Ours| {
        let mut total = 0;
        family.for_each(|_, counter| total += counter.get());
        Some(total)
    };
    let names = ["path", "status"];
    let options = prometheus::Opts::new("updates", "updates");
    let vector = prometheus::IntCounterVec::new(options, &names).expect("valid names");
    vec![
        operation(
            "family_lookup percid, with",
            Ours::default(),
            |family, left| family.with(labels(left), percid_metrics::Counter::inc),
            counted,
        ),
        operation(
            "family_lookup percid, get_or_create",
            Ours::default(),
            |family, left| family.get_or_create(labels(left)).inc(),
            counted,
        ),
        operation(
            "family_lookup prometheus-client",
            Theirs::default(),
            |family, left| _ = family.get_or_create(labels(left)).inc(),
            |_| None,
        ),
        operation(
            "family_lookup prometheus",
            vector,
            |vector, left| vector.with_label_values(&[labels(left).path, "200"]).inc(),
            |_| None,
        ),
    ]
}

/// Returns a provider that collects nothing by itself.
fn otel() -> SdkMeterProvider {
    SdkMeterProvider::builder().with_reader(ManualReader::builder().build()).build()
}
