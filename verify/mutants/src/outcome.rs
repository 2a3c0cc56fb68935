//! What became of a mutant, and of all of them.

use std::fmt;

use serde::Serialize;

use crate::catalogue::{Expectation, Mutant};

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    /// A suite failed.
    Noticed {
        /// Which.
        by: String,
        /// Whether it had to be killed.
        hung: bool,
    },
    /// All of its suites passed.
    Survived,
    /// The catalogue has the argument why no execution can tell.
    Equivalent,
    /// Its file does not have its text exactly once: it must be renewed.
    DoesNotApply {
        /// How often the text is there.
        times: usize,
    },
    /// Nothing was tried, because the compiler refuses it.
    DoesNotBuild {
        /// What it says.
        output: String,
    },
    /// The suite that noticed it fails without it too.
    FailsWithout {
        /// Which.
        suite: String,
    },
}

impl Outcome {
    /// Whether this is what the catalogue says.
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
    /// What it breaks.
    pub breaks: String,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Whether that is what the catalogue says.
    pub expected: bool,
    /// How long that took, builds included.
    pub seconds: f64,
}

impl Tried {
    /// A mutant and what became of it.
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

    /// Whether it is a control of the runner, which changes nothing, and survived as it must.
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

/// What became of all that were tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// How many mutants were tried, without the controls.
    pub mutants: usize,
    /// How many a suite noticed.
    pub noticed: usize,
    /// How many are equivalent by argument.
    pub equivalent: usize,
    /// How many no suite noticed.
    pub survived: usize,
    /// How many have no result: they do not apply, do not build, or their suite fails anyway.
    pub broken: usize,
    /// How many controls survived, as they must.
    pub controls: usize,
    /// How many were selected and not tried, because the time was over.
    pub untried: usize,
    /// How many outcomes are not what the catalogue says.
    pub unexpected: usize,
}

impl Summary {
    /// Counts.
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
