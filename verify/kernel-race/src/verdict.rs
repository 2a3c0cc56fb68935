//! The interpretation of the rounds.

use percid_race_guest::{Ids, Line, Round, Way};

use crate::session::Report;

/// All results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Results {
    /// Rounds with help and their controls, by kernel and kind.
    pub rows: Vec<Row>,
    /// Rounds without help.
    pub unaided: Vec<Unaided>,
    /// Number of rounds that were possible, but had no outcome after all tries.
    pub missing: usize,
}

/// The conclusion from all results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// Every row is good.
    Good,
    /// A row is bad.
    Bad,
    /// Something is missing.
    NoResult,
}

impl Results {
    /// Adds what came of the rounds on a kernel.
    pub fn add(&mut self, release: &str, reports: &[Report]) {
        for report in reports {
            match report.round.way {
                Way::Unaided(_) => self.unaided.extend(Unaided::new(release, report)),
                _ => self.row(release, report.round).count(report),
            }
        }
    }

    /// Returns the row of a kind; kinds are in the order in which they came.
    fn row(&mut self, release: &str, kind: Round) -> &mut Row {
        let is_its = |row: &Row| row.release == release && row.kind == kind;
        let at = self.rows.iter().position(is_its).unwrap_or_else(|| {
            self.rows.push(Row::new(release, kind));
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }

    /// Returns the conclusion.
    pub fn conclusion(&self) -> Conclusion {
        if self.missing > 0 || self.rows.is_empty() && self.unaided.is_empty() {
            return Conclusion::NoResult;
        }
        let good = self.rows.iter().all(|row| row.verdict().is_good());
        let good = good && self.unaided.iter().all(Unaided::is_good);
        if good { Conclusion::Good } else { Conclusion::Bad }
    }
}

/// A round without help. That nothing happened in it proves nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unaided {
    /// The kernel's release.
    pub release: String,
    /// The IDs that percid used.
    pub ids: Ids,
    /// The duration.
    pub seconds: u64,
    /// Number of migrations during which another thread was started on the source CPU.
    pub attempts: u64,
    /// Number of times that a thread was made to change its CPU.
    pub migrations: u64,
    /// Number of attempts after which two running threads had one `mm_cid`.
    pub doubled: u64,
    /// Number of increments made.
    pub added: i64,
    /// Number of increments that are missing or extra.
    pub lost: u64,
}

impl Unaided {
    fn new(release: &str, report: &Report) -> Option<Self> {
        let outcome = report.outcome.as_ref().ok()?;
        let Some(&Line::Progress { attempts, doubled, migrations, seconds }) =
            report.progress.as_ref()
        else {
            return None;
        };
        Some(Self {
            release: release.to_owned(),
            ids: report.round.ids,
            seconds,
            attempts,
            migrations,
            doubled,
            added: outcome.added,
            lost: outcome.added.abs_diff(outcome.kept),
        })
    }

    /// Returns `true` if it is good: the losses with the kernel's IDs are only measured; with
    /// others there must be none.
    pub fn is_good(&self) -> bool {
        self.ids == Ids::Kernel || self.lost == 0
    }
}

/// All rounds of one kind on one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The kernel's release.
    pub release: String,
    /// The way, the IDs, and whether it is the negative control.
    pub kind: Round,
    /// The sources that percid used.
    pub sources: Vec<String>,
    /// Number of rounds with an outcome.
    pub runs: u32,
    /// The reasons of rounds without an outcome.
    pub failures: Vec<String>,
    /// Rounds in which a CPU was caught at the place.
    pub caught: u32,
    /// Rounds in which two running threads were seen with one `mm_cid`.
    pub doubled_runs: u32,
    /// Looks at running threads.
    pub samples: u64,
    /// Those in which two had one `mm_cid`.
    pub doubled: u64,
    /// Increments made.
    pub added: i64,
    /// Increments that are missing, or too many, over all runs.
    pub lost: u64,
    /// Rounds in which increments were lost.
    pub losing_runs: u32,
}

/// The verdict on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Good.
    Good(&'static str),
    /// Bad.
    Bad(&'static str),
}

impl Verdict {
    /// Returns `true` if the verdict is good.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Good(_))
    }

    /// Returns the verdict in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Good(text) | Self::Bad(text) => text,
        }
    }
}

impl Row {
    fn new(release: &str, kind: Round) -> Self {
        Self {
            release: release.to_owned(),
            kind,
            sources: Vec::new(),
            runs: 0,
            failures: Vec::new(),
            caught: 0,
            doubled_runs: 0,
            samples: 0,
            doubled: 0,
            added: 0,
            lost: 0,
            losing_runs: 0,
        }
    }

    fn count(&mut self, report: &Report) {
        let outcome = match &report.outcome {
            Ok(outcome) => outcome,
            Err(why) => return self.failures.push(why.clone()),
        };
        self.runs += 1;
        self.caught += u32::from(report.caught.is_some());
        self.doubled_runs += u32::from(outcome.doubled > 0);
        self.samples += outcome.samples;
        self.doubled += outcome.doubled;
        self.added += outcome.added;
        self.lost += outcome.added.abs_diff(outcome.kept);
        self.losing_runs += u32::from(outcome.added != outcome.kept);
        if !report.source.is_empty() && !self.sources.contains(&report.source) {
            self.sources.push(report.source.clone());
        }
    }

