//! Random sequences of a recorder's rare calls, compared with a naive model: each page has the same
//! content.
#![cfg(feature = "recorder")]

mod parsed;
mod recorder;
mod registry;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder, Unit};
use metrics_util::MetricKindMask;
use parsed::Parsed;
use percid_metrics::{Format, PrometheusBuilder, PrometheusRecorder};
use proptest::prelude::*;
use recorder::{Model, Value, fit};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Counters and gauges may get the same name and label set, by their characters or their unit.
const NAMES: [(Kind, &str); 9] = [
    (Kind::Counter, "c.x"),
    (Kind::Counter, "c_x"),
    (Kind::Counter, "c_x_bytes"),
    (Kind::Counter, "d_total"),
    (Kind::Gauge, "g-x"),
    (Kind::Gauge, "g x"),
    (Kind::Gauge, "5g"),
    (Kind::Histogram, "h x"),
    (Kind::Histogram, "h_seconds"),
];
const LABELS: [&[(&str, &str)]; 5] = [
    &[],
    &[("a.b", "x"), ("a_b", "y")],
    &[("le", "q\"u\\o\nte,}"), ("zone", "b")],
    &[("__x", ""), ("5", "é\\")],
    // The same as the second one on the page. Not used by histograms.
    &[("a_b", "y")],
];
const UNITS: [Option<Unit>; 5] =
    [None, Some(Unit::Count), Some(Unit::Percent), Some(Unit::Seconds), Some(Unit::Bytes)];
const TEXTS: [&str; 3] = ["", "a \"b\" \\n \\ \n c", "other"];
const COUNTS: [u64; 5] = [0, 1, 7, 1 << 40, u64::MAX];
/// Sums of the first three are exact.
const FLOATS: [f64; 5] = [0.0, 0.25, 1000.0, f64::INFINITY, f64::NAN];
const VALUES: [f64; 5] = [0.0, 0.25, 0.5, 2.0, 3.0];
const LIMITS: [f64; 2] = [0.5, 2.0];
const TIMEOUT: u64 = 10;

static METADATA: Metadata<'static> = Metadata::new("model", Level::INFO, None);

#[derive(Debug, Clone, Copy)]
struct Options {
    unit_suffix: bool,
    label: bool,
    summaries: bool,
    idle: bool,
    /// `true` if gauges and histograms may be idle, too.
    all_idle: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Call {
    Add,
    Subtract,
    /// `absolute`, `set`, `record_many`.
    Set,
    Keep,
    Release,
    Describe,
    Pass,
    Upkeep,
    Read(Format),
}

/// A call, with the indexes of its arguments.
#[derive(Debug, Clone, Copy)]
struct Step(Call, usize, usize, usize);

#[derive(Clone)]
enum Handle {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
}

struct Subject {
    recorder: PrometheusRecorder,
    now: Arc<AtomicU64>,
    kept: BTreeMap<(usize, usize), Handle>,
}

impl Subject {
    fn new(options: Options) -> Subject {
        let (now, start) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let of_clock = Arc::clone(&now);
        let mut builder = PrometheusBuilder::new()
            .set_enable_unit_suffix(options.unit_suffix)
            .idle_clock(move || start + Duration::from_secs(of_clock.load(SeqCst)));
        builder = builder.set_quantiles(&[0.25]).expect("a quantile");
        if options.label {
            builder = builder.add_global_label("zone", "a");
        }
        if !options.summaries {
            builder = builder.set_buckets(&LIMITS).expect("limits");
        }
        if options.idle {
            let kinds =
                if options.all_idle { MetricKindMask::ALL } else { MetricKindMask::COUNTER };
            builder = builder.idle_timeout(kinds, Some(Duration::from_secs(TIMEOUT)));
        }
        Subject { recorder: builder.build_recorder(), now, kept: BTreeMap::new() }
    }

    fn handle(&self, key: (usize, usize)) -> Handle {
        if let Some(kept) = self.kept.get(&key) {
            return kept.clone();
        }
        let (kind, name) = NAMES[key.0];
        let labels = LABELS[key.1].iter().map(|&(name, value)| Label::new(name, value));
        let key = Key::from_parts(name, labels.collect::<Vec<_>>());
        match kind {
            Kind::Counter => Handle::Counter(self.recorder.register_counter(&key, &METADATA)),
            Kind::Gauge => Handle::Gauge(self.recorder.register_gauge(&key, &METADATA)),
            Kind::Histogram => Handle::Histogram(self.recorder.register_histogram(&key, &METADATA)),
        }
    }

    fn describe(&self, name: usize, unit: Option<Unit>, text: &'static str) {
        let (kind, name) = (NAMES[name].0, KeyName::from(NAMES[name].1));
        match kind {
            Kind::Counter => self.recorder.describe_counter(name, unit, text.into()),
            Kind::Gauge => self.recorder.describe_gauge(name, unit, text.into()),
            Kind::Histogram => self.recorder.describe_histogram(name, unit, text.into()),
        }
    }

    fn page(&self, format: Format) -> String {
        let mut page = Vec::new();
        self.recorder.handle().render_as(format, &mut page).expect("a vector takes everything");
        String::from_utf8(page).expect("text")
    }

