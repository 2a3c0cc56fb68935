//! Checks that everything that was put into a structure was taken out again or is still in it.

use serde::Serialize;

use super::benchmark::{Benchmark, Subject};
use percid_command::exit::complain;

/// The amount put into one structure, and the amount that it accounts for.
#[derive(Debug, Serialize)]
pub(crate) struct AccountReport {
    op: &'static str,
    source: String,
    pub(crate) added: i64,
    sum: i64,
}

impl AccountReport {
    /// Collects a report for every subject that leaves something behind. Reads each subject once,
    /// when no team works any more, and prints a complaint if the two numbers differ.
    pub(crate) fn all(benchmark: &Benchmark) -> Vec<AccountReport> {
        let reports: Vec<_> = benchmark.subjects.iter().filter_map(AccountReport::of).collect();
        for wrong in reports.iter().filter(|report| !report.is_exact()) {
            complain(format_args!(
                "error: {} of source {} was given {} and accounts for {}",
                wrong.op, wrong.source, wrong.added, wrong.sum
            ));
        }
        reports
    }

    fn of(subject: &Subject) -> Option<Self> {
        let operation = subject.operation;
        let account = operation.measured.account(subject.done)?;
        Some(AccountReport {
            op: operation.name,
            source: operation.source_name(),
            added: account.added,
            sum: account.sum,
        })
    }

    #[cfg(test)]
    pub(crate) fn fixed(added: i64) -> Self {
        AccountReport { op: "structure", source: "none".to_owned(), added, sum: added }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.added == self.sum
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::bench::loops::{Account, Family, Measured, Operation};
    use crate::bench::team::Placement;
    use percid_command::interrupt::Interrupt;

    /// The way in which a structure treats what is put into it.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Conduct {
        Honest,
        LosesOne,
        DoublesOne,
    }

    struct Structure {
        conduct: Conduct,
        kept: AtomicU64,
    }

    impl Measured for Structure {
        fn repeat(&self, times: u64, _: usize) {
            std::thread::sleep(Duration::from_millis(1));
            self.kept.fetch_add(times, Ordering::Relaxed);
        }

        fn account(&self, done: u64) -> Option<Account> {
            let kept = self.kept.load(Ordering::Relaxed) as i64;
            let sum = match self.conduct {
                Conduct::Honest => kept,
                Conduct::LosesOne => kept - 1,
                Conduct::DoublesOne => kept + 1,
            };
            Some(Account { added: done as i64, sum })
        }
    }

    /// Executes one round of two threads with such a structure.
    pub(crate) fn benchmark_of(conduct: Conduct) -> Benchmark {
        let structure = Structure { conduct, kept: AtomicU64::new(0) };
        let measured: &'static Structure = Box::leak(Box::new(structure));
        let operation =
            Operation { family: Family::Counters, name: "structure", source: None, measured };
        let placement = vec![Placement::Anywhere(2)];
        let mut benchmark =
            Benchmark::new(placement, &[0, 1], |_| vec![operation]).expect("a team");
        let interrupt = Interrupt::listen().expect("a socket");
        benchmark.run("test", Duration::ZERO, &interrupt);
        benchmark
    }

    #[test]
    fn one_lost_or_doubled_is_seen() {
        let exact = |conduct| {
            let reports = AccountReport::all(&benchmark_of(conduct));
            assert_eq!(reports.len(), 2, "plain_add and the structure");
            assert!(reports[0].is_exact());
            reports[1].is_exact()
        };
        assert!(exact(Conduct::Honest));
        assert!(!exact(Conduct::LosesOne));
        assert!(!exact(Conduct::DoublesOne));
    }
}