    /// Returns the verdict.
    pub fn verdict(&self) -> Verdict {
        let by_kernel = self.kind.ids == Ids::Kernel;
        match (self.kind.control, by_kernel) {
            _ if self.runs == 0 || self.added == 0 => Verdict::Bad("no result"),
            (true, _) if self.doubled > 0 => Verdict::Bad("duplicates without the treatment"),
            (true, _) if self.lost > 0 => Verdict::Bad("increments lost without the treatment"),
            (true, _) => Verdict::Good("nothing happens"),
            (false, true) if self.doubled > 0 && self.lost > 0 => {
                Verdict::Good("shown: the kernel's IDs lose increments")
            }
            (false, true) => Verdict::Bad("not shown"),
            (false, false) if self.lost > 0 => Verdict::Bad("increments lost"),
            // A treatment that does not reach the race proves nothing.
            (false, false) if self.doubled == 0 => {
                Verdict::Bad("no duplicate, so nothing is proved")
            }
            (false, false) => Verdict::Good("duplicates, and nothing is lost"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use percid_race_guest::Outcome;

    fn report(ids: Ids, control: bool, doubled: u64, added: i64, kept: i64) -> Report {
        Report {
            round: Round { way: Way::Held, ids, control },
            source: format!("{ids}"),
            caught: (!control).then_some((7, 5)),
            outcome: Ok(Outcome { samples: 10, doubled, added, kept }),
            progress: None,
            notes: Vec::new(),
        }
    }

    fn row(reports: &[Report]) -> Row {
        let mut results = Results::default();
        results.add("6.18", reports);
        assert_eq!(results.rows.len(), 1);
        results.rows.remove(0)
    }

    #[test]
    fn runs_of_one_kind_are_added_up() {
        let mut failed = report(Ids::Kernel, false, 0, 0, 0);
        failed.outcome = Err("nobody came".into());
        let row = row(&[
            report(Ids::Kernel, false, 4, 1000, 900),
            report(Ids::Kernel, false, 0, 1000, 1000),
            // Too many is as wrong as too few, and neither makes good for the other.
            report(Ids::Kernel, false, 1, 1000, 1007),
            failed,
        ]);
        assert_eq!((row.runs, row.caught, row.doubled_runs, row.losing_runs), (3, 3, 2, 2));
        assert_eq!((row.samples, row.doubled, row.added, row.lost), (30, 5, 3000, 107));
        assert_eq!(row.failures, ["nobody came"]);
        assert_eq!(row.sources, ["kernel"]);
    }

    #[test]
    fn kinds_and_kernels_are_kept_apart() {
        let mut results = Results::default();
        let reports = [report(Ids::Kernel, false, 1, 2, 1), report(Ids::Table, false, 1, 2, 2)];
        results.add("6.12", &reports);
        results.add("6.18", &reports);
        assert_eq!(results.conclusion(), Conclusion::Good);
        results.add("6.12", &[report(Ids::Table, true, 0, 2, 2)]);
        assert_eq!(results.rows.len(), 5);
        results.add("6.12", &reports);
        assert_eq!(results.rows.len(), 5);
    }

    #[test]
    fn one_bad_row_is_bad_and_one_missing_round_is_no_result() {
        assert_eq!(Results::default().conclusion(), Conclusion::NoResult);
        let mut results = Results::default();
        results.add("6.12", &[report(Ids::Table, false, 1, 2, 2)]);
        results.add("6.18", &[report(Ids::Table, false, 1, 2, 1)]);
        assert_eq!(results.conclusion(), Conclusion::Bad);
        results.missing = 1;
        assert_eq!(results.conclusion(), Conclusion::NoResult);
    }

    #[test]
    fn without_help_only_the_others_must_lose_nothing() {
        let unaided = |ids, kept| {
            let mut report = report(ids, false, 0, 1000, kept);
            report.round.way = Way::Unaided(60);
            report.progress =
                Some(Line::Progress { attempts: 5, doubled: 1, migrations: 30, seconds: 60 });
            let mut results = Results::default();
            results.add("6.18", &[report]);
            assert_eq!((results.rows.len(), results.unaided[0].attempts), (0, 5));
            results.conclusion()
        };
        assert_eq!(unaided(Ids::Kernel, 990), Conclusion::Good);
        assert_eq!(unaided(Ids::Table, 1000), Conclusion::Good);
        assert_eq!(unaided(Ids::Table, 990), Conclusion::Bad);
    }

    #[test]
    fn the_kernels_ids_must_lose_and_the_others_must_not() {
        let good = |ids, control, doubled, kept| {
            row(&[report(ids, control, doubled, 1000, kept)]).verdict().is_good()
        };
        assert!(good(Ids::Kernel, false, 5, 900));
        assert!(
            !good(Ids::Kernel, false, 5, 1000),
            "a duplicate that costs nothing shows too little"
        );
        assert!(!good(Ids::Kernel, false, 0, 1000));
        for ids in [Ids::Table, Ids::Chosen] {
            assert!(good(ids, false, 5, 1000));
            assert!(!good(ids, false, 5, 999));
            assert!(!good(ids, false, 0, 1000), "without a duplicate it proves nothing");
        }
        for ids in Ids::ALL {
            assert!(good(ids, true, 0, 1000));
            assert!(!good(ids, true, 1, 1000));
            assert!(!good(ids, true, 0, 999));
        }
    }

    #[test]
    fn nothing_is_no_result() {
        let mut failed = report(Ids::Table, true, 0, 0, 0);
        assert!(!row(std::slice::from_ref(&failed)).verdict().is_good(), "nothing was added");
        failed.outcome = Err("why".into());
        assert!(!row(&[failed]).verdict().is_good());
    }
}
