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
    /// It has not been published.
    Forecast,
}

impl Kind {
    /// Returns the name for tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Fitted => "fitted",
            Kind::Published => "published",
            Kind::Forecast => "forecast",
        }
    }
}

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
    /// Returns the difference of a value from this one, as a share of the nearer end; 0 inside a
    /// range. Returns `None` if the nearer end is 0 and the value is not.
    pub fn error(self, figure: f64) -> Option<f64> {
        let (least, most) = match self {
            Published::Exactly(one) => (one, one),
            Published::Between(least, most) => (least, most),
        };
        let nearest = figure.clamp(least, most);
        match figure == nearest {
            true => Some(0.0),
            false => Some((figure - nearest) / nearest.abs()).filter(|error| error.is_finite()),
        }
    }
}

/// The values that are accepted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepted {
    /// A range of values, in the unit of the prediction.
    Within(f64, f64),
    /// Any value, with the reason: values that do not fit are printed, too.
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
    /// The value that was published, or forecast by other means; `None` if there is only the model.
    pub published: Option<Published>,
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
    fn errors_are_shares_of_the_nearer_end() {
        assert_eq!(Published::Exactly(200.0).error(150.0), Some(-0.25));
        let range = Published::Between(128.0, 160.0);
        assert_eq!([96.0, 130.0, 240.0].map(|at| range.error(at)), [-0.25, 0.0, 0.5].map(Some));
        assert_eq!(Published::Exactly(0.0).error(1.0), None);
        assert_eq!(Published::Exactly(0.0).error(0.0), Some(0.0));
    }
}
