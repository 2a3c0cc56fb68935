//! The naive model of a recorder: a list of metrics, and the descriptions of names.

use std::collections::{BTreeMap, BTreeSet};

use metrics::Unit;
use percid_metrics::Format;

use super::parsed::{Labels, Parsed};
use super::{Kind, LABELS, LIMITS, NAMES, Options, TIMEOUT};

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Counter(u64),
    Gauge(f64),
    Histogram(Vec<f64>),
}

#[derive(Debug)]
struct Metric {
    value: Value,
    /// The last value, and the time since which it has not changed.
    seen: Option<(u64, u64)>,
    is_idle: bool,
}

#[derive(Debug)]
pub(crate) struct Model {
    options: Options,
    pub(crate) now: u64,
    /// The metrics, by the indexes of their names and labels.
    metrics: BTreeMap<(usize, usize), Metric>,
    pub(crate) kept: BTreeSet<(usize, usize)>,
    pub(crate) said: BTreeMap<String, (Option<Unit>, &'static str)>,
}

impl Model {
    pub(crate) fn new(options: Options) -> Model {
        let (kept, said) = (BTreeSet::new(), BTreeMap::new());
        Model { options, now: 0, metrics: BTreeMap::new(), kept, said }
    }

    pub(crate) fn value(&mut self, key: (usize, usize)) -> &mut Value {
        let new = || match NAMES[key.0].0 {
            Kind::Counter => Value::Counter(0),
            Kind::Gauge => Value::Gauge(0.0),
            Kind::Histogram => Value::Histogram(Vec::new()),
        };
        let metric = self.metrics.entry(key).or_insert_with(|| Metric {
            value: new(),
            seen: None,
            is_idle: false,
        });
        &mut metric.value
    }

    pub(crate) fn upkeep(&mut self) {
        for (key, metric) in &mut self.metrics {
            let may_idle = NAMES[key.0].0 == Kind::Counter || self.options.all_idle;
            if !self.options.idle || !may_idle {
                continue;
            }
            let value = match &metric.value {
                Value::Counter(count) => *count,
                Value::Gauge(value) => value.to_bits(),
                Value::Histogram(values) => values.len() as u64,
            };
            let changed = match metric.seen {
                Some((seen, changed)) if seen == value => changed,
                _ => self.now,
            };
            metric.seen = Some((value, changed));
            metric.is_idle = self.now - changed >= TIMEOUT;
        }
        let kept = &self.kept;
        self.metrics.retain(|key, metric| !metric.is_idle || kept.contains(key));
    }

    /// Returns the page. If several gauges have the same name and label set, it has the one that
    /// `subjects` has.
    pub(crate) fn page(&mut self, format: Format, subjects: &Parsed) -> Parsed {
        self.upkeep();
        let (mut page, mut left_out) = (Parsed::default(), 0);
        let mut families = BTreeMap::<String, (Kind, BTreeSet<String>)>::new();
        for (&(name, labels), metric) in self.metrics.iter().filter(|(_, it)| !it.is_idle) {
            let (kind, name) = NAMES[name];
            let (name, declared) = (self.name(&fit(name)), fit(name));
            let family = families.entry(name.clone()).or_insert((kind, BTreeSet::new()));
            family.1.insert(declared);
            let key = (name.clone(), self.labels(labels));
            if let (Value::Gauge(value), true) = (&metric.value, page.samples.contains_key(&key)) {
                left_out += 1;
                if subjects.samples.get(&key) != Some(&value.to_string()) {
                    continue;
                }
            }
            self.add_samples(&mut page, (&name, key.1), &metric.value, format);
        }
        if left_out > 0 {
            page.leave_out(left_out);
        }
        for (name, (kind, declared)) in families {
            let own = declared.get(&name).into_iter().chain(&declared);
            let said = own.filter_map(|name| self.said.get(name)).next();
            let is_open = format == Format::OpenMetrics;
            let name = match kind {
                Kind::Counter if is_open => name.trim_end_matches("_total"),
                _ => &name,
            };
            let mut add = |word: &str, text: &str| {
                page.metadata.insert((word.into(), name.into(), text.into()));
            };
            add(
                "TYPE",
                match kind {
                    Kind::Counter => "counter",
                    Kind::Gauge => "gauge",
                    Kind::Histogram if self.options.summaries => "summary",
                    Kind::Histogram => "histogram",
                },
            );
            if let Some((unit, text)) = said {
                add("HELP", text);
                let unit = unit_name(*unit).filter(|unit| name.ends_with(&format!("_{unit}")));
                unit.filter(|_| is_open).into_iter().for_each(|unit| add("UNIT", unit));
            }
        }
        page
    }

    fn add_samples(
        &self,
        page: &mut Parsed,
        (name, labels): (&str, Labels),
        value: &Value,
        format: Format,
    ) {
        let with = |label: &str, value: &str| {
            let mut labels = labels.clone();
            labels.insert(label.into(), value.into());
            labels
        };
        let mut add = |end: &str, labels: Labels, value: String| {
            page.samples.insert((format!("{name}{end}"), labels), value);
        };
        match value {
            Value::Counter(count) => {
                let name = match format {
                    Format::OpenMetrics => name.trim_end_matches("_total").to_owned() + "_total",
                    Format::Text => name.to_owned(),
                };
                let key = (name, labels.clone());
                // Counters with the same name and label set are added.
                let others = page.samples.get(&key).map_or(0, |it| it.parse().expect("a count"));
                page.samples.insert(key, count.wrapping_add(others).to_string());
            }
            Value::Gauge(value) => add("", labels.clone(), value.to_string()),
            Value::Histogram(values) => {
                add("_sum", labels.clone(), values.iter().sum::<f64>().abs().to_string());
                add("_count", labels.clone(), values.len().to_string());
                if self.options.summaries {
                    return add("", with("quantile", "0.25"), "any".into());
                }
                for limit in LIMITS.into_iter().chain([f64::INFINITY]) {
                    let count = values.iter().filter(|value| **value <= limit).count();
                    add("_bucket", with("le", &limit.to_string()), count.to_string());
                }
            }
        }
    }

    fn name(&self, declared: &str) -> String {
        let unit = self.said.get(declared).and_then(|said| unit_name(said.0));
        let stem = declared.trim_end_matches("_total");
        match unit.filter(|unit| self.options.unit_suffix && !stem.ends_with(unit)) {
            Some(unit) => format!("{stem}_{unit}{}", &declared[stem.len()..]),
            None => declared.into(),
        }
    }

    fn labels(&self, number: usize) -> Labels {
        let global = self.options.label.then_some(("zone", "a"));
        let mut all = Labels::new();
        for (name, value) in global.into_iter().chain(LABELS[number].iter().copied()) {
            let name = fit(name);
            let is_formats = name == "le" || name.starts_with("__");
            all.insert(if is_formats { format!("exported_{name}") } else { name }, value.into());
        }
        all
    }
}

/// Returns a name as the formats require it.
pub(crate) fn fit(name: &str) -> String {
    let digit = if name.starts_with(|first: char| first.is_ascii_digit()) { "_" } else { "" };
    digit.to_owned() + &name.replace(['.', '-', ' '], "_")
}

fn unit_name(unit: Option<Unit>) -> Option<&'static str> {
    Some(match unit? {
        Unit::Percent => "ratio",
        Unit::Seconds => "seconds",
        Unit::Bytes => "bytes",
        _ => return None,
    })
}