    fn change(&self, call: Call, key: (usize, usize), amount: usize) {
        match (self.handle(key), call) {
            (Handle::Counter(it), Call::Set) => it.absolute(COUNTS[amount]),
            (Handle::Counter(it), _) => it.increment(COUNTS[amount]),
            (Handle::Gauge(it), Call::Set) => it.set(FLOATS[amount]),
            (Handle::Gauge(it), Call::Subtract) => it.decrement(FLOATS[amount % 3]),
            (Handle::Gauge(it), _) => it.increment(FLOATS[amount % 3]),
            (Handle::Histogram(it), Call::Set) => it.record_many(VALUES[amount], 3),
            (Handle::Histogram(it), _) => it.record(VALUES[amount]),
        }
    }
}

impl Model {
    fn change(&mut self, call: Call, key: (usize, usize), amount: usize) {
        match (self.value(key), call) {
            (Value::Counter(it), Call::Set) => *it = COUNTS[amount].max(*it),
            (Value::Counter(it), _) => *it = it.wrapping_add(COUNTS[amount]),
            (Value::Gauge(it), Call::Set) => *it = FLOATS[amount],
            (Value::Gauge(it), Call::Subtract) => *it -= FLOATS[amount % 3],
            (Value::Gauge(it), _) => *it += FLOATS[amount % 3],
            (Value::Histogram(it), Call::Set) => it.extend([VALUES[amount]; 3]),
            (Value::Histogram(it), _) => it.push(VALUES[amount]),
        }
    }
}

/// Applies these steps to both, except that the model skips the calls of `unknown`. Returns the
/// first difference.
fn compare(options: Options, steps: &[Step], unknown: Option<Call>) -> Result<(), String> {
    let (mut subject, mut model) = (Subject::new(options), Model::new(options));
    for (number, &Step(call, name, labels, amount)) in steps.iter().enumerate() {
        let key = (name, if NAMES[name].0 == Kind::Histogram { labels % 4 } else { labels });
        let is_known = unknown != Some(call);
        match call {
            Call::Add | Call::Subtract | Call::Set => {
                subject.change(call, key, amount);
                is_known.then(|| model.change(call, key, amount));
            }
            Call::Keep => {
                subject.kept.insert(key, subject.handle(key));
                model.value(key);
                is_known.then(|| model.kept.insert(key));
            }
            Call::Release => {
                subject.kept.clear();
                is_known.then(|| model.kept.clear());
            }
            Call::Describe => {
                let (unit, text) = (UNITS[amount], TEXTS[labels % 3]);
                subject.describe(name, unit, text);
                is_known.then(|| model.said.insert(fit(NAMES[name].1), (unit, text)));
            }
            Call::Pass => {
                subject.now.fetch_add(5, SeqCst);
                model.now += if is_known { 5 } else { 0 };
            }
            Call::Upkeep => {
                subject.recorder.handle().run_upkeep();
                is_known.then(|| model.upkeep());
            }
            Call::Read(format) => {
                let page = subject.page(format);
                let parsed = Parsed::of(&page);
                let expected = model.page(format, &parsed);
                if parsed != expected {
                    return Err(format!("step {number}: {page}\nmodel: {expected:#?}"));
                }
            }
        }
    }
    Ok(())
}

fn options() -> impl Strategy<Value = Options> {
    any::<[bool; 5]>().prop_map(|[unit_suffix, label, summaries, idle, all_idle]| Options {
        unit_suffix,
        label,
        summaries,
        idle,
        all_idle,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let call = prop_oneof![
        3 => Just(Call::Add),
        1 => Just(Call::Subtract),
        2 => Just(Call::Set),
        1 => Just(Call::Keep),
        1 => Just(Call::Release),
        2 => Just(Call::Describe),
        2 => Just(Call::Pass),
        1 => Just(Call::Upkeep),
        1 => Just(Call::Read(Format::Text)),
        1 => Just(Call::Read(Format::OpenMetrics)),
    ];
    (call, 0..NAMES.len(), 0..LABELS.len(), 0..5usize)
        .prop_map(|(call, name, labels, amount)| Step(call, name, labels, amount))
}

proptest! {
    #[test]
    fn every_page_is_the_models(options in options(), steps in prop::collection::vec(step(), 0..80)) {
        let last = [Format::Text, Format::OpenMetrics].map(|format| Step(Call::Read(format), 0, 0, 0));
        let steps = [steps, last.to_vec()].concat();
        let differs = compare(options, &steps, None).err();
        prop_assert!(differs.is_none(), "{}", differs.unwrap_or_default());
    }
}

/// Negative control: a model that ignores one of the calls differs.
#[test]
fn no_call_is_without_effect() {
    use Call::{Add, Describe, Keep, Pass, Read, Release, Set, Subtract, Upkeep};
    let options =
        Options { unit_suffix: true, label: true, summaries: false, idle: true, all_idle: true };
    let read = Step(Read(Format::Text), 0, 0, 0);
    let of_gauge = |call| Step(call, 4, 1, 1);
    let steps = [
        of_gauge(Add),
        read,
        Step(Set, 4, 1, 2),
        of_gauge(Subtract),
        of_gauge(Describe),
        of_gauge(Keep),
        read,
        // It is not removed, and appears again.
        of_gauge(Pass),
        of_gauge(Pass),
        read,
        of_gauge(Add),
        read,
        // It is removed, and begins anew.
        of_gauge(Release),
        of_gauge(Pass),
        of_gauge(Pass),
        of_gauge(Upkeep),
        of_gauge(Add),
        of_gauge(Add),
        read,
    ];
    assert_eq!(compare(options, &steps, None), Ok(()));
    for call in [Add, Subtract, Set, Keep, Release, Describe, Pass, Upkeep] {
        assert!(compare(options, &steps, Some(call)).is_err(), "{call:?}");
    }
}
