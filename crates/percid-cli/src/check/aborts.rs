//! Checks that the kernel aborts critical sections, with counts.

use std::fmt;
use std::time::Duration;

use percid::id::SourceError;
use percid::machine::{self, ProbeCounts, ProbeReport};
use serde::{Serialize, Serializer};

use crate::deadline::{Clock, Deadline};
use crate::judged::PARTIAL;
use percid_command::interrupt::Interrupt;
use percid_command::progress::Progress;
use percid_command::text_table::{Align, TextTable};

/// Duration of one call of the library's probe: signals are blocked during it, so Ctrl-C waits for
/// its end.
const PIECE: Duration = Duration::from_millis(250);

/// Pause after an inconclusive call on a busy machine.
const PAUSE: Duration = Duration::from_millis(10);

/// Outcomes of the critical sections that the kernel had to abort.
#[derive(Debug, Serialize)]
pub(super) struct AbortsReport {
    /// The reason why it could not be tested; `null` if it was.
    #[serde(serialize_with = "as_text")]
    not_tried: Option<SourceError>,
    /// `true` if the time was over before there was a round of each kind.
    #[serde(skip)]
    is_partial: bool,
    kinds: Vec<Kind>,
}

#[derive(Debug, Serialize)]
struct Kind {
    by: &'static str,
    aborted: u64,
    ignored: u64,
    undecided: u64,
}

impl AbortsReport {
    pub(super) fn measure(length: Duration, interrupt: &Interrupt) -> AbortsReport {
        let progress = Progress::new("aborts of critical sections", length);
        let mut report = AbortsReport {
            not_tried: None,
            is_partial: false,
            kinds: kinds(&ProbeReport::default()),
        };
        let deadline = Deadline::new(length, report.kinds.len());
        while report.goes_on(&deadline) && !interrupt.pressed() {
            match machine::probe(PIECE.min(length)) {
                Ok(probe) => report.kinds.iter_mut().zip(kinds(&probe)).for_each(Kind::add),
                // On a busy machine a probe may be inconclusive, and the next one may succeed.
                Err(SourceError::SectionsNotProbed) => std::thread::sleep(PAUSE),
                Err(_) if !report.is_untried() => {}
                Err(why) => return AbortsReport { not_tried: Some(why), ..report },
            }
            let (share, left) = deadline.progress();
            progress.at(share, left);
        }
        if report.is_untried() {
            report.not_tried = Some(SourceError::SectionsNotProbed);
        }
        report
    }

    /// Returns `true` if there is another call. If others use the CPUs, the time may be over before
    /// the first round of a kind.
    fn goes_on<C: Clock>(&mut self, deadline: &Deadline<C>) -> bool {
        let is_missing = self.kinds.iter().any(|kind| kind.decided() == 0);
        self.is_partial = is_missing && deadline.is_overdue();
        if is_missing { !self.is_partial } else { !deadline.is_reached() }
    }

    fn is_untried(&self) -> bool {
        self.kinds.iter().all(|kind| kind.decided() == 0)
    }

    /// Returns its name, if it could be tested and was not. Without rseq in the kernel there are no
    /// critical sections, and nothing has to be checked.
    pub(super) fn not_checked(&self) -> Option<&'static str> {
        let could_be = self.not_tried.is_none_or(|why| {
            matches!(why, SourceError::ProbeRefused(_) | SourceError::SectionsNotProbed)
        });
        (could_be && self.is_untried()).then_some("aborts")
    }

    /// Returns its name, if it was not tested completely.
    pub(super) fn partial(&self) -> Option<&'static str> {
        (self.is_partial && !self.is_untried()).then_some("aborts")
    }

    /// Returns `true` if no abort was ignored. percid does not select a source that needs aborts on
    /// a kernel that ignores them.
    pub(super) fn as_promised(&self) -> bool {
        self.kinds.iter().all(|kind| kind.ignored == 0)
    }
}

