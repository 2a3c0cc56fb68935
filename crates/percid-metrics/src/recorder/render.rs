//! The page of a recorder.
//!
//! Metrics are ordered by name and then by labels. Names and labels are changed to those that the
//! format allows, so two keys may have the same name and labels. Then the counts of counters are
//! added, and of all other metrics the first one is used.
//!
//! If metrics of two kinds have the same name, it belongs to the first kind: counters, gauges,
//! histograms. A name that equals that of a histogram's sample belongs to the histogram. The page
//! contains the number of metrics that were left out.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::PoisonError;

use metrics::{Key, Unit};
use metrics_util::MetricKind;

use super::descriptions::{Description, Descriptions};
use super::store::Store;
use crate::Histogram;
use crate::page::{Format, Kind, PageWriter, label_name, label_value, metric_name, without_total};

/// The value of a metric on the page.
#[derive(Debug, Clone)]
enum Value {
    Counter(u64),
    Gauge(f64),
    Histogram(Histogram),
}

/// Metrics by name.
type Families = BTreeMap<String, OfName>;

/// The metrics of a name.
#[derive(Debug, Default)]
struct OfName {
    /// The names in the program's declarations, without the unit. They may have descriptions.
    declared: BTreeSet<String>,
    /// The metrics by their labels, as they are written.
    metrics: BTreeMap<String, Value>,
}

impl OfName {
    /// Returns the description of these metrics. The name on the page has precedence over other
    /// declared names.
    fn description(&self, name: &str, descriptions: &Descriptions) -> Option<Description> {
        let as_declared = self.declared.get(name);
        as_declared.into_iter().chain(&self.declared).find_map(|name| descriptions.get(name))
    }
}

pub(super) fn render(store: &Store, format: Format, out: &mut impl Write) -> io::Result<()> {
    let mut collected = Collected::from_store(store);
    let mut page = PageWriter::new(out, format);
    let (mut unrecorded, mut names) = (0, Names { format, taken: HashSet::new() });
    while let Some((name, of_name)) = collected.families.pop_first() {
        match of_name.metrics.values().next().and_then(|first| names.take(&name, first.kind())) {
            Some(kind) => unrecorded += family(store, &mut page, (&name, kind), of_name)?,
            None => collected.left_out += of_name.metrics.len(),
        }
    }
    page.unrecorded(unrecorded)?;
    page.left_out(collected.left_out)?;
    page.end()
}

/// The names of families and samples on a page. Each belongs to one family.
struct Names {
    format: Format,
    taken: HashSet<String>,
}

impl Names {
    /// Reserves the names of a family, and returns its kind on the page. Returns `None` if a name
    /// is taken.
    fn take(&mut self, name: &str, kind: Kind) -> Option<Kind> {
        let suffixes: &[&str] = match kind {
            Kind::Counter if self.format == Format::OpenMetrics => {
                // `queue_total` may stand beside a gauge `queue` in Prometheus' format.
                return match self.take_all(without_total(name), &["", "_total"]) {
                    true => Some(kind),
                    false => self.take_all(name, &[""]).then_some(Kind::Unknown),
                };
            }
            Kind::Histogram => &["", "_bucket", "_sum", "_count"],
            Kind::Summary => &["", "_sum", "_count"],
            Kind::Counter | Kind::Gauge | Kind::Unknown => &[""],
        };
        self.take_all(name, suffixes).then_some(kind)
    }

    fn take_all(&mut self, name: &str, suffixes: &[&str]) -> bool {
        let names: Vec<String> = suffixes.iter().map(|suffix| format!("{name}{suffix}")).collect();
        let are_free = names.iter().all(|name| !self.taken.contains(name));
        if are_free {
            self.taken.extend(names);
        }
        are_free
    }
}

impl Value {
    fn kind(&self) -> Kind {
        match self {
            Value::Counter(_) => Kind::Counter,
            Value::Gauge(_) => Kind::Gauge,
            Value::Histogram(histogram) if histogram.is_native() => Kind::Summary,
            Value::Histogram(_) => Kind::Histogram,
        }
    }
}

struct Collected<'s> {
    store: &'s Store,
    families: Families,
    left_out: usize,
}

