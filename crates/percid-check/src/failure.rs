//! Failures of a check.

use std::fmt;

use percid::Source;

/// The part of a check.
///
/// ```
/// assert_ne!(percid_check::Part::EveryInstruction, percid_check::Part::AtRandom);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// One thread, interrupted at each instruction of its critical sections.
    EveryInstruction,
    /// Many threads, disturbed at random.
    AtRandom,
}

/// A structure that does not account for its operations, and how it was found.
///
/// Its `Debug` is its `Display`, so that a test that returns it prints the text.
///
/// ```
/// # use percid_check::Failure;
/// fn repeat(failure: &Failure) -> String {
///     format!("PERCID_CHECK_SEED={} # {}", failure.seed(), failure.message())
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    pub(crate) source: Source,
    pub(crate) part: Part,
    pub(crate) seed: u64,
    pub(crate) finding: Finding,
}

/// A finding of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The place and the event, as a clause.
    pub(crate) place: String,
    pub(crate) message: String,
}

impl Failure {
    /// Returns the source that the structure used.
    ///
    /// ```
    /// # fn of_table(failure: &percid_check::Failure) -> bool {
    /// failure.source() == percid::Source::Table
    /// # }
    /// ```
    pub fn source(&self) -> Source {
        self.source
    }

    /// Returns the part of the check that found it.
    ///
    /// ```
    /// # fn is_exact(failure: &percid_check::Failure) -> bool {
    /// failure.part() == percid_check::Part::EveryInstruction
    /// # }
    /// ```
    pub fn part(&self) -> Part {
        self.part
    }

    /// Returns the seed. The environment variable `PERCID_CHECK_SEED` repeats it.
    ///
    /// ```
    /// # fn print(failure: &percid_check::Failure) {
    /// println!("PERCID_CHECK_SEED={}", failure.seed());
    /// # }
    /// ```
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the text of [`audit`](crate::Structure::audit), or of the panic.
    ///
    /// ```
    /// # fn print(failure: &percid_check::Failure) {
    /// println!("{}", failure.message());
    /// # }
    /// ```
    pub fn message(&self) -> &str {
        &self.finding.message
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { source, seed, finding: Finding { place, message }, part } = self;
        let part = match part {
            Part::EveryInstruction => "at every instruction",
            Part::AtRandom => "at random",
        };
        write!(f, "source {source}, {part}: {place}: {message}; repeat: PERCID_CHECK_SEED={seed}")
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}
