//! Random calls of a registry, compared with a naive model: the refusals and the pages.

use std::collections::{BTreeMap, BTreeSet};

use percid_metrics::{
    Counter, Description, FloatCounter, Format, Gauge, Histogram, Labelled, Registry,
};
use proptest::prelude::*;

use super::LIMITS;
use super::parsed::{Labels, Parsed};

/// Names that collide with each other, by a suffix or a unit.
const NAMES: [&str; 6] = ["a", "a_total", "a_bytes", "a_sum", "a_bytes_count", "b"];
const VALUES: [&str; 5] = ["x", "y", "", "other", "q\"u\\o\nte,}"];
const MOST: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Counter,
    Float,
    Gauge,
    Histogram,
}

#[derive(Debug, Clone)]
enum Step {
    /// With a unit, and with a label.
    Register(Kind, usize, bool, bool),
    /// The metric (of those registered), its label's value, and the number of events.
    Count(usize, usize, u32),
    Read(bool),
}

enum Registered {
    Counter(Labelled<Counter>),
    Float(Labelled<FloatCounter>),
    Gauge(Labelled<Gauge>),
    Histogram(Labelled<Histogram>),
}

impl Registered {
    fn new(registry: &Registry, kind: Kind, of: Description) -> Option<Registered> {
        Some(match kind {
            Kind::Counter => Registered::Counter(registry.register(of).ok()?),
            Kind::Float => Registered::Float(registry.register(of).ok()?),
            Kind::Gauge => Registered::Gauge(registry.register(of).ok()?),
            Kind::Histogram => Registered::Histogram(registry.register(of.buckets(LIMITS)).ok()?),
        })
    }

    fn count(&self, label: Option<&str>, times: u32) {
        let is_right = "as many values as labels, and memory";
        match self {
            Registered::Counter(it) => it.get(label).expect(is_right).inc_by(times.into()),
            Registered::Float(it) => it.get(label).expect(is_right).inc_by(0.25 * f64::from(times)),
            Registered::Gauge(it) => it.get(label).expect(is_right).dec_by(f64::from(times)),
            Registered::Histogram(it) => {
                let it = it.get(label).expect(is_right);
                (0..times).for_each(|_| it.observe(0.5));
            }
        }
    }
}

/// A metric of the model: the count of each series.
struct Metric {
    kind: Kind,
    /// The name without a counter's `_total`.
    stem: String,
    has_unit: bool,
    has_label: bool,
    series: BTreeMap<&'static str, u32>,
}

impl Metric {
    fn new(kind: Kind, name: usize, has_unit: bool, has_label: bool) -> Metric {
        let is_counter = matches!(kind, Kind::Counter | Kind::Float);
        let mut stem = NAMES[name].to_owned();
        if is_counter {
            stem = stem.trim_end_matches("_total").to_owned();
        }
        if has_unit && !stem.ends_with("_bytes") {
            stem += "_bytes";
        }
        let series = BTreeMap::from_iter((!has_label).then_some(("", 0)));
        Metric { kind, stem, has_unit, has_label, series }
    }

    fn names(&self) -> BTreeSet<String> {
        let ends: &[&str] = match self.kind {
            Kind::Counter | Kind::Float => &["", "_total"],
            Kind::Gauge => &[""],
            Kind::Histogram => &["", "_bucket", "_sum", "_count"],
        };
        ends.iter().map(|end| self.stem.clone() + end).collect()
    }

    fn count(&mut self, label: &'static str, times: u32) {
        let others = self.series.keys().filter(|it| **it != "other").count();
        let is_known = !self.has_label || self.series.contains_key(label);
        let label = if is_known || others < MOST { label } else { "other" };
        *self.series.entry(if self.has_label { label } else { "" }).or_default() += times;
    }

