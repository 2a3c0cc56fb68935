//! A value of the model that can be checked, and its reference.

use serde::Serialize;

/// The relation of a value to the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Numbers of the model were fitted to this published value.
    Fitted,
    /// It was published, and nothing was fitted to it.
    Published,
    /// It was published, and the model cannot miss it: it was fitted to this value alone, or
    /// follows from a rule that it simulates.
    ByConstruction,
    /// It has not been published.
    Forecast,
}

impl Kind {
    /// Returns the name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Fitted => "fitted",
            Kind::Published => "published",
            Kind::ByConstruction => "by construction",
            Kind::Forecast => "forecast",
        }
    }

    /// Returns `true` if the value counts as a published figure to which nothing was fitted, and
    /// that the model could miss.
    pub fn counts(self) -> bool {
        self == Kind::Published
    }
}

/// Difference from a published value, as a share of it, within which the model agrees with it.
/// This one share is for all published values.
pub const AGREES: f64 = 0.25;

/// Number of published standard deviations within which the model agrees with a published value, if
/// its deviation was published.
pub const DEVIATIONS: f64 = 2.0;

/// A published value. In JSON, a number or the two ends of a range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Published {
    /// One number.
    Exactly(f64),
    /// A range from one number to another.
    Between(f64, f64),
}

impl Published {
    /// Returns the range of the values that agree with this one: [`AGREES`] beyond each end.
    pub fn agreeing(self) -> [f64; 2] {
        let (least, most) = self.ends();
        [least - AGREES * least.abs(), most + AGREES * most.abs()]
    }

    fn ends(self) -> (f64, f64) {
        match self {
            Published::Exactly(one) => (one, one),
            Published::Between(least, most) => (least, most),
        }
    }

    /// Returns the difference of a value from this one, as a share of the nearer end; 0 inside a
    /// range. Returns `None` if the nearer end is 0 and the value is not.
    pub fn error(self, figure: f64) -> Option<f64> {
        let (least, most) = self.ends();
        let nearest = figure.clamp(least, most);
        match figure == nearest {
            true => Some(0.0),
            false => Some((figure - nearest) / nearest.abs()).filter(|error| error.is_finite()),
        }
    }
}

/// Returns the range of the values that agree with a value whose standard deviation was published.
pub fn agreeing_with_deviation(value: f64, deviation: f64) -> [f64; 2] {
    [value - DEVIATIONS * deviation, value + DEVIATIONS * deviation]
}

/// The values that are accepted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepted {
    /// A range of values, in the unit of the prediction.
    Within(f64, f64),
    /// Any value, with the reason: there is no published value, or the model has no choice.
    NoBound(String),
}

/// A row of `percid sim published predictions`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Name of the value, without its unit.
    pub what: String,
    /// The commit, the publication or the reasoning that is the reference.
    pub source: String,
    /// Unit of all values; empty for plain counts.
    pub unit: &'static str,
    /// The value of the model.
    pub model: f64,
    /// The value that was published; `None` if none was.
    pub published: Option<Published>,
    /// The value that an earlier model of this project forecast, if it did.
    pub earlier: Option<f64>,
    /// The relation of the two values.
    pub kind: Kind,
    /// The values of the model that are accepted.
    pub bound: Accepted,
}

impl Prediction {
    /// Returns the difference of the model from the published value, as a share of that; see
    /// [`Published::error`].
    pub fn error(&self) -> Option<f64> {
        self.published.and_then(|published| published.error(self.model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_share_of_every_published_value_agrees() {
        assert_eq!(Published::Exactly(200.0).agreeing(), [150.0, 250.0]);
        assert_eq!(Published::Between(100.0, 200.0).agreeing(), [75.0, 250.0]);
        assert_eq!(Published::Exactly(-4.0).agreeing(), [-5.0, -3.0]);
        assert_eq!(agreeing_with_deviation(100.0, 3.0), [94.0, 106.0]);
    }

    #[test]
    fn errors_are_shares_of_the_nearer_end() {
        assert_eq!(Published::Exactly(200.0).error(150.0), Some(-0.25));
        let range = Published::Between(128.0, 160.0);
        assert_eq!([96.0, 130.0, 240.0].map(|at| range.error(at)), [-0.25, 0.0, 0.5].map(Some));
        assert_eq!(Published::Exactly(0.0).error(1.0), None);
        assert_eq!(Published::Exactly(0.0).error(0.0), Some(0.0));
    }
}
