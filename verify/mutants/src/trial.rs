//! Trying a mutant.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use crate::catalogue::{Expectation, Mutant};
use crate::outcome::Outcome;
use crate::process::{self, Ending};
use crate::suite::Suite;
use crate::tree::Tree;

/// Time limit of a build: the first one builds all dependencies.
const BUILD_LIMIT: Duration = Duration::from_secs(900);
/// Time limit of a suite.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Tries one mutant: applies it, runs its suites in order until one fails, and restores the file.
///
/// # Errors
///
/// Returns an error if the tree cannot be changed, or a command cannot be started.
pub fn try_mutant(tree: &Tree, mutant: &Mutant) -> io::Result<Outcome> {
    let change = (mutant.file.as_str(), mutant.before.as_str(), mutant.after.as_str());
    let tried = tree.with(change, || match &mutant.expectation {
        Expectation::Equivalent(_) => Ok(Outcome::Equivalent),
        Expectation::Noticed(suites) | Expectation::Survives(suites) => first_failure(tree, suites),
    })?;
    Ok(tried.unwrap_or_else(|times| Outcome::DoesNotApply { times }))
}

fn first_failure(tree: &Tree, suites: &[Suite]) -> io::Result<Outcome> {
    for suite in suites {
        let built = process::run(tree, &suite.build(), BUILD_LIMIT)?;
        if built.ending != Ending::Passed {
            return Ok(Outcome::DoesNotBuild { output: built.output });
        }
        let ran = process::run(tree, &suite.run(), RUN_LIMIT)?;
        // Some suites build more themselves.
        if ran.output.contains("error: could not compile") {
            return Ok(Outcome::DoesNotBuild { output: ran.output });
        }
        if ran.ending != Ending::Passed {
            return Ok(Outcome::Noticed {
                by: suite.to_string(),
                hung: ran.ending == Ending::Hung,
            });
        }
        if suite.names_tests() && tests_passed(&ran.output) == 0 {
            return Ok(Outcome::RunsNothing { suite: suite.to_string() });
        }
    }
    Ok(Outcome::Survived)
}

/// Returns the number of tests that passed, by the summaries in the output of `cargo test`.
fn tests_passed(output: &str) -> u64 {
    let counts = output.lines().filter_map(|line| {
        let (_, counts) = line.split_once("test result: ok. ")?;
        counts.split_once(" passed")?.0.parse::<u64>().ok()
    });
    counts.sum()
}

/// Returns which of these suites fail although there is no mutant in the tree.
///
/// # Errors
///
/// Returns the same errors as [`try_mutant`].
pub fn fail_without(tree: &Tree, suites: &BTreeSet<String>) -> io::Result<BTreeSet<String>> {
    let mut failed = BTreeSet::new();
    for name in suites {
        let suite = Suite::parse(name).map_err(io::Error::other)?;
        if first_failure(tree, &[suite])? != Outcome::Survived {
            failed.insert(name.clone());
        }
    }
    Ok(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_are_filtered_out_are_none() {
        let none = "test result: ok. 0 passed; 0 failed; 3 ignored; 0 measured; 96 filtered out";
        assert_eq!(tests_passed(none), 0);
        let two = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 94 filtered out";
        assert_eq!(tests_passed(&format!("{none}\n\n{two}\n")), 2);
    }
}