fn as_text<S: Serializer>(why: &Option<SourceError>, to: S) -> Result<S::Ok, S::Error> {
    why.map(|why| why.to_string()).serialize(to)
}

fn kinds(probe: &ProbeReport) -> Vec<Kind> {
    let kind = |by, ProbeCounts { aborted, ignored, undecided, .. }: ProbeCounts| Kind {
        by,
        aborted,
        ignored,
        undecided,
    };
    vec![
        kind("fence of all CPUs", probe.fences),
        kind("fence of one CPU", probe.fences_of_one_cpu),
        kind("preemption", probe.preemptions),
    ]
}

impl Kind {
    fn decided(&self) -> u64 {
        self.aborted + self.ignored
    }

    fn add((total, more): (&mut Kind, Kind)) {
        total.aborted += more.aborted;
        total.ignored += more.ignored;
        total.undecided += more.undecided;
    }
}

impl fmt::Display for AbortsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Critical sections that the kernel has to abort")?;
        if let Some(why) = &self.not_tried {
            return writeln!(f, "  not tried: {why}");
        }
        let columns = ["aborted", "IGNORED", "undecided"].map(|heading| (heading, Align::Right));
        let mut table = TextTable::new(std::iter::once(("by", Align::Left)).chain(columns));
        for kind in &self.kinds {
            let figures =
                [kind.aborted, kind.ignored, kind.undecided].map(|count| count.to_string());
            table.row(std::iter::once(kind.by.to_owned()).chain(figures).collect());
        }
        write!(f, "{table}")?;
        self.partial().map_or(Ok(()), |_| writeln!(f, "  {PARTIAL}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::tests::Moved;

    #[test]
    fn one_ignored_abort_is_not_as_promised() {
        let mut report = nothing_yet();
        report.kinds[2].aborted = 1000;
        assert!(report.as_promised());
        report.kinds[2].ignored = 1;
        assert!(!report.as_promised());
    }

    fn nothing_yet() -> AbortsReport {
        AbortsReport { not_tried: None, is_partial: false, kinds: kinds(&ProbeReport::default()) }
    }

    #[test]
    fn kinds_that_are_never_tried_do_not_keep_it_going() {
        let clock = Moved::default();
        let deadline = Deadline::with_clock(&clock, Duration::from_secs(1), 3);
        let mut report = nothing_yet();
        report.kinds[0].aborted = 7;
        // Undecided rounds count as not tested.
        report.kinds[1].undecided = 7;
        clock.set(Duration::from_secs(2));
        assert!(report.goes_on(&deadline) && report.partial().is_none());
        clock.set(Duration::from_secs(5));
        assert!(!report.goes_on(&deadline));
        assert_eq!(report.partial(), Some("aborts"));
        assert!(report.to_string().contains("partial"), "{report}");
    }

    #[test]
    fn what_could_be_tried_and_was_not_is_not_checked() {
        let mut report = nothing_yet();
        assert_eq!(report.not_checked(), Some("aborts"));
        report.not_tried = Some(SourceError::ProbeRefused(libc::EAGAIN));
        assert_eq!(report.not_checked(), Some("aborts"));
        report.not_tried = Some(SourceError::NoMembarrier);
        assert_eq!(report.not_checked(), None, "there is nothing to check");
        report.not_tried = None;
        report.kinds[0].aborted = 1;
        assert_eq!(report.not_checked(), None);
    }

    #[test]
    fn what_was_tried_ends_with_the_time() {
        let clock = Moved::default();
        let deadline = Deadline::with_clock(&clock, Duration::from_secs(1), 3);
        let mut report = nothing_yet();
        report.kinds.iter_mut().for_each(|kind| kind.aborted = 1);
        assert!(report.goes_on(&deadline));
        clock.set(Duration::from_secs(1));
        assert!(!report.goes_on(&deadline) && report.partial().is_none());
    }
}
