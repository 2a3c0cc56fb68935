//! Values of arguments that several commands take.

use std::time::Duration;

use percid_sim::policies::{self, Entry, releases};

/// One name behind `--policy`.
#[derive(Clone, Copy, Debug)]
pub enum PolicyChoice {
    /// All policies.
    All,
    /// This one.
    One(&'static Entry),
}

/// A policy's name, a kernel's release that has one, or `all`.
///
/// # Errors
///
/// What is allowed.
pub fn policy(name: &str) -> Result<PolicyChoice, String> {
    if name == "all" {
        return Ok(PolicyChoice::All);
    }
    releases::named(name).map(PolicyChoice::One)
}

/// The chosen policies, each once, in their order.
pub fn chosen(choices: &[PolicyChoice]) -> Vec<&'static Entry> {
    let mut chosen: Vec<&'static Entry> = Vec::new();
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

/// A length of time in seconds.
///
/// # Errors
///
/// What is allowed.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("allowed are 0.1 to 3600 seconds".to_owned()),
    }
}

/// A whole number from `MIN` to `MAX`.
///
/// # Errors
///
/// What is allowed.
pub fn whole<const MIN: u64, const MAX: u64>(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if (MIN..=MAX).contains(&number) => Ok(number),
        _ => Err(format!("allowed are whole numbers from {MIN} to {MAX}")),
    }
}
