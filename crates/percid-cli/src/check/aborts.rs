//! Whether the kernel aborts critical sections, with counts.

use std::fmt;
use std::time::{Duration, Instant};

use percid::machine::{self, Aborts, Probe};
use serde::Serialize;

use percid_command::interrupt::Interrupt;
use percid_command::progress::Progress;
use percid_command::text_table::{Align, TextTable};

/// One call of the library's probe: signals are blocked meanwhile, so Ctrl-C waits for its end.
const PIECE: Duration = Duration::from_millis(250);

/// What the kernel did with sections that it had to abort.
#[derive(Debug, Serialize)]
pub(super) struct AbortsReport {
    /// Why it could not be tried; `null` if it was.
    not_tried: Option<String>,
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
    pub(super) fn of(length: Duration, interrupt: &Interrupt) -> AbortsReport {
        let began = Instant::now();
        let progress = Progress::new("aborts of critical sections", length);
        let mut kinds = kinds(&Probe::default());
        while kinds.iter().all(|kind| kind.rounds() == 0) || began.elapsed() < length {
            if interrupt.pressed() {
                break;
            }
            match machine::probe(PIECE.min(length)) {
                Ok(probe) => kinds.iter_mut().zip(self::kinds(&probe)).for_each(Kind::add),
                Err(why) => return AbortsReport { not_tried: Some(why.to_string()), kinds },
            }
            let elapsed = began.elapsed();
            progress.at(elapsed.div_duration_f64(length), length.saturating_sub(elapsed));
        }
        AbortsReport { not_tried: None, kinds }
    }

    /// percid trusts no kernel that ignores an abort, so a source that needs them is not chosen
    /// there; but a kernel that does is worth an error.
    pub(super) fn as_promised(&self) -> bool {
        self.kinds.iter().all(|kind| kind.ignored == 0)
    }
}

fn kinds(probe: &Probe) -> Vec<Kind> {
    let kind = |by, Aborts { aborted, ignored, undecided, .. }: Aborts| Kind {
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
    fn rounds(&self) -> u64 {
        self.aborted + self.ignored + self.undecided
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
        write!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_ignored_abort_is_not_as_promised() {
        let mut report = AbortsReport { not_tried: None, kinds: kinds(&Probe::default()) };
        report.kinds[2].aborted = 1000;
        assert!(report.as_promised());
        report.kinds[2].ignored = 1;
        assert!(!report.as_promised());
    }
}
