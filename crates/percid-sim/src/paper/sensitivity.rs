//! The effect of each number of the model on the errors of the table. It shows which numbers the
//! table determines.

use serde::Serialize;

use super::findings::Findings;
use super::setting::Setting;
use super::table::{published_ns, table};
use crate::machine::Parameter;
use crate::run_control::RunControl;

/// A number, and its effect on the mean of the cells' absolute errors.
#[derive(Debug, Clone, Serialize)]
pub struct Number {
    /// The number.
    #[serde(flatten)]
    pub parameter: Parameter,
    /// The effect of a change; `None` if the simulation was stopped.
    pub sensitivity: Option<Sensitivity>,
}

/// The effect of a changed number on the mean of the cells' absolute errors. Nothing is fitted
/// again.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sensitivity {
    /// Change of the mean error, as a share, if the number is half as large.
    pub halved: f64,
    /// Change of the mean error, as a share, if the number is twice as large.
    pub doubled: f64,
    /// `true` if no simulated cell depends on the number, to the last digit.
    pub unused: bool,
}

/// The factors by which numbers are changed.
const FACTORS: [f64; 2] = [0.5, 2.0];

/// Returns the number of runs of [`numbers`].
pub fn runs() -> u64 {
    let setting = Setting::published();
    let parameters = setting.parameters();
    let simulated = parameters.iter().filter(|one| !is_price(&setting, one.name)).count();
    Findings::runs() * (1 + (FACTORS.len() * simulated) as u64)
}

/// Returns all numbers of a setting with the effects of changing them. Changed prices are applied
/// to the states that the table's bursts had found. So chance has no influence, and effects below a
/// tenth of a percent are visible; the effect of longer bursts on ticks is left out. Changes of
/// other numbers are simulated.
pub fn numbers(setting: &Setting, seed: u64, progress: &RunControl) -> Vec<Number> {
    let findings = Findings::simulate(setting, seed, progress);
    let number = |parameter: Parameter| {
        let findings = findings.as_ref();
        let name = parameter.name;
        let sensitivity =
            findings.and_then(|base| sensitivity(name, setting, base, seed, progress));
        Number { parameter, sensitivity }
    };
    setting.parameters().into_iter().map(number).collect()
}

/// Returns `true` if the number determines the cost of bursts, and not their times.
fn is_price(setting: &Setting, name: &str) -> bool {
    setting.machine.costs.all().iter().any(|(known, _)| *known == name)
}

fn sensitivity(
    name: &str,
    setting: &Setting,
    base: &Findings,
    seed: u64,
    progress: &RunControl,
) -> Option<Sensitivity> {
    let changed = FACTORS.map(|factor| changed(setting, name, factor));
    let before = mean_error(base, setting);
    let mut changes = [0.0; FACTORS.len()];
    for (change, setting) in changes.iter_mut().zip(&changed) {
        let after = match is_price(setting, name) {
            true => mean_error(base, setting),
            false => mean_error(&Findings::simulate(setting, seed, progress)?, setting),
        };
        *change = after - before;
    }
    let [halved, doubled] = changes;
    let unused = changes == [0.0; FACTORS.len()]
        && changed.iter().all(|changed| is_the_same(setting, changed, seed));
    Some(Sensitivity { halved, doubled, unused })
}

fn changed(setting: &Setting, name: &str, factor: f64) -> Setting {
    let mut changed = setting.clone();
    *changed.number_mut(name).expect("one of its parameters") *= factor;
    changed
}

fn mean_error(findings: &Findings, setting: &Setting) -> f64 {
    let published = published_ns();
    let cells: Vec<usize> = (0..published.len()).collect();
    let costs = findings.costs(setting, &cells).into_iter().zip(&published);
    costs.map(|(cost, published)| (cost / published - 1.0).abs()).sum::<f64>()
        / published.len() as f64
}

/// Returns `true` if one run of each cell gives the same outcome to the last digit.
fn is_the_same(one: &Setting, other: &Setting, seed: u64) -> bool {
    table(one, 1, seed) == table(other, 1, seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_table_feels_is_told_from_what_it_does_not() {
        let setting = Setting::published();
        let progress = RunControl::default();
        let base = Findings::simulate(&setting, 1, &progress).expect("nobody stops it");
        let of = |name| sensitivity(name, &setting, &base, 1, &progress).expect("nobody stops it");
        let [fence, share, l3, overlap] =
            ["fence_running_ns", "zero_page_share", "same_l3_ns", "overlap"].map(of);
        assert!(fence.unused && share.unused, "{fence:?} {share:?}");
        assert!(!l3.unused && !overlap.unused);
        assert!(l3.halved.abs() < 0.005 && l3.doubled.abs() < 0.005, "{l3:?}");
        assert!(overlap.halved > 0.01, "{overlap:?}");
    }
}
