//! The buckets of histograms, selected by name.

use crate::histogram::{DEFAULT_SCHEMA, Limits};
use crate::{Histogram, page};

/// A pattern for names of metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matcher {
    /// The whole name.
    Full(String),
    /// The beginning of the name.
    Prefix(String),
    /// The end of the name.
    Suffix(String),
}

impl Matcher {
    /// Returns `true` if a name, as it is on the page, matches.
    ///
    /// ```
    /// use percid_metrics::Matcher;
    ///
    /// assert!(Matcher::Suffix("_seconds".to_owned()).matches("request_seconds"));
    /// ```
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Matcher::Full(full) => *page::metric_name(full) == *name,
            Matcher::Prefix(prefix) => name.starts_with(&*page::metric_name(prefix)),
            // After the underscore, the suffix may begin with a digit.
            Matcher::Suffix(suffix) => {
                name.ends_with(&page::metric_name(&format!("_{suffix}"))[1..])
            }
        }
    }

    /// Returns the precedence: more exact matchers come first.
    fn rank(&self) -> u8 {
        // #[gamma::skip(expr, literal.int_increment, reason = "only the order counts")]
        match self {
            Matcher::Full(_) => 0,
            Matcher::Prefix(_) => 1,
            Matcher::Suffix(_) => 2,
        }
    }
}

/// The buckets of a histogram.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// Quantiles of native buckets.
    Summary,
    /// Buckets with these limits.
    Limits(Limits),
}

/// The buckets of all histograms.
#[derive(Debug)]
pub(super) struct Shapes {
    pub(super) by_name: Vec<(Matcher, Shape)>,
    pub(super) others: Shape,
}

impl Default for Shapes {
    fn default() -> Self {
        Shapes { by_name: Vec::new(), others: Shape::Summary }
    }
}

impl Shapes {
    pub(super) fn add(&mut self, matcher: Matcher, shape: Shape) {
        self.by_name.push((matcher, shape));
        self.by_name.sort_by_key(|(matcher, _)| matcher.rank());
    }

    fn get(&self, name: &str) -> &Shape {
        let name = page::metric_name(name);
        let found = self.by_name.iter().find(|(matcher, _)| matcher.matches(&name));
        found.map_or(&self.others, |(_, shape)| shape)
    }

    /// Creates a histogram for a metric of this name.
    pub(super) fn histogram(&self, name: &str) -> Histogram {
        match self.get(name) {
            Shape::Limits(limits) => Histogram::with_limits(limits),
            Shape::Summary => match Histogram::native(DEFAULT_SCHEMA) {
                Ok(histogram) => histogram,
                Err(_) => unreachable!("the schema is a constant, and a good one"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_exact_match_counts() {
        let mut shapes = Shapes::default();
        let limits = |limit: f64| Shape::Limits(Limits::new([limit]));
        shapes.add(Matcher::Suffix("seconds".to_owned()), limits(1.0));
        shapes.add(Matcher::Prefix("http.".to_owned()), limits(2.0));
        shapes.add(Matcher::Full("http_seconds".to_owned()), limits(3.0));
        assert_eq!(*shapes.get("http.seconds"), limits(3.0));
        assert_eq!(*shapes.get("http_other_seconds"), limits(2.0));
        assert_eq!(*shapes.get("seconds"), limits(1.0));
        assert_eq!(*shapes.get("bytes"), Shape::Summary);
    }

    #[test]
    fn an_end_matches_as_it_is_on_the_page() {
        let names = [("a_seconds", ".seconds"), ("a_s", "/s"), ("http_5xx", "5xx"), ("a:b", ":b")];
        for (name, end) in names {
            assert!(Matcher::Suffix(end.to_owned()).matches(name), "{name} {end}");
            assert!(
                !Matcher::Suffix(end.to_owned()).matches(&name[..name.len() - 1]),
                "{name} {end}"
            );
        }
    }
}
