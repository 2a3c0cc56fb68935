//! The work that a check has done.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use percid::Source;
use percid::id::SourceError;

/// Defines the numbers of a report, and the same numbers while threads count.
macro_rules! counts {
    ($($(#[$text:meta])* $name:ident)*) => {
        /// The work that a check has done with one source.
        ///
        /// ```
        /// assert_eq!(percid_check::Work::default().operations, 0);
        /// ```
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Work {
            $($(#[$text])* pub $name: u64,)*
        }

        /// The numbers of [`Work`] while threads count.
        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Counts {
            pub(crate) fn work(&self) -> Work {
                Work { $($name: self.$name.load(Relaxed),)* }
            }
        }

        impl fmt::Display for Work {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let all = [$((stringify!($name), self.$name),)*];
                for (index, (name, number)) in all.into_iter().enumerate() {
                    let gap = if index == 0 { "" } else { ", " };
                    write!(f, "{gap}{number} {}", name.replace('_', " "))?;
                }
                Ok(())
            }
        }
    };
}

counts! {
    /// Critical sections that operations reached.
    sections
    /// Their instructions at which operations were interrupted, each in every way.
    instructions
    /// Their other instructions: no operation of the check ran into them.
    unreached_instructions
    /// Interruptions at an instruction.
    interruptions
    /// Sections that the kernel has aborted at an interruption.
    aborts
    /// Operations, without those in signal handlers.
    operations
    /// Visits.
    visits
    /// IDs that were stolen from a CPU.
    steals
    /// IDs that were evicted from a CPU.
    evictions
    /// Threads that were moved to another CPU.
    moves
    /// Fences of a CPU.
    fences
    /// Compactions of the table of IDs.
    compactions
    /// Signals whose handler operated.
    signals
    /// Child processes that operated, visited and audited.
    forks
}

pub(crate) fn count(number: &AtomicU64) {
    number.fetch_add(1, Relaxed);
}

/// A check with one source.
///
/// ```
/// # use percid_check::SourceReport;
/// fn print(report: &SourceReport) {
///     println!("{}: {}", report.source, report.work);
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceReport {
    /// The source.
    pub source: Source,
    /// The work.
    pub work: Work,
    /// The reason why no instruction was interrupted; `None` if some were.
    pub no_instructions: Option<String>,
}

/// A check that found nothing wrong, and what it has done.
///
/// ```
/// # use percid_check::Report;
/// fn print(report: &Report) {
///     for of_source in &report.sources {
///         println!("{}: {} operations", of_source.source, of_source.work.operations);
///     }
///     println!("{report}"); // all of it
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The sources that were checked.
    pub sources: Vec<SourceReport>,
    /// The sources that could not be checked, and why.
    pub unavailable: Vec<(Source, SourceError)>,
}

impl Report {
    /// Returns the work with a source; `None` if it was not checked.
    ///
    /// ```
    /// # fn of_table(report: &percid_check::Report) -> u64 {
    /// report.work(percid::Source::Table).map_or(0, |work| work.instructions)
    /// # }
    /// ```
    pub fn work(&self, source: Source) -> Option<&Work> {
        let of_source = self.sources.iter().find(|report| report.source == source);
        of_source.map(|report| &report.work)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}", self.seed)?;
        for SourceReport { source, work, no_instructions } in &self.sources {
            write!(f, "\n{source}: {work}")?;
            if let Some(why) = no_instructions {
                write!(f, "; no instruction was interrupted: {why}")?;
            }
        }
        for (source, why) in &self.unavailable {
            write!(f, "\n{source} is not checked: {why}")?;
        }
        Ok(())
    }
}
