//! What goes wrong, how often, and who is told.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What has gone wrong. Nothing of it stops the program: it is counted by
/// [`errors`](crate::PercidMeterProvider::errors) and told to the
/// [handler](crate::Builder::with_error_handler).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An instrument's name is not as the specification wants it; what it records is ignored.
    Name(String),
    /// The unit of the instrument `name` is longer than 63 characters or not ASCII; what it records is
    /// ignored.
    Unit {
        /// The instrument.
        name: String,
        /// The unit.
        unit: String,
    },
    /// The boundaries of the histogram of this name are not finite, not ascending, or more than
    /// 2047; what it records is ignored.
    Boundaries(String),
    /// A meter has another instrument of this name already, of another kind, unit or description. Both
    /// are reported.
    Conflict(String),
    /// An instrument has as many series as it may have. What comes with other attributes is counted in
    /// its overflow series.
    Overflow {
        /// The instrument.
        name: String,
        /// Its limit.
        limit: usize,
    },
    /// A callback of the observable instrument of this name has panicked. What it had reported before
    /// is kept.
    Callback(String),
    /// The receiver could not be reached, or did not answer in time: what the last attempt said.
    Unreachable(String),
    /// The receiver has refused a collection with this status of HTTP.
    Refused {
        /// The status.
        status: u16,
        /// The beginning of what it has answered, as far as that is text.
        answer: String,
    },
    /// The receiver has accepted a collection, and says that it has left out so many data points, or
    /// that something is to be mended.
    PartlyRefused {
        /// The number of data points.
        points: i64,
        /// What it says.
        answer: String,
    },
    /// What the receiver has answered is no answer of OTLP.
    Answer(String),
    /// The exporter's thread has ended, or has not exported in time.
    Stopped,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Name(name) => write!(f, "{name:?} cannot be the name of an instrument"),
            Error::Unit { name, unit } => write!(f, "{unit:?} cannot be the unit of {name}"),
            Error::Boundaries(name) => {
                write!(f, "the boundaries of {name} are not finite and ascending, or too many")
            }
            Error::Conflict(name) => {
                write!(f, "{name} is also an instrument of another kind, unit or description")
            }
            Error::Overflow { name, limit } => {
                write!(f, "{name} has {limit} series, its limit; others are counted together")
            }
            Error::Callback(name) => write!(f, "a callback of {name} has panicked"),
            Error::Unreachable(why) => write!(f, "metrics could not be sent: {why}"),
            Error::Refused { status, answer } => {
                write!(f, "metrics were refused with status {status}: {answer}")
            }
            Error::PartlyRefused { points, answer } => {
                write!(f, "{points} data points were refused: {answer}")
            }
            Error::Answer(why) => write!(f, "the answer to metrics is no OTLP: {why}"),
            Error::Stopped => write!(f, "the exporter has stopped, or not exported in time"),
        }
    }
}

impl std::error::Error for Error {}

pub(crate) type Handler = Box<dyn Fn(&Error) + Send + Sync>;

/// Counts what has gone wrong, and tells it.
pub(crate) struct Errors {
    count: AtomicU64,
    handler: Handler,
}

impl Errors {
    pub(crate) fn new(handler: Option<Handler>) -> Errors {
        let to_standard_error = |error: &Error| eprintln!("percid-opentelemetry: {error}");
        let handler = handler.unwrap_or_else(|| Box::new(to_standard_error));
        Errors { count: AtomicU64::new(0), handler }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// To be called without a lock: the handler may use instruments.
    pub(crate) fn tell(&self, error: &Error) {
        self.count.fetch_add(1, Relaxed);
        (self.handler)(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_has_gone_wrong() {
        let (name, why) = (|| "a".to_owned(), || "why".to_owned());
        for (error, text) in [
            (Error::Name(name()), "\"a\" cannot be the name of an instrument"),
            (Error::Unit { name: name(), unit: "b".to_owned() }, "\"b\" cannot be the unit of a"),
            (
                Error::Boundaries(name()),
                "the boundaries of a are not finite and ascending, or too many",
            ),
            (
                Error::Conflict(name()),
                "a is also an instrument of another kind, unit or description",
            ),
            (
                Error::Overflow { name: name(), limit: 7 },
                "a has 7 series, its limit; others are counted together",
            ),
            (Error::Callback(name()), "a callback of a has panicked"),
            (Error::Unreachable(why()), "metrics could not be sent: why"),
            (
                Error::Refused { status: 400, answer: why() },
                "metrics were refused with status 400: why",
            ),
            (Error::PartlyRefused { points: 3, answer: why() }, "3 data points were refused: why"),
            (Error::Answer(why()), "the answer to metrics is no OTLP: why"),
            (Error::Stopped, "the exporter has stopped, or not exported in time"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
