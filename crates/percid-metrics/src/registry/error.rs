//! Errors of metrics and labels.

use std::fmt;

use crate::entries::NoMemory;

/// The error that a metric is not registered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name is not a valid metric name.
    BadName(String),
    /// The unit is empty, or has characters other than letters, digits and underscores.
    BadUnit(String),
    /// The name is not a valid label name, or is reserved by the formats.
    BadLabel(String),
    /// Two labels have this name.
    LabelTwice(String),
    /// A limit of a bucket is not finite, or not above the one before it.
    BadLimit {
        /// Its index, from 0.
        index: usize,
        /// The limit, as text.
        limit: String,
    },
    /// The number of limits is above 2047, without infinity.
    TooManyLimits(usize),
    /// A metric has limits of buckets and is no histogram.
    LimitsWithoutHistogram,
    /// A registered metric has this name on the page, or one of this metric's other names.
    NameTaken(String),
    /// There is no memory.
    NoMemory,
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::BadName(name) => write!(
                f,
                "{name:?} is no name of a metric: letters, digits, underscores and colons, no digit first"
            ),
            RegisterError::BadUnit(unit) => {
                write!(f, "{unit:?} is no unit: letters, digits and underscores")
            }
            RegisterError::BadLabel(name) => write!(
                f,
                "{name:?} is no name of a label here: letters, digits and underscores, no digit first, \
                 not __ first, and not le of a histogram"
            ),
            RegisterError::LabelTwice(name) => write!(f, "two labels have the name {name:?}"),
            RegisterError::BadLimit { index, limit } => write!(
                f,
                "limits[{index}] is {limit}: limits of buckets are finite, each above the one before it; \
                 only the last one may be infinity"
            ),
            RegisterError::TooManyLimits(count) => {
                write!(f, "{count} limits of buckets: 2047 at most, and infinity")
            }
            RegisterError::LimitsWithoutHistogram => {
                f.write_str("limits of buckets of a metric that is no histogram")
            }
            RegisterError::NameTaken(name) => {
                write!(f, "a metric with the name {name:?} on the page is registered already")
            }
            RegisterError::NoMemory => NoMemory.fmt(f),
        }
    }
}

impl std::error::Error for RegisterError {}

impl From<LabelError> for RegisterError {
    /// Converts an error for labels of the description: their number is right and they are UTF-8,
    /// so there is no memory.
    fn from(_: LabelError) -> RegisterError {
        RegisterError::NoMemory
    }
}

/// The error that there is no series for labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelError {
    /// The number of values differs from the number of the metric's label names.
    WrongNumber {
        /// Number of label names.
        expected: usize,
        /// Number of given values.
        given: usize,
    },
    /// A value is not UTF-8.
    NotUtf8,
    /// There is no memory for another series.
    NoMemory,
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelError::WrongNumber { expected, given } => {
                write!(f, "{given} values for {expected} labels")
            }
            LabelError::NotUtf8 => f.write_str("the value of a label is not UTF-8"),
            LabelError::NoMemory => NoMemory.fmt(f),
        }
    }
}

impl std::error::Error for LabelError {}

impl From<NoMemory> for LabelError {
    fn from(NoMemory: NoMemory) -> LabelError {
        LabelError::NoMemory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_wrong_and_what_is_right() {
        use RegisterError::{BadLabel, BadLimit, BadName, BadUnit, LabelTwice};
        use RegisterError::{LimitsWithoutHistogram, NameTaken, TooManyLimits};
        let bad = "not as the formats".to_owned();
        for (error, begins) in [
            (BadName(bad.clone()), "\"not as the formats\" is no name of a metric: letters, "),
            (BadUnit(bad.clone()), "\"not as the formats\" is no unit: letters, digits and "),
            (BadLabel(bad.clone()), "\"not as the formats\" is no name of a label here: letters, "),
            (LabelTwice(bad.clone()), "two labels have the name \"not as the formats\""),
            (
                BadLimit { index: 7, limit: "5".to_owned() },
                "limits[7] is 5: limits of buckets are ",
            ),
            (TooManyLimits(2048), "2048 limits of buckets: 2047 at most, and infinity"),
            (LimitsWithoutHistogram, "limits of buckets of a metric that is no histogram"),
            (NameTaken(bad), "a metric with the name \"not as the formats\" on the page is "),
            (RegisterError::NoMemory, "there is no memory"),
            (LabelError::NoMemory.into(), "there is no memory"),
        ] {
            assert!(error.to_string().starts_with(begins), "{error}");
        }
        let wrong = LabelError::WrongNumber { expected: 2, given: 1 };
        assert_eq!(wrong.to_string(), "1 values for 2 labels");
        assert_eq!(LabelError::NotUtf8.to_string(), "the value of a label is not UTF-8");
        assert_eq!(LabelError::NoMemory.to_string(), "there is no memory");
    }
}
