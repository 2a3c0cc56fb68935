//! Parsers for arguments that several commands take.

use std::time::Duration;

use clap::ValueEnum;
use percid_sim::policies::{self, PolicySpec, releases};

use crate::module;

/// One name of `--policy`.
#[derive(Clone, Copy, Debug)]
pub enum PolicyChoice {
    /// All policies.
    All,
    /// This one.
    One(&'static PolicySpec),
}

/// Parses a policy's name, a kernel release that has one, the file of a WebAssembly module, or
/// `all`.
///
/// # Errors
///
/// Returns the allowed values.
pub fn policy(name: &str) -> Result<PolicyChoice, String> {
    if name == "all" {
        return Ok(PolicyChoice::All);
    }
    if module::is_module(name) {
        return module::load(name, name).map(|module| PolicyChoice::One(module.policy));
    }
    releases::named(name).map(PolicyChoice::One)
}

/// Returns the chosen policies, each once, in their order.
pub fn chosen(choices: &[PolicyChoice]) -> Vec<&'static PolicySpec> {
    let mut chosen: Vec<&'static PolicySpec> = Vec::new();
    let all = choices.iter().flat_map(|choice| match choice {
        PolicyChoice::All => policies::ALL.iter().collect(),
        PolicyChoice::One(entry) => vec![*entry],
    });
    for entry in all {
        if chosen.iter().all(|known| known.name != entry.name) {
            chosen.push(entry);
        }
    }
    chosen
}

/// Parses a length of time in seconds.
///
/// # Errors
///
/// Returns the allowed values.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("allowed are 0.1 to 3600 seconds".to_owned()),
    }
}

/// Parses a whole number from `MIN` to `MAX`.
///
/// # Errors
///
/// Returns the allowed values.
pub fn whole<const MIN: u64, const MAX: u64>(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if (MIN..=MAX).contains(&number) => Ok(number),
        _ => Err(format!("allowed are whole numbers from {MIN} to {MAX}")),
    }
}

/// Parses a number of bytes from `MIN` to `MAX`: a whole number, optionally followed by K, M, G or
/// T for powers of 1024.
///
/// # Errors
///
/// Returns the allowed values.
pub fn size<const MIN: u64, const MAX: u64>(text: &str) -> Result<u64, String> {
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit =
        units.into_iter().find_map(|(letter, bits)| Some((text.strip_suffix(letter)?, bits)));
    let (digits, bits) = unit.unwrap_or((text, 0));
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << bits));
    match bytes {
        Some(bytes) if (MIN..=MAX).contains(&bytes) => Ok(bytes),
        _ => {
            Err(format!("allowed are sizes from {} to {}, such as 64M", spelled(MIN), spelled(MAX)))
        }
    }
}

/// Formats a size as an argument.
fn spelled(bytes: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let unit = units.into_iter().find(|(bits, _)| bytes != 0 && bytes.trailing_zeros() >= *bits);
    let (bits, letter) = unit.unwrap_or((0, ""));
    format!("{}{letter}", bytes >> bits)
}

/// The ways to record a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendChoice {
    /// The kernel's event buffers
    Tracefs,
    /// Perf events
    Perf,
}

/// Upper bound of the kernel's process IDs.
const MOST_PIDS: u32 = 4_194_304;

/// Parses a process ID.
///
/// # Errors
///
/// Returns the allowed values.
pub fn pid(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(pid) if (1..=MOST_PIDS).contains(&pid) => Ok(pid),
        _ => Err(format!("allowed are whole numbers from 1 to {MOST_PIDS}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_bounds() {
        let size = size::<{ 1 << 10 }, { 1 << 30 }>;
        assert_eq!(size("1024"), Ok(1024));
        assert_eq!(["64M", "1G", "2K"].map(size), [Ok(64 << 20), Ok(1 << 30), Ok(2048)]);
        for wrong in ["", "M", "64m", "64MB", "-1", "1.5M", "1023", "2G", "99999999999T"] {
            let said = size(wrong).expect_err(wrong);
            assert_eq!(said, "allowed are sizes from 1K to 1G, such as 64M");
        }
    }
}
