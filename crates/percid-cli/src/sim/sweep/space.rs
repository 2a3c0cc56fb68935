//! The parameter space of the arguments.

use std::collections::BTreeMap;
use std::fs;

use percid_command::exit::Failure;
use percid_command::presets;
use percid_command::this_machine::Numbering;
use percid_sim::policies;
use percid_sweep::{Grid, Named, Plan, Seeds, Space, Until};

use super::failure::failure;
use crate::cli::SweepArguments;

/// Returns the plan of the checked space.
pub(super) fn plan(arguments: &SweepArguments) -> Result<Plan, Failure> {
    if let Some(path) = &arguments.space {
        let cannot = |cause| Failure::Usage(format!("{}: {cause}", path.display()));
        let text = fs::read_to_string(path).map_err(cannot)?;
        return Plan::described_by(&text).map_err(|error| match failure(error) {
            Failure::Usage(why) => Failure::Usage(format!("{}: {why}", path.display())),
            other => other,
        });
    }
    Plan::new(space(arguments)?, arguments.keep_invalid).map_err(failure)
}

fn space(arguments: &SweepArguments) -> Result<Space, Failure> {
    let machine = |name: &String| -> Result<Named, Failure> {
        let text = presets::machine(name, Numbering::Dense)?.to_toml();
        Ok(Named { name: presets::label(name).to_owned(), text })
    };
    let workload = |name: &String| -> Result<Named, Failure> {
        let text = presets::workload(name)?.text().to_owned();
        Ok(Named { name: presets::label(name).to_owned(), text })
    };
    let grid = Grid {
        machines: arguments.machine.iter().map(machine).collect::<Result<_, _>>()?,
        workloads: arguments.workload.iter().map(workload).collect::<Result<_, _>>()?,
        policies: names_of_policies(&arguments.policy),
        memory: arguments.memory.clone(),
        parameters: parameters(arguments)?,
    };
    Ok(Space { grids: vec![grid], seeds: seeds(arguments) })
}

fn names_of_policies(asked: &[String]) -> Vec<String> {
    let all = || policies::ALL.iter().map(|entry| entry.name.to_owned()).collect();
    let names = asked.iter().map(|name| if name == "all" { all() } else { vec![name.clone()] });
    names.flat_map(|names: Vec<String>| names).collect()
}

fn parameters(arguments: &SweepArguments) -> Result<BTreeMap<String, Vec<f64>>, Failure> {
    let mut parameters = BTreeMap::new();
    for setting in &arguments.set {
        if parameters.insert(setting.name.clone(), setting.values.clone()).is_some() {
            let expected = "expected once, with all its values";
            return Err(Failure::Usage(format!("--set {}: {expected}", setting.name)));
        }
    }
    Ok(parameters)
}

fn seeds(arguments: &SweepArguments) -> Seeds {
    let until = |percent: f64| Until { interval: percent / 100.0, most: arguments.most };
    Seeds {
        first: arguments.seed,
        count: arguments.seeds,
        list: Vec::new(),
        until: arguments.until.map(until),
    }
}
