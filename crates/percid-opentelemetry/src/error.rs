//! Errors, their count, and their handler.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An error of instruments, collections or the export. No error stops the program.
/// [`errors`](crate::PercidMeterProvider::errors) counts them, and the
/// [handler](crate::Builder::with_error_handler) is called with each.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An instrument's name does not conform to the specification. Its values are ignored.
    Name(String),
    /// The unit of the instrument `name` is longer than 63 characters or not ASCII. Its values are
    /// ignored.
    Unit {
        /// The instrument.
        name: String,
        /// The unit.
        unit: String,
    },
    /// The boundaries of the histogram of this name are not finite or not ascending, or there are
    /// more than 2047. Its values are ignored.
    Boundaries(String),
    /// A meter has another instrument of this name already, of another kind, unit or description.
    /// Both are reported.
    Conflict(String),
    /// An instrument has reached its limit of series. Values with other attributes are recorded in
    /// its overflow series.
    Overflow {
        /// The instrument.
        name: String,
        /// Its limit.
        limit: usize,
    },
    /// A callback of the observable instrument of this name has panicked. The values that it
    /// reported before are kept.
    Callback(String),
    /// The receiver could not be reached, or did not answer in time: the error of the last attempt.
    Unreachable(String),
    /// The receiver has refused a collection with this HTTP status.
    Refused {
        /// The status.
        status: u16,
        /// The beginning of the answer, without characters that are not text.
        answer: String,
    },
    /// The receiver has accepted a collection, but reports a number of refused data points, or a
    /// warning.
    PartlyRefused {
        /// The number of data points.
        points: i64,
        /// The receiver's message.
        answer: String,
    },
    /// The receiver's answer is not an OTLP answer.
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

/// Counts errors, and passes them to the handler.
pub(crate) struct Errors {
    count: AtomicU64,
    handler: Handler,
}

impl Errors {
    pub(crate) fn new(handler: Option<Handler>) -> Errors {
        // Not by `eprintln`, which panics if nobody reads standard error.
        let to_standard_error = |error: &Error| {
            let _ = writeln!(io::stderr(), "percid-opentelemetry: {error}");
        };
        let handler = handler.unwrap_or_else(|| Box::new(to_standard_error));
        Errors { count: AtomicU64::new(0), handler }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Counts an error, and calls the handler. The caller must not hold a lock: the handler may use
    /// instruments.
    pub(crate) fn tell(&self, error: &Error) {
        self.count.fetch_add(1, Relaxed);
        (self.handler)(error);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

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

    #[test]
    #[ignore = "the child of a_standard_error_that_nobody_reads_stops_no_program"]
    fn child_prints_an_error() {
        Errors::new(None).tell(&Error::Stopped);
    }

    #[test]
    fn a_standard_error_that_nobody_reads_stops_no_program() {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        child.args(["--ignored", "--exact", "--nocapture", "error::tests::child_prints_an_error"]);
        let status = child.stdout(Stdio::null()).stderr(writer).status().expect("a child");
        assert!(status.success(), "{status}");
    }
}
