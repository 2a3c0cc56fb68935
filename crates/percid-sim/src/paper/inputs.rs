//! The inputs of the published intermittent benchmark, for a walk over all of them.

use super::findings::Findings;
use super::setting::Setting;
use super::table::{POLICIES, published_ns};
use super::walk::{Input, Inputs};
use crate::machine::Machine;
use crate::published;
use crate::run_control::RunControl;

/// The intermittent benchmark with its inputs.
#[derive(Debug, Clone)]
pub struct Intermittent {
    setting: Setting,
    /// One of so many runs is simulated.
    part: u64,
}

/// Name of the time after which unused IDs expire.
const EXPIRY: &str = "expiry_ms";

/// The counts of the machine's topology: name and value.
const TOPOLOGY: [(&str, u32); 4] =
    [("sockets", 2), ("l3s_per_socket", 12), ("cores_per_l3", 8), ("threads_per_core", 2)];

/// Distinguishes a count of the machine from the benchmark's parameter of the same name.
const OF_THE_MACHINE: &str = "machine.";

impl Intermittent {
    /// Returns the published benchmark; one of `part` of its runs is simulated.
    pub fn published(part: u64) -> Intermittent {
        Intermittent { setting: Setting::published(), part }
    }

    fn fits(&self) -> bool {
        let fits = |row: &published::Intermittent| {
            let Setting { machine, workload, .. } = self.setting.row(row);
            workload.program(&machine).is_ok()
        };
        published::intermittent().iter().all(fits)
    }
}

fn input(name: impl Into<String>, value: f64, origin: impl Into<String>) -> Input {
    Input { name: name.into(), value: value.to_string(), origin: origin.into() }
}

impl Inputs for Intermittent {
    fn inputs(&self) -> Vec<Input> {
        let Setting { machine, workload, laws, .. } = &self.setting;
        let of_the_machine = machine.costs.all().into_iter().chain(machine.kernel.all());
        let mut inputs: Vec<Input> = of_the_machine
            .map(|(name, number)| input(name, number.value, number.origin.as_str()))
            .collect();
        let of_the_file = workload.parameters.iter();
        inputs.extend(of_the_file.map(|(name, value)| input(name.as_str(), *value, "")));
        inputs.extend(laws.all().map(|(name, value)| input(name, value, "")));
        inputs.push(input(EXPIRY, 100.0 * self.setting.expiry_times, ""));
        let counts = TOPOLOGY.iter();
        inputs.extend(
            counts.map(|(name, count)| {
                input(format!("{OF_THE_MACHINE}{name}"), f64::from(*count), "")
            }),
        );
        inputs
    }

    fn moved(&self, name: &str, factor: f64) -> Option<Intermittent> {
        let mut moved = self.clone();
        let setting = &mut moved.setting;
        if let Some(count) = name.strip_prefix(OF_THE_MACHINE) {
            setting.machine.topology = with_count(count, factor)?;
        } else if name == EXPIRY {
            setting.expiry_times *= factor;
        } else if setting.workload.parameters.contains_key(name) {
            setting.multiplied = Some((name.to_owned(), factor));
        } else if let Some(number) = setting.laws.number_mut(name) {
            *number *= factor;
        } else {
            *setting.number_mut(name).filter(|number| **number != 0.0)? *= factor;
        }
        moved.fits().then_some(moved)
    }

    fn cells(&self, seed: u64, progress: &RunControl) -> Option<Vec<(String, f64)>> {
        let findings = Findings::simulate_part(&self.setting, self.part, seed, progress)?;
        let all: Vec<usize> = (0..published_ns().len()).collect();
        let rows = published::intermittent();
        let name = |cell: usize| {
            let row = &rows[cell / POLICIES.len()];
            format!("{}, {} ms, {}", row.config, row.delay_ms, POLICIES[cell % POLICIES.len()])
        };
        let costs = findings.costs(&self.setting, &all).into_iter().enumerate();
        Some(costs.map(|(cell, cost)| (name(cell), cost)).collect())
    }

    fn work(&self) -> u64 {
        Findings::runs_of_part(self.part)
    }
}

/// Returns the topology of the published machine with one count multiplied.
fn with_count(name: &str, factor: f64) -> Option<crate::topology::Topology> {
    let line = |(known, count): &(&str, u32)| {
        let factor = if *known == name { factor } else { 1.0 };
        format!("{known} = {}\n", f64::from(*count) * factor)
    };
    let counts: String = TOPOLOGY.iter().map(line).collect();
    let text = format!(
        "base = \"epyc-9654\"\nname = \"moved\"\n[topology]\nnodes_per_socket = 1\n\
         numbering = \"cores-first\"\n{counts}"
    );
    Some(Machine::parse(&text).ok()?.topology)
}

#[cfg(test)]
mod tests {
    use super::super::accounts;
    use super::super::basis::Listed;
    use super::super::walk::walk;
    use super::*;

    /// A sample of the runs: enough for these inputs, whose effects are large.
    const PART: u64 = 10;

    fn unlisted(list: &[Listed], only: &[&str]) -> Vec<String> {
        let table = Intermittent::published(PART);
        let walk = walk(&table, list, only, 1, &RunControl::default()).expect("nobody stops it");
        walk.unlisted().into_iter().map(str::to_owned).collect()
    }

    /// Negative control: without an input on the list, the walk finds it.
    #[test]
    fn an_input_that_is_taken_off_the_list_is_found() {
        let sample = ["later", "overlap", "slow_path_ns", "cooling_exponent"];
        assert_eq!(unlisted(&accounts::intermittent(), &sample), [] as [&str; 0]);
        for name in ["later", "overlap", "cooling_exponent"] {
            let mut list = accounts::intermittent();
            list.retain(|listed| listed.name != name);
            assert_eq!(unlisted(&list, &sample), [name]);
        }
        let mut list = accounts::intermittent();
        list.retain(|listed| listed.name != "slow_path_ns");
        assert_eq!(unlisted(&list, &sample), [] as [&str; 0], "no cell depends on it");
    }

    #[test]
    #[ignore = "slow: simulates the table eighty times"]
    fn all_inputs_that_matter_are_on_the_list() {
        assert_eq!(unlisted(&accounts::intermittent(), &[]), [] as [&str; 0]);
    }

    #[test]
    fn every_input_is_on_the_list_once() {
        let names: Vec<String> =
            Intermittent::published(1).inputs().into_iter().map(|input| input.name).collect();
        let listed: Vec<&str> = accounts::intermittent().iter().map(|one| one.name).collect();
        for name in &names {
            assert_eq!(listed.iter().filter(|known| *known == name).count(), 1, "{name}");
        }
        for name in &listed {
            let is_in_code = accounts::IN_CODE.iter().any(|one| one.listed.name == *name);
            assert!(is_in_code || names.iter().any(|known| known == name), "{name}: no input");
        }
    }

    #[test]
    fn an_input_that_cannot_be_moved_is_left_alone() {
        let table = Intermittent::published(1);
        assert!(table.moved("l3s", 2.0).is_none(), "the machine has 24");
        assert!(table.moved("machine.sockets", 0.5).is_none(), "the rows use both");
        assert!(table.moved("scan_cpu_ns", 2.0).is_none(), "it is 0");
        let more = table.moved("machine.cores_per_l3", 2.0).expect("the rows fit");
        assert_eq!(more.setting.machine.topology.cpus(), 768);
        assert!(table.moved("later", 2.0).is_some() && table.moved(EXPIRY, 0.5).is_some());
    }
}
