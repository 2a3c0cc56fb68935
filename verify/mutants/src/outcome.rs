//! The outcomes of mutants, and their summary.

use std::fmt;

use serde::Serialize;

use crate::catalogue::{Expectation, Mutant};

/// The outcome of a mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    /// A suite failed.
    Noticed {
        /// The suite.
        by: String,
        /// `true` if it had to be killed.
        hung: bool,
    },
    /// All of its suites passed.
    Survived,
    /// The catalogue argues that no execution can distinguish it from the original.
    Equivalent,
    /// Its text does not occur in its file exactly once: it must be updated.
    DoesNotApply {
        /// Number of occurrences of the text.
        times: usize,
    },
    /// Nothing was tried, because the compiler rejects it.
    DoesNotBuild {
        /// The output of the compiler.
        output: String,
    },
    /// A suite ran no test: the catalogue names tests that do not exist.
    RunsNothing {
        /// The suite.
        suite: String,
    },
    /// The suite that noticed it fails without it too.
    FailsWithout {
        /// The suite.
        suite: String,
    },
}

impl Outcome {
    /// Returns `true` if this is the outcome that the catalogue requires.
    pub fn is_expected(&self, mutant: &Mutant) -> bool {
        matches!(
            (self, &mutant.expectation),
            (Outcome::Noticed { .. }, Expectation::Noticed(_))
                | (Outcome::Equivalent, Expectation::Equivalent(_))
                | (Outcome::Survived, Expectation::Survives(_))
        )
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Noticed { by, hung: false } => write!(f, "noticed by {by}"),
            Outcome::Noticed { by, hung: true } => write!(f, "noticed by {by}, which hung"),
            Outcome::Survived => f.write_str("survived"),
            Outcome::Equivalent => f.write_str("equivalent"),
            Outcome::DoesNotApply { times } => {
                write!(f, "does not apply: its text is there {times} times, not once")
            }
            Outcome::DoesNotBuild { output } => write!(f, "does not build:\n{output}"),
            Outcome::RunsNothing { suite } => write!(f, "{suite} runs no test"),
            Outcome::FailsWithout { suite } => {
                write!(f, "{suite} fails without it too")
            }
        }
    }
}

/// A mutant that was tried.
#[derive(Debug, Clone, Serialize)]
pub struct Tried {
    /// Its file in the catalogue.
    pub room: String,
    /// Its name.
    pub name: String,
    /// The file that it changes.
    pub file: String,
    /// The consequence of the change.
    pub breaks: String,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// `true` if that is the outcome that the catalogue requires.
    pub expected: bool,
    /// The duration in seconds, builds included.
    pub seconds: f64,
}

impl Tried {
    /// Combines a mutant and its outcome.
    pub fn new(mutant: &Mutant, outcome: Outcome, seconds: f64) -> Tried {
        Tried {
            room: mutant.room.clone(),
            name: mutant.name.clone(),
            file: mutant.file.clone(),
            breaks: mutant.breaks.clone(),
            expected: outcome.is_expected(mutant),
            outcome,
            seconds,
        }
    }

    /// Returns `true` if it is a negative control of the runner, which changes nothing, and
    /// survived as it must.
    fn is_control(&self) -> bool {
        self.expected && self.outcome == Outcome::Survived
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:6.1} s  {}/{}: {}", self.seconds, self.room, self.name, self.outcome)?;
        match self.expected {
            true if self.is_control() => f.write_str(", as a change of a comment must"),
            true => Ok(()),
            false => write!(f, "\n          UNEXPECTED. What it breaks: {}", self.breaks),
        }
    }
}

/// The counts of all outcomes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Number of mutants that were tried, without the negative controls.
    pub mutants: usize,
    /// Number of mutants that a suite noticed.
    pub noticed: usize,
    /// Number of mutants that are equivalent by argument.
    pub equivalent: usize,
    /// Number of mutants that no suite noticed.
    pub survived: usize,
    /// Number without a result: they do not apply, do not build, or their suite fails anyway.
    pub broken: usize,
    /// Number of negative controls that survived, as they must.
    pub controls: usize,
    /// Number of mutants that were selected but not tried, because the time was over.
    pub untried: usize,
    /// Number of outcomes that differ from the catalogue.
    pub unexpected: usize,
}

impl Summary {
    /// Counts the outcomes.
    pub fn of(all: &[Tried], untried: usize) -> Summary {
        let mut sum = Summary { untried, ..Summary::default() };
        for tried in all {
            sum.unexpected += usize::from(!tried.expected);
            if tried.is_control() {
                sum.controls += 1;
                continue;
            }
            sum.mutants += 1;
            match tried.outcome {
                Outcome::Noticed { .. } => sum.noticed += 1,
                Outcome::Equivalent => sum.equivalent += 1,
                Outcome::Survived => sum.survived += 1,
                _ => sum.broken += 1,
            }
        }
        sum
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { mutants, noticed, equivalent, survived, broken, controls, untried, .. } =
            self;
        write!(
            f,
            "mutants: {mutants}, {noticed} noticed, {equivalent} equivalent with argument, \
             {survived} survived, {broken} without result; {controls} controls survived"
        )?;
        match untried {
            0 => Ok(()),
            _ => write!(f, "; {untried} not tried, because the time was over"),
        }
    }
}
