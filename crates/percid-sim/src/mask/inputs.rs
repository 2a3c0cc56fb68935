//! The inputs of the published run of the mask, for a walk over all of them.

use super::paper::Runs;
use super::parameters::{
    Arbitration, LATENCIES, PUBLISHED_MACHINE, Parameters, numbers, published,
};
use super::policy::MaskPolicy;
use super::workload::{Spread, Workload};
use crate::machine::Machine;
use crate::paper::walk::{Input, Inputs};
use crate::run_control::RunControl;
use crate::topology::Topology;

/// The published run with its inputs.
#[derive(Debug, Clone)]
pub struct MaskInputs {
    machine: Machine,
    workload: Workload,
    arbitration: Arbitration,
}

/// Number of runs of each policy.
const RUNS: usize = 2;

/// The counts of the machine's topology: name and value.
const TOPOLOGY: [(&str, u32); 3] = [("sockets", 4), ("cores_per_l3", 15), ("threads_per_core", 2)];

const OF_THE_MACHINE: &str = "machine.";

impl MaskInputs {
    /// Returns the published run.
    pub fn published() -> MaskInputs {
        let (machine, workload) = published();
        MaskInputs { machine, workload, arbitration: Arbitration::InOrder }
    }

    fn parameters(&self) -> Option<Parameters> {
        let parameters = Parameters::from_machine(&self.machine, &self.workload).ok()?;
        Some(Parameters { arbitration: self.arbitration, ..parameters })
    }
}

impl Inputs for MaskInputs {
    fn inputs(&self) -> Vec<Input> {
        let numbers = numbers(&self.machine, &self.workload).into_iter();
        let mut inputs: Vec<Input> = numbers
            .map(|number| Input {
                name: number.name.to_owned(),
                value: number.value.to_string(),
                origin: number.origin,
            })
            .collect();
        inputs.extend(TOPOLOGY.iter().map(|(name, count)| Input {
            name: format!("{OF_THE_MACHINE}{name}"),
            value: count.to_string(),
            origin: String::new(),
        }));
        let choices = [("work_spread", "exponential"), ("arbitration", "in order")];
        inputs.extend(choices.map(|(name, value)| Input {
            name: name.to_owned(),
            value: value.to_owned(),
            origin: String::new(),
        }));
        inputs
    }

    fn moved(&self, name: &str, factor: f64) -> Option<MaskInputs> {
        let mut moved = self.clone();
        if let Some(count) = name.strip_prefix(OF_THE_MACHINE) {
            moved.machine.topology = with_count(count, factor)?;
        } else if name == "work_spread" {
            moved.workload.work_spread = (factor > 1.0).then_some(Spread::Constant)?;
        } else if name == "arbitration" {
            moved.arbitration = (factor > 1.0).then_some(Arbitration::NearestFirst)?;
        } else if LATENCIES.contains(&name) {
            let value = moved.machine.costs.all().into_iter().find(|(known, _)| *known == name)?;
            let value = value.1.value * factor;
            moved.machine.set(name, value).ok()?;
        } else {
            let value = moved.workload.get(name).filter(|value| *value != 0.0)?;
            moved.workload.set(name, value * factor).ok()?;
        }
        moved.parameters().is_some().then_some(moved)
    }

    fn cells(&self, seed: u64, progress: &RunControl) -> Option<Vec<(String, f64)>> {
        let parameters = self.parameters()?;
        let runs = Runs::watched(&parameters, MaskPolicy::TestFirst, RUNS, seed, &progress.stop)?;
        progress.done.fetch_add(self.work(), std::sync::atomic::Ordering::Relaxed);
        let figures = runs.compared();
        Some(figures.map(|(name, value)| (name.to_owned(), value)).to_vec())
    }

    fn work(&self) -> u64 {
        2 * RUNS as u64
    }
}

/// Returns the topology of the published machine with one count multiplied.
fn with_count(name: &str, factor: f64) -> Option<Topology> {
    let line = |(known, count): &(&str, u32)| {
        let factor = if *known == name { factor } else { 1.0 };
        format!("{known} = {}\n", f64::from(*count) * factor)
    };
    let counts: String = TOPOLOGY.iter().map(line).collect();
    let text = format!(
        "base = \"{PUBLISHED_MACHINE}\"\nname = \"moved\"\n[topology]\nnodes_per_socket = 1\n\
         l3s_per_socket = 1\nnumbering = \"cores-first\"\n{counts}"
    );
    Some(Machine::parse(&text).ok()?.topology)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::accounts::MASK;
    use crate::paper::basis::Listed;
    use crate::paper::walk::walk;

    fn unlisted(list: &[Listed], only: &[&str]) -> Vec<String> {
        let table = MaskInputs::published();
        let walk = walk(&table, list, only, 1, &RunControl::default()).expect("nobody stops it");
        walk.unlisted().into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn all_inputs_that_matter_are_on_the_list() {
        assert_eq!(unlisted(&MASK, &[]), [] as [&str; 0]);
    }

    /// Negative control.
    #[test]
    fn an_input_that_is_taken_off_the_list_is_found() {
        for name in ["work_us", "other_socket_ns"] {
            let list: Vec<Listed> = MASK.into_iter().filter(|listed| listed.name != name).collect();
            assert_eq!(unlisted(&list, &[name, "trim_interval_ms"]), [name]);
        }
    }

    #[test]
    fn the_list_has_every_input_once_and_no_other() {
        let names: Vec<String> =
            MaskInputs::published().inputs().into_iter().map(|input| input.name).collect();
        for name in &names {
            assert_eq!(MASK.iter().filter(|one| one.name == name).count(), 1, "{name}");
        }
        assert_eq!(names.len(), MASK.len());
    }
}