impl Collected<'_> {
    fn from_store(store: &Store) -> Collected<'_> {
        let mut all = Collected { store, families: Families::new(), left_out: 0 };
        let idle = store.idle.lock().unwrap_or_else(PoisonError::into_inner);
        store.counters.for_each(|key, counter| {
            if !idle.hides(MetricKind::Counter, key) {
                all.add(key, Value::Counter(counter.get()));
            }
        });
        store.gauges.for_each(|key, gauge| {
            if !idle.hides(MetricKind::Gauge, key) {
                all.add(key, Value::Gauge(gauge.get()));
            }
        });
        store.histograms.for_each(|key, histogram| {
            if !idle.hides(MetricKind::Histogram, key) {
                all.add(key, Value::Histogram(histogram.clone()));
            }
        });
        all
    }

    fn add(&mut self, key: &Key, value: Value) {
        let labels = self.labels(key);
        let declared = metric_name(key.name());
        let OfName { declared: names, metrics } =
            self.families.entry(self.name(&declared)).or_default();
        // #[gamma::skip(cond.always_true, reason = "it only saves a copy")]
        if !names.contains(&*declared) {
            names.insert(declared.into_owned());
        }
        let is_same_kind = metrics
            .values()
            .next()
            .is_none_or(|first| std::mem::discriminant(first) == std::mem::discriminant(&value));
        match (metrics.get_mut(&labels), value) {
            (Some(Value::Counter(there)), Value::Counter(more)) => {
                *there = there.wrapping_add(more)
            }
            (None, value) if is_same_kind => _ = metrics.insert(labels, value),
            _ => self.left_out += 1,
        }
    }

    /// Returns the name on the page: with its unit at the end, if that is enabled. A counter's
    /// `_total` follows the unit.
    fn name(&self, declared: &str) -> String {
        let unit = || self.store.descriptions.get(declared)?.unit.and_then(unit_name);
        let (name, total) = match without_total(declared) {
            name if name == declared => (name, ""),
            name => (name, "_total"),
        };
        match self.store.settings.unit_suffix.then(unit).flatten() {
            Some(unit) if !name.ends_with(unit) => format!("{name}_{unit}{total}"),
            _ => declared.to_owned(),
        }
    }

    /// Returns labels as they are written. A metric's own label replaces the global one of the same
    /// name.
    fn labels(&self, key: &Key) -> String {
        let mut labels: BTreeMap<String, &str> = BTreeMap::new();
        for (name, value) in &self.store.settings.labels {
            labels.insert(name.clone(), value);
        }
        for label in key.labels() {
            labels.insert(label_name(label.key()).into_owned(), label.value());
        }
        let mut text = String::new();
        for (name, value) in labels {
            let comma = if text.is_empty() { "" } else { "," };
            // A write to a string does not fail.
            let _ = write!(text, "{comma}{name}=\"{}\"", label_value(value));
        }
        text
    }
}

/// Returns the name of a unit at the end of a metric's name, if it is used there.
fn unit_name(unit: Unit) -> Option<&'static str> {
    match unit {
        Unit::Count => None,
        Unit::Percent => Some("ratio"),
        other => Some(other.as_str()),
    }
}

/// Writes a family, and returns the number of values that it could not record.
fn family<W: Write>(
    store: &Store,
    page: &mut PageWriter<'_, W>,
    (name, kind): (&str, Kind),
    of_name: OfName,
) -> io::Result<u64> {
    let description = of_name.description(name, &store.descriptions);
    let text = description.as_ref().map(|it| &*it.text);
    let unit = description.as_ref().and_then(|it| it.unit).and_then(unit_name);
    page.family(name, kind, text, unit)?;
    let mut unrecorded = 0;
    for (labels, value) in of_name.metrics {
        match value {
            Value::Counter(count) => page.counter(name, &labels, count)?,
            Value::Gauge(value) => page.sample((name, ""), &labels, None, value)?,
            Value::Histogram(histogram) => {
                unrecorded += histogram.unrecorded();
                match kind {
                    Kind::Summary => summary(store, page, name, &labels, &histogram)?,
                    _ => page.histogram(name, &labels, &histogram.snapshot())?,
                }
            }
        }
    }
    Ok(unrecorded)
}

fn summary<W: Write>(
    store: &Store,
    page: &mut PageWriter<'_, W>,
    name: &str,
    labels: &str,
    histogram: &Histogram,
) -> io::Result<()> {
    let Some(all) = histogram.native_snapshot() else { return Ok(()) };
    for &quantile in &store.settings.quantiles {
        let value = all.quantile(quantile).unwrap_or(f64::NAN);
        if value.is_nan() || page.takes(value) {
            page.sample((name, ""), labels, Some(("quantile", quantile)), value)?;
        }
    }
    if page.takes(all.sum) {
        page.sample((name, "_sum"), labels, None, all.sum)?;
    }
    page.count((name, "_count"), labels, None, all.count)
}
