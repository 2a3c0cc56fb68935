//! The parameter space of the arguments.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use percid_command::exit::Failure;
use percid_command::module::{self, Module};
use percid_command::presets;
use percid_command::this_machine::Numbering;
use percid_sim::policies;
use percid_sweep::{Grid, ModuleHash, Named, Plan, Seeds, Space, Until};

use super::failure::failure;
use crate::cli::SweepArguments;

/// Returns the plan of the checked space.
pub(super) fn plan(arguments: &SweepArguments) -> Result<Plan, Failure> {
    if let Some(path) = &arguments.space {
        let cannot = |cause| Failure::Usage(format!("{}: {cause}", path.display()));
        let text = fs::read_to_string(path).map_err(cannot)?;
        let plan = Plan::described_by(&text).map_err(|error| match failure(error) {
            Failure::Usage(why) => Failure::Usage(format!("{}: {why}", path.display())),
            other => other,
        })?;
        return match plan.space().modules.first() {
            None => Ok(plan),
            Some(ModuleHash { name, .. }) => Err(Failure::Usage(format!(
                "{}: it has only the hash of {name}; expected --policy with the file, and the \
                 arguments of the sweep",
                path.display()
            ))),
        };
    }
    let modules = modules(&arguments.policy)?;
    let own = modules.iter().map(|module| module.policy).collect();
    let space = space(arguments, &modules)?;
    Plan::with_policies(space, arguments.keep_invalid, own).map_err(failure)
}

/// Loads the modules among the policies. Their names are those of the files, so that a store does
/// not depend on the folder.
fn modules(asked: &[String]) -> Result<Vec<Module>, Failure> {
    let paths = asked.iter().filter(|name| module::is_module(name));
    let load = |path: &String| {
        module::load(path, file_name(path))
            .map_err(|why| Failure::Usage(format!("--policy {path}: {why}")))
    };
    paths.map(load).collect()
}

fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

fn space(arguments: &SweepArguments, modules: &[Module]) -> Result<Space, Failure> {
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
    let hash = |module: &Module| ModuleHash {
        name: module.policy.name.to_owned(),
        sha256: module.sha256.clone(),
    };
    let modules = modules.iter().map(hash).collect();
    Ok(Space { grids: vec![grid], seeds: seeds(arguments), modules })
}

fn names_of_policies(asked: &[String]) -> Vec<String> {
    let all = || policies::ALL.iter().map(|entry| entry.name.to_owned()).collect();
    let names = asked.iter().map(|name| match &**name {
        "all" => all(),
        path if module::is_module(path) => vec![file_name(path).to_owned()],
        name => vec![name.to_owned()],
    });
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
