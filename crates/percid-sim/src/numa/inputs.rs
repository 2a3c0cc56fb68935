//! The inputs of the published NUMA scan, for a walk over all of them.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::experiment::{Experiment, Series, mean};
use super::outcome::REASONS;
use super::setup::Setup;
use super::system::System;
use super::workload::{MIB, Placement};
use crate::paper::walk::{Input, Inputs};
use crate::run_control::RunControl;
use crate::time::MS;

/// The published experiment with its inputs.
#[derive(Debug, Clone)]
pub struct NumaInputs {
    setup: Setup,
    repetitions: u32,
}

/// The choices without a number, which are changed to the other one.
const CHOICES: [&str; 6] =
    ["bound", "place", "adaptation", "hurry_after_move", "go_home", "put_off"];

/// The constants of the scan.
const OF_THE_SCAN: [&str; 5] =
    ["scan_delay_ms", "scan_size_mib", "period_min_ms", "period_max_ms", "max_rate_mib"];

/// Numbers that [`Setup::set`] has no name for.
const OTHERS: [&str; 4] = ["file_regions", "data_regions", "tick_ms", "nodes"];

impl NumaInputs {
    /// Returns the published experiment, repeated so often.
    pub fn published(repetitions: u32) -> NumaInputs {
        NumaInputs { setup: Setup::published(), repetitions }
    }

    fn value(&self, name: &str) -> String {
        let Setup { workload, system, parameters, tiers, scan } = &self.setup;
        let ms = |time: Duration| (1000.0 * time.as_secs_f64()).to_string();
        let yes = |on: bool| if on { "yes" } else { "no" }.to_owned();
        match name {
            "processes" => workload.processes.to_string(),
            "threads" => workload.threads.to_string(),
            "mib" => workload.memory[0].mib.to_string(),
            "rounds" => workload.phases[0].rounds.to_string(),
            "preparation_s" => workload.preparation.seconds.to_string(),
            "cpus" => system.cpus.to_string(),
            "speed_gb_s" => (system.speed / 1e9).to_string(),
            "remote_cost" => system.remote_cost.to_string(),
            "slow_cost" => system.slow_cost.to_string(),
            "cold_after_s" => tiers.cold_after.as_secs_f64().to_string(),
            "hot_threshold_ms" => ms(tiers.hot_threshold),
            "tiers_mib_s" => (tiers.rate / MIB).to_string(),
            "stay_s" => (parameters.stay / (1000 * MS)).to_string(),
            "reluctance" => parameters.reluctance.to_string(),
            "first_period_ms" => (parameters.first_period / MS).to_string(),
            "least_share" => parameters.least_share.to_string(),
            "main_share" => parameters.main_share.to_string(),
            "file_regions" => parameters.file_regions.to_string(),
            "data_regions" => parameters.data_regions.to_string(),
            "tick_ms" => (parameters.tick / MS).to_string(),
            "nodes" => system.nodes().to_string(),
            "scan_delay_ms" => ms(scan.scan_delay),
            "scan_size_mib" => (scan.scan_size / MIB).to_string(),
            "period_min_ms" => ms(scan.period_min),
            "period_max_ms" => ms(scan.period_max),
            "max_rate_mib" => (scan.max_rate / MIB).to_string(),
            "bound" => yes(workload.preparation.bound),
            "place" => "on the home node".to_owned(),
            "adaptation" => yes(parameters.adaptation),
            "hurry_after_move" => yes(parameters.hurry_after_move),
            "go_home" => yes(parameters.go_home),
            _ => yes(parameters.put_off),
        }
    }
}

impl Inputs for NumaInputs {
    fn inputs(&self) -> Vec<Input> {
        let names = Setup::NAMES.into_iter().chain(OTHERS).chain(OF_THE_SCAN).chain(CHOICES);
        let input = |name: &str| Input {
            name: name.to_owned(),
            value: self.value(name),
            origin: String::new(),
        };
        names.map(input).collect()
    }

    fn moved(&self, name: &str, factor: f64) -> Option<NumaInputs> {
        let mut moved = self.clone();
        if CHOICES.contains(&name) {
            (factor > 1.0).then(|| choose_the_other(&mut moved.setup, name))?;
        } else if OF_THE_SCAN.contains(&name) {
            scale_scan(&mut moved.setup, name, factor);
        } else if OTHERS.contains(&name) {
            scale_other(&mut moved.setup, name, factor)?;
        } else {
            let value: f64 = self.value(name).parse().ok()?;
            moved.setup.set(name, value * factor).ok()?;
        }
        (moved.setup != self.setup && moved.setup.check().is_ok()).then_some(moved)
    }

