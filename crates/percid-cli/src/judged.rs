//! The report of a part of a measurement, with a check that its times are not noise.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::busy::{self, Noise};

/// The line below a part that lacks rows.
pub(crate) const PARTIAL: &str = "partial: the time was over before all was measured";

/// The report of a part.
pub(crate) trait Part: Serialize + fmt::Display {
    /// Its name in the lists `noise` and `partial` of the JSON document.
    const NAME: &'static str;
    /// Keys of the JSON document whose values are times, or follow from times.
    const TIMES: &'static [&'static str];

    /// Returns the values that do not depend on time, as lines that begin with two spaces.
    fn counts(&self) -> String;
}

/// Circumstances under which a part was measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Circumstances {
    /// The load of other processes, if times are noise.
    pub(crate) noise: Option<Noise>,
    /// `true` if the time was over before there was a whole round.
    pub(crate) partial: bool,
}

/// A report, and the circumstances of its measurement.
#[derive(Debug)]
pub(crate) struct Judged<R> {
    pub(crate) report: R,
    pub(crate) circumstances: Circumstances,
}

/// An item of the list `noise` of the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct NoiseOf {
    part: &'static str,
    #[serde(flatten)]
    noise: Noise,
}

impl NoiseOf {
    pub(crate) fn new(part: &'static str, noise: Noise) -> NoiseOf {
        NoiseOf { part, noise }
    }
}

impl Circumstances {
    /// Returns the noise that replaces the times.
    pub(crate) fn hiding(&self) -> Option<Noise> {
        self.noise.filter(|_| !busy::is_ignored())
    }
}

impl<R: Part> Judged<R> {
    pub(crate) fn new(report: R, circumstances: Circumstances) -> Judged<R> {
        Judged { report, circumstances }
    }

    /// Returns the noise that replaces the times.
    pub(crate) fn hiding(&self) -> Option<Noise> {
        self.circumstances.hiding()
    }

    /// Returns an item of the list `noise`.
    pub(crate) fn noise(&self) -> Option<NoiseOf> {
        self.circumstances.noise.map(|noise| NoiseOf::new(R::NAME, noise))
    }

    /// Returns an item of the list `partial`.
    pub(crate) fn partial(&self) -> Option<&'static str> {
        self.circumstances.partial.then_some(R::NAME)
    }

    /// Returns the report without its times.
    pub(crate) fn without_times(&self, noise: Noise) -> String {
        format!("{}: {noise}\n{}", R::NAME, self.report.counts())
    }
}

#[cfg(test)]
impl<R: Part> From<R> for Judged<R> {
    /// Creates the report of a measurement on an otherwise idle machine.
    fn from(report: R) -> Judged<R> {
        Judged::new(report, Circumstances::default())
    }
}

/// Formats the report, without its times if they are noise.
impl<R: Part> fmt::Display for Judged<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.hiding(), self.circumstances.noise) {
            (Some(noise), _) => write!(f, "{}", self.without_times(noise))?,
            (None, Some(noise)) => write!(f, "{noise}\n{}", self.report)?,
            (None, None) => write!(f, "{}", self.report)?,
        }
        match self.circumstances.partial {
            true => writeln!(f, "  {PARTIAL}"),
            false => Ok(()),
        }
    }
}

/// Serialises the report, with `null` for its times if they are noise.
impl<R: Part> Serialize for Judged<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.hiding().is_none() {
            return self.report.serialize(serializer);
        }
        let mut value = serde_json::to_value(&self.report).map_err(serde::ser::Error::custom)?;
        forget(&mut value, R::TIMES);
        value.serialize(serializer)
    }
}

/// Replaces the values of these keys, at any depth.
fn forget(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                if keys.contains(&key.as_str()) {
                    *member = Value::Null;
                } else {
                    forget(member, keys);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| forget(item, keys)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize)]
    struct Report {
        lost: u64,
        rows: Vec<PartRow>,
    }

    #[derive(Debug, Serialize)]
    struct PartRow {
        ids: u32,
        ns: f64,
    }

    impl Part for Report {
        const NAME: &'static str = "part";
        const TIMES: &'static [&'static str] = &["ns"];

        fn counts(&self) -> String {
            format!("  lost: {}\n", self.lost)
        }
    }

    impl fmt::Display for Report {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.rows.iter().try_for_each(|row| writeln!(f, "  {} ns", row.ns))?;
            write!(f, "{}", self.counts())
        }
    }

    fn judged(noise: Option<Noise>, partial: bool) -> Judged<Report> {
        let report = Report { lost: 7, rows: vec![PartRow { ids: 2, ns: 29e6 }] };
        Judged::new(report, Circumstances { noise, partial })
    }

    const NOISE: Option<Noise> = Some(Noise { runnable_threads: 4, cpus: 2 });

    #[test]
    fn noise_stands_in_place_of_times_and_counts_stay() {
        let text = judged(NOISE, false).to_string();
        let expected = "part: the machine was busy: 4 runnable threads on 2 CPUs\n  lost: 7\n";
        assert_eq!(text, expected);
        assert_eq!(judged(None, false).to_string(), "  29000000 ns\n  lost: 7\n");
    }

    #[test]
    fn documents_have_null_for_times_that_are_noise() {
        let document = |noise| serde_json::to_value(judged(noise, false)).expect("a document");
        let rows = |ns: Value| serde_json::json!({"lost": 7, "rows": [{"ids": 2, "ns": ns}]});
        assert_eq!(document(NOISE), rows(Value::Null));
        assert_eq!(document(None), rows(29e6.into()));
        let named = serde_json::to_value(judged(NOISE, false).noise()).expect("an item");
        assert_eq!(named, serde_json::json!({"part": "part", "runnable_threads": 4, "cpus": 2}));
    }

    #[test]
    fn what_is_partial_says_so() {
        assert!(
            judged(None, true)
                .to_string()
                .ends_with("  partial: the time was over before all was measured\n")
        );
        assert_eq!(judged(None, true).partial(), Some("part"));
        assert_eq!(judged(None, false).partial(), None);
    }
}
