//! Descriptions of metrics: names, texts, labels and limits.

use std::fmt::Write;

use percid::Buckets;

use super::error::RegisterError;
use crate::histogram::{DEFAULT_LIMITS, Limits};
use crate::page::{Kind, is_label_name, is_metric_name, label_value};

/// The default limit of a metric's label sets.
pub const DEFAULT_LIMIT: usize = 2000;

/// The description with which a metric is registered: its name, a help text, its labels.
///
/// ```
/// use percid_metrics::{Counter, Description, Format, Registry};
///
/// let registry = Registry::new();
/// let description = Description::new("read")
///     .unit("bytes")
///     .help("Bytes that were read.")
///     .constant_label("instance", "a")
///     .labels(["disk"]);
/// let read = registry.register::<Counter>(description)?;
/// read.get(["sda"])?.inc_by(512);
/// let page = registry.render(Format::Text);
/// assert!(page.ends_with("read_bytes_total{instance=\"a\",disk=\"sda\"} 512\n"), "{page}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Description {
    name: String,
    help: Option<String>,
    unit: Option<String>,
    constant: Vec<(String, String)>,
    labels: Vec<String>,
    buckets: Option<Vec<f64>>,
    most: usize,
    overflow: String,
}

impl Description {
    /// Creates a description of a metric with this name: letters, digits, underscores and colons,
    /// no digit first. The name of a counter ends in `_total` on the page. The suffix may be left
    /// out here.
    pub fn new(name: impl Into<String>) -> Description {
        Description {
            name: name.into(),
            help: None,
            unit: None,
            constant: Vec::new(),
            labels: Vec::new(),
            buckets: None,
            most: DEFAULT_LIMIT,
            overflow: "other".to_owned(),
        }
    }

    /// Sets the help text.
    pub fn help(mut self, text: impl Into<String>) -> Description {
        self.help = Some(text.into());
        self
    }

    /// Sets the unit, such as `seconds`. The name ends in it on the page (before `_total`). The
    /// suffix may be left out of the name.
    pub fn unit(mut self, unit: impl Into<String>) -> Description {
        self.unit = Some(unit.into());
        self
    }

    /// Adds a label that all series have, with its value.
    pub fn constant_label(
        mut self,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Description {
        self.constant.push((name.into(), value.into()));
        self
    }

    /// Sets the names of the labels. Series differ in their values.
    pub fn labels<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Description {
        self.labels = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the upper limits of a histogram's buckets, in ascending order: at most 2047. Infinity
    /// may be the last one; it is added otherwise. The default is [`DEFAULT_LIMITS`].
    pub fn buckets(mut self, limits: impl IntoIterator<Item = f64>) -> Description {
        self.buckets = Some(limits.into_iter().collect());
        self
    }

    /// Sets the maximum number of label sets; the default is [`DEFAULT_LIMIT`]. Updates with other
    /// label sets are counted by one additional series. Its labels all have the value of
    /// [`overflow`](Description::overflow).
    pub fn limit(mut self, most: usize) -> Description {
        self.most = most;
        self
    }

    /// Sets the value of the labels of the series beyond the limit; the default is `other`.
    pub fn overflow(mut self, value: impl Into<String>) -> Description {
        self.overflow = value.into();
        self
    }

    /// Checks the description, and returns it as the page needs it.
    pub(super) fn checked(self, kind: Kind) -> Result<Described, RegisterError> {
        let name = full_name(&self.name, self.unit.as_deref(), kind)?;
        let constant_names = self.constant.iter().map(|(name, _)| name);
        let mut seen: Vec<&String> = Vec::new();
        for label in constant_names.chain(&self.labels) {
            let is_formats = label == "le" && kind == Kind::Histogram;
            if !is_label_name(label) || label.starts_with("__") || is_formats {
                return Err(RegisterError::BadLabel(label.clone()));
            }
            if seen.contains(&label) {
                return Err(RegisterError::LabelTwice(label.clone()));
            }
            seen.push(label);
        }
        let limits = limits(self.buckets.as_deref(), kind)?;
        let mut constant = String::new();
        for (name, value) in &self.constant {
            let comma = if constant.is_empty() { "" } else { "," };
            // A write to a string does not fail.
            let _ = write!(constant, "{comma}{name}=\"{}\"", label_value(value));
        }
        Ok(Described {
            name,
            kind,
            help: self.help,
            unit: self.unit,
            constant,
            labels: self.labels,
            limits,
            most: self.most,
            overflow: self.overflow,
        })
    }
}

fn full_name(name: &str, unit: Option<&str>, kind: Kind) -> Result<String, RegisterError> {
    let is_counter = kind == Kind::Counter;
    let base = if is_counter { name.strip_suffix("_total").unwrap_or(name) } else { name };
    if !is_metric_name(base) {
        return Err(RegisterError::BadName(name.to_owned()));
    }
    let mut full = base.to_owned();
    if let Some(unit) = unit {
        if !unit.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') || unit.is_empty()
        {
            return Err(RegisterError::BadUnit(unit.to_owned()));
        }
        let has_unit = base.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_'));
        if !has_unit {
            full.push('_');
            full.push_str(unit);
        }
    }
    if is_counter {
        full.push_str("_total");
    }
    Ok(full)
}

fn limits(given: Option<&[f64]>, kind: Kind) -> Result<Limits, RegisterError> {
    let Some(given) = given else { return Ok(Limits::new(DEFAULT_LIMITS)) };
    let finite = given.strip_suffix(&[f64::INFINITY]).unwrap_or(given);
    if kind != Kind::Histogram {
        return Err(RegisterError::LimitsWithoutHistogram);
    }
    if finite.len() >= Buckets::MAX {
        return Err(RegisterError::TooManyLimits(finite.len()));
    }
    let before = std::iter::once(f64::NEG_INFINITY).chain(finite.iter().copied());
    let bad = before.zip(finite).position(|(before, &it)| !(it.is_finite() && before < it));
    match bad {
        Some(index) => Err(RegisterError::BadLimit { index, limit: finite[index].to_string() }),
        None => Ok(Limits::new(finite.iter().copied())),
    }
}

/// A description that conforms to the formats.
#[derive(Debug)]
pub struct Described {
    /// The name as in Prometheus' text format: with the unit and, for a counter, `_total`.
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) help: Option<String>,
    pub(super) unit: Option<String>,
    /// The constant labels as they are written.
    pub(super) constant: String,
    pub(super) labels: Vec<String>,
    pub(super) limits: Limits,
    pub(super) most: usize,
    pub(super) overflow: String,
}

impl Described {
    /// Returns `true` if both metrics have a name on the page in common.
    pub(super) fn collides(&self, other: &Described) -> bool {
        let (ours, theirs) = (self.suffixes(), other.suffixes());
        ours.iter().any(|one| theirs.iter().any(|two| same(self.base(), one, other.base(), two)))
    }

