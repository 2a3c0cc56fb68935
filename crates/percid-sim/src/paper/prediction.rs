//! A figure of the model that can be checked, and what it is checked against.

use serde::Serialize;

/// Where a figure of the model stands to what was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Numbers of the model were chosen so that this published figure comes out.
    Fitted,
    /// It was published, and nothing was fitted to it.
    Published,
    /// Nobody has published it.
    Forecast,
}

impl Kind {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Fitted => "fitted",
            Kind::Published => "published",
            Kind::Forecast => "forecast",
        }
    }
}

/// A published figure. In JSON a number, or its two ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Published {
    /// One number.
    Exactly(f64),
    /// From one number to another.
    Between(f64, f64),
}

impl Published {
    /// How far a figure is from this one, as a share of the nearer end; 0 inside a range. None if
    /// the nearer end is 0 and the figure is not.
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

/// Which figures are accepted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepted {
    /// From one figure to another, in the unit of the prediction.
    Within(f64, f64),
    /// All, and why: also what does not fit is printed.
    NoBound(String),
}

/// A row of `percid sim paper predictions`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// What the figure is, without its unit.
    pub what: String,
    /// The commit, the publication or the reasoning that it is checked against.
    pub source: String,
    /// The unit of all figures; empty for plain counts.
    pub unit: &'static str,
    /// What the model says.
    pub model: f64,
    /// What was published, or forecast by other means; none if the model stands alone.
    pub published: Option<Published>,
    /// How the two stand to each other.
    pub kind: Kind,
    /// Which figures of the model are accepted.
    pub bound: Accepted,
}

impl Prediction {
    /// How far the model is from what was published, as a share of it; see [`Published::error`].
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