    fn write(&self, page: &mut Parsed, format: Format) {
        if self.series.is_empty() {
            return;
        }
        let (word, total) = match self.kind {
            Kind::Counter | Kind::Float => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
            Kind::Histogram => ("histogram", ""),
        };
        let end = if format == Format::Text { total } else { "" };
        let mut say = |what: &str, text: &str| {
            page.metadata.insert((what.into(), format!("{}{end}", self.stem), text.into()));
        };
        say("TYPE", word);
        say("HELP", "a\\\n\"");
        if self.has_unit && format == Format::OpenMetrics {
            say("UNIT", "bytes");
        }
        for (&label, &times) in &self.series {
            let labels = Labels::from_iter(self.has_label.then(|| ("l".into(), label.into())));
            let mut add = |end: &str, le: Option<&str>, value: String| {
                let mut labels = labels.clone();
                labels.extend(le.map(|limit| ("le".into(), limit.into())));
                page.samples.insert((format!("{}{end}", self.stem), labels), value);
            };
            match self.kind {
                Kind::Counter => add("_total", None, times.to_string()),
                Kind::Float => add("_total", None, (0.25 * f64::from(times)).to_string()),
                Kind::Gauge => add("", None, (0.0 - f64::from(times)).to_string()),
                Kind::Histogram => {
                    for limit in ["0.5", "2", "inf"] {
                        add("_bucket", Some(limit), times.to_string());
                    }
                    add("_sum", None, (0.5 * f64::from(times)).to_string());
                    add("_count", None, times.to_string());
                }
            }
        }
    }
}

/// Applies these steps to both. Returns the first difference. The negative control's model has no
/// taken names, or no limit.
fn compare(steps: &[Step], takes_names: bool, has_limit: bool) -> Result<(), String> {
    let (registry, mut all) = (Registry::new(), Vec::<(Registered, Metric)>::new());
    for step in steps {
        match *step {
            Step::Register(kind, name, has_unit, has_label) => {
                let mut of = Description::new(NAMES[name]).help("a\\\n\"");
                of = of.limit(if has_limit { MOST } else { usize::MAX });
                of = if has_unit { of.unit("bytes") } else { of };
                of = if has_label { of.labels(["l"]) } else { of };
                let metric = Metric::new(kind, name, has_unit, has_label);
                let is_taken = all.iter().any(|(_, it)| !it.names().is_disjoint(&metric.names()));
                match Registered::new(&registry, kind, of) {
                    Some(_) if is_taken && takes_names => return Err(format!("{step:?} is taken")),
                    None if !(is_taken && takes_names) => {
                        return Err(format!("{step:?} is refused"));
                    }
                    registered => all.extend(registered.map(|it| (it, metric))),
                }
            }
            Step::Count(metric, label, times) if !all.is_empty() => {
                let number = metric % all.len();
                let (registered, metric) = &mut all[number];
                registered.count(metric.has_label.then_some(VALUES[label]), times);
                metric.count(VALUES[label], times);
            }
            Step::Count(..) => {}
            Step::Read(is_open) => {
                let format = if is_open { Format::OpenMetrics } else { Format::Text };
                let (page, mut expected) = (registry.render(format), Parsed::default());
                all.iter().for_each(|(_, metric)| metric.write(&mut expected, format));
                if Parsed::of(&page) != expected {
                    return Err(format!("{page}\nmodel: {expected:#?}"));
                }
            }
        }
    }
    Ok(())
}

fn step() -> impl Strategy<Value = Step> {
    let kinds = [Kind::Counter, Kind::Float, Kind::Gauge, Kind::Histogram];
    let register = (prop::sample::select(kinds.to_vec()), 0..NAMES.len(), any::<[bool; 2]>());
    prop_oneof![
        2 => register.prop_map(|(kind, name, [unit, label])| Step::Register(kind, name, unit, label)),
        5 => (0..16usize, 0..VALUES.len(), 0..5u32)
            .prop_map(|(metric, label, times)| Step::Count(metric, label, times)),
        1 => any::<bool>().prop_map(Step::Read),
    ]
}

proptest! {
    #[test]
    fn every_page_of_a_registry_is_the_models(steps in prop::collection::vec(step(), 0..80)) {
        let steps = [steps, vec![Step::Read(false), Step::Read(true)]].concat();
        let differs = compare(&steps, true, true).err();
        prop_assert!(differs.is_none(), "{}", differs.unwrap_or_default());
    }
}

/// Negative control: missing checks of taken names and of the limit are both detected.
#[test]
fn a_model_without_names_or_a_limit_differs() {
    let register = |name| Step::Register(Kind::Gauge, name, false, true);
    assert!(compare(&[register(0), register(0)], false, true).is_err());
    let count = |label| Step::Count(0, label, 1);
    let steps = [register(0), count(0), count(1), count(2), Step::Read(false)];
    assert!(compare(&steps, true, true).is_ok());
    assert!(compare(&steps, true, false).is_err());
}
