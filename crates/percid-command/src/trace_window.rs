//! The analysed part of a recording: the same arguments for every subcommand that reads one.

use clap::Args;

/// From when to when
#[derive(Clone, Debug, Default, Args)]
pub struct TimeArguments {
    /// Leave out what happened before this time, in seconds since the first event
    #[arg(long, value_name = "SECONDS", value_parser = moment)]
    pub from: Option<u64>,

    /// Leave out what happened from this time on, in seconds since the first event
    // The argument `to` is the output file of other subcommands.
    #[arg(id = "end", long = "to", value_name = "SECONDS", value_parser = moment)]
    pub to: Option<u64>,
}

/// From when to when, and of which processes
#[derive(Clone, Debug, Default, Args)]
pub struct WindowArguments {
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would become help")]
    pub time: TimeArguments,

    /// Only these processes: numbers or names, separated by commas
    #[arg(long, value_name = "PROCESSES", value_delimiter = ',')]
    pub process: Vec<String>,

    /// All processes, not only those of the command or process that was recorded
    #[arg(long, conflicts_with = "process")]
    pub all: bool,
}

/// The meaning of the window, for manuals.
pub const WINDOW: &str = "\
--from and --to choose a part of the recording, in seconds since its first event (1.25 is
1,250,000,000 ns; a nanosecond is 0.000000001). --process chooses processes by number or name,
separated by commas. For a recording of a command or of a process, only its processes and their
children are shown, unless --all is given. The quality is that of the chosen part, but lost events
always count.";

/// About thirty years: longer than any clock of a recording.
const MAX_SECONDS: f64 = 1e9;

/// Parses a time in seconds. Returns nanoseconds.
fn moment(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=MAX_SECONDS).contains(&seconds) => Ok((seconds * 1e9).round() as u64),
        _ => Err("allowed are 0 to 1000000000 seconds".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_exact_to_the_nanosecond() {
        assert_eq!(moment("0"), Ok(0));
        assert_eq!(moment("1.25"), Ok(1_250_000_000));
        assert_eq!(moment("3599.123456789"), Ok(3_599_123_456_789));
    }

    #[test]
    fn other_texts_are_refused_with_what_is_allowed() {
        for text in ["", "-1", "nan", "inf", "1e99", "5s"] {
            assert!(moment(text).is_err_and(|said| said.contains("0 to 1000000000")), "{text}");
        }
    }
}