    fn cells(&self, seed: u64, progress: &RunControl) -> Option<Vec<(String, f64)>> {
        let mut cells = Vec::new();
        for series in Series::ALL {
            if progress.stop.load(Relaxed) {
                return None;
            }
            let experiment = Experiment::run(&self.setup, &series.rules(), seed, self.repetitions);
            for reason in REASONS {
                let count = experiment.mean(|counts| counts.reasons[reason as usize] as f64);
                cells.push((format!("{}: {}", series.name(), reason.name()), count));
            }
            cells.push((format!("{}: elapsed", series.name()), mean(&experiment.elapsed)));
            progress.done.fetch_add(u64::from(self.repetitions), Relaxed);
        }
        Some(cells)
    }

    fn work(&self) -> u64 {
        Series::ALL.len() as u64 * u64::from(self.repetitions)
    }
}

fn choose_the_other(setup: &mut Setup, name: &str) {
    let Setup { workload, parameters, .. } = setup;
    let choice = match name {
        "place" => {
            workload.preparation.place = Placement::Interleaved;
            return;
        }
        "bound" => &mut workload.preparation.bound,
        "adaptation" => &mut parameters.adaptation,
        "hurry_after_move" => &mut parameters.hurry_after_move,
        "go_home" => &mut parameters.go_home,
        _ => &mut parameters.put_off,
    };
    *choice = !*choice;
}

fn scale_scan(setup: &mut Setup, name: &str, factor: f64) {
    let scan = &mut setup.scan;
    let bytes = |bytes: u64| (bytes as f64 * factor) as u64;
    match name {
        "scan_delay_ms" => scan.scan_delay = scan.scan_delay.mul_f64(factor),
        "scan_size_mib" => scan.scan_size = bytes(scan.scan_size),
        "period_min_ms" => scan.period_min = scan.period_min.mul_f64(factor),
        "period_max_ms" => scan.period_max = scan.period_max.mul_f64(factor),
        _ => scan.max_rate = bytes(scan.max_rate),
    }
}

/// Returns `None` if there cannot be so many.
fn scale_other(setup: &mut Setup, name: &str, factor: f64) -> Option<()> {
    let Setup { system, parameters, .. } = setup;
    let count = |count: u32| (f64::from(count) * factor).round() as u32;
    match name {
        "file_regions" => parameters.file_regions = count(parameters.file_regions),
        "data_regions" => parameters.data_regions = count(parameters.data_regions),
        "tick_ms" => parameters.tick = (parameters.tick as f64 * factor) as u64,
        _ => {
            let nodes = count(system.nodes() as u32) as usize;
            let System { name, cpus, speed, remote_cost, .. } = system.clone();
            *system =
                (nodes > 1).then(|| System::uniform(&name, nodes, cpus, speed, remote_cost))?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::accounts::NUMA;
    use crate::paper::basis::Listed;
    use crate::paper::walk::walk;

    fn unlisted(list: &[Listed], repetitions: u32, only: &[&str]) -> Vec<String> {
        let table = NumaInputs::published(repetitions);
        let walk = walk(&table, list, only, 1, &RunControl::default()).expect("nobody stops it");
        walk.unlisted().into_iter().map(str::to_owned).collect()
    }

    #[test]
    #[ignore = "slow: simulates the experiment sixty times"]
    fn all_inputs_that_matter_are_on_the_list() {
        assert_eq!(unlisted(&NUMA, 1, &[]), [] as [&str; 0]);
    }

    /// Negative control.
    #[test]
    fn an_input_that_is_taken_off_the_list_is_found() {
        let sample = ["scan_size_mib", "tiers_mib_s"];
        let list: Vec<Listed> =
            NUMA.into_iter().filter(|listed| !sample.contains(&listed.name)).collect();
        assert_eq!(unlisted(&list, 1, &sample), ["scan_size_mib"], "there are no tiers");
        assert_eq!(unlisted(&NUMA, 1, &sample), [] as [&str; 0]);
    }

    #[test]
    fn the_list_has_every_input_once_and_no_other() {
        let names: Vec<String> =
            NumaInputs::published(1).inputs().into_iter().map(|input| input.name).collect();
        for name in &names {
            assert_eq!(NUMA.iter().filter(|one| one.name == name).count(), 1, "{name}");
        }
        assert_eq!(names.len(), NUMA.len());
    }

    #[test]
    fn every_input_is_moved_unless_it_is_zero_or_at_a_limit() {
        let table = NumaInputs::published(1);
        let is_fixed = |name: &str| [0.5, 2.0].iter().all(|&by| table.moved(name, by).is_none());
        let inputs = table.inputs().into_iter().map(|input| input.name);
        let fixed: Vec<String> = inputs.filter(|name| is_fixed(name)).collect();
        assert_eq!(fixed, ["reluctance"]);
    }
}
