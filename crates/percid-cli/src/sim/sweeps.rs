//! The swept parameters of a comparison, and its number of runs.

use std::collections::BTreeSet;
use std::fmt;

use percid_command::exit::Failure;
use percid_sim::comparison::MAX_RUNS;

use crate::cli::Setting;

/// Names of parameters with the values of each.
pub(super) type Sweeps = Vec<(String, Vec<f64>)>;

/// Sets each parameter to its first value by `set`. Returns those with several values.
pub(super) fn sweeps<E: fmt::Display>(
    settings: &[Setting],
    mut set: impl FnMut(&str, f64) -> Result<(), E>,
) -> Result<Sweeps, Failure> {
    let mut sweeps = Sweeps::new();
    let mut seen = BTreeSet::new();
    for Setting { name, values } in settings {
        let fault = |fault: &dyn fmt::Display| Failure::Usage(format!("--set {name}: {fault}"));
        set(name, values[0]).map_err(|expected| fault(&expected))?;
        if !seen.insert(name) {
            return Err(fault(&"expected once, with all its values"));
        }
        if values.len() > 1 {
            sweeps.push((name.clone(), values.clone()));
        }
    }
    Ok(sweeps)
}

/// Checks the number of runs: all combinations for each of `policies` with each of `seeds`.
pub(super) fn check_runs(sweeps: &Sweeps, policies: usize, seeds: u64) -> Result<(), Failure> {
    let each = policies as u128 * u128::from(seeds);
    let lengths = sweeps.iter().map(|(_, values)| values.len() as u128);
    let runs = lengths.fold(each, u128::saturating_mul);
    if runs > u128::from(MAX_RUNS) {
        let message = format!("expected at most {MAX_RUNS} runs in all, found {runs}");
        return Err(Failure::Usage(message));
    }
    Ok(())
}