    fn base(&self) -> &str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(&self.name),
            _ => &self.name,
        }
    }

    fn suffixes(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Counter => &["", "_total"],
            Kind::Histogram => &["", "_bucket", "_sum", "_count"],
            _ => &[""],
        }
    }
}

fn same(base: &str, end: &str, other_base: &str, other_end: &str) -> bool {
    base.bytes().chain(end.bytes()).eq(other_base.bytes().chain(other_end.bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(description: Description, kind: Kind) -> Result<String, String> {
        description.checked(kind).map(|it| it.name).map_err(|error| error.to_string())
    }

    #[test]
    fn names_end_in_unit_and_total() {
        let described = |name: &str, kind| checked(Description::new(name), kind);
        assert_eq!(described("a", Kind::Counter).as_deref(), Ok("a_total"));
        assert_eq!(described("a_total", Kind::Counter).as_deref(), Ok("a_total"));
        assert_eq!(described("a_total", Kind::Gauge).as_deref(), Ok("a_total"));
        let in_seconds = |name: &str| {
            checked(Description::new(name).unit("seconds"), Kind::Counter).expect("it is good")
        };
        for name in ["cpu", "cpu_seconds", "cpu_seconds_total", "cpu_total"] {
            assert_eq!(in_seconds(name), "cpu_seconds_total", "{name}");
        }
        assert_eq!(in_seconds("seconds"), "seconds_seconds_total", "OpenMetrics wants it behind _");
        let unit = Description::new("a").unit("m_per_s2");
        assert_eq!(checked(unit, Kind::Gauge).as_deref(), Ok("a_m_per_s2"));
    }

    #[test]
    fn what_the_formats_do_not_allow_is_refused() {
        let new = Description::new;
        for bad in [
            new(""),
            new("_total"),
            new("5xx"),
            new("a b"),
            new("a\n"),
            new("größe"),
            new("a").unit(""),
            new("a").unit("s\n"),
            new("a").labels([""]),
            new("a").labels(["b-c"]),
            new("a").labels(["b:c"]),
            new("a").labels(["__name"]),
            new("a").labels(["b", "b"]),
            new("a").labels(["b"]).constant_label("b", "c"),
            new("a").constant_label("d\"", "c"),
            new("a").buckets([1.0]),
        ] {
            let what = format!("{bad:?}");
            assert!(bad.checked(Kind::Counter).is_err(), "{what}");
        }
        let (infinity, nan) = (f64::INFINITY, f64::NAN);
        for (limits, said) in [
            (&[2.0, 1.0][..], "limits[1] is 1:"),
            (&[1.0, 1.0], "limits[1] is 1:"),
            (&[nan], "limits[0] is NaN:"),
            (&[1.0, nan, 2.0], "limits[1] is NaN:"),
            (&[-infinity, 1.0], "limits[0] is -inf:"),
            (&[1.0, infinity, infinity], "limits[1] is inf:"),
        ] {
            let bad = checked(new("a").buckets(limits.iter().copied()), Kind::Histogram);
            assert!(bad.as_ref().is_err_and(|it| it.starts_with(said)), "{limits:?}: {bad:?}");
        }
        let many = |limits: u32| new("a").buckets((0..limits).map(f64::from));
        assert!(many(2047).checked(Kind::Histogram).is_ok());
        assert!(many(2048).checked(Kind::Histogram).is_err());
        assert!(new("a").labels(["le"]).checked(Kind::Histogram).is_err());
        assert!(new("a").labels(["le"]).checked(Kind::Gauge).is_ok());
    }

    #[test]
    fn names_that_come_to_one_name_collide() {
        let of = |name: &str, kind| Description::new(name).checked(kind).expect("it is good");
        let (counter, gauge, histogram) = (Kind::Counter, Kind::Gauge, Kind::Histogram);
        for (one, other, collide) in [
            (of("a", counter), of("a_total", counter), true),
            (of("a", counter), of("a", gauge), true),
            (of("a", counter), of("a_total", gauge), true),
            (of("a", histogram), of("a_count", gauge), true),
            (of("a", histogram), of("a_bucket", counter), true),
            (of("a", histogram), of("a_counts", gauge), false),
            (of("a", gauge), of("a_count", gauge), false),
            (of("a", gauge), of("b", gauge), false),
        ] {
            assert_eq!((one.collides(&other), other.collides(&one)), (collide, collide), "{one:?}");
        }
    }
}
