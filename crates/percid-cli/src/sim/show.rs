//! `percid sim show`: the files of machines and workloads.

use percid_sim::machine::Machine;
use percid_sim::mask;
use percid_sim::numa;
use percid_sim::workload::Workload;
use serde::Serialize;

use crate::cli::{ShowArguments, Shown};
use percid_command::exit::{Exit, Failure};
use percid_command::output;
use percid_command::presets;
use percid_command::this_machine::Numbering;

/// The document of `percid sim show --json`, and of `percid sim import --json`.
#[derive(Debug, Serialize)]
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) text: String,
}

pub(crate) fn run(arguments: &ShowArguments, json: bool) -> Result<Exit, Failure> {
    let name = arguments.name.as_str();
    let text = match arguments.kind {
        Shown::Machine => machine(name, arguments.whole)?,
        Shown::Workload if arguments.whole => {
            let expected = "--whole: expected with a machine; a workload inherits nothing";
            return Err(Failure::Usage(expected.to_owned()));
        }
        Shown::Workload => workload(name)?,
    };
    File { name, text }.print(json)
}

fn machine(name: &str, whole: bool) -> Result<String, Failure> {
    match Machine::preset_text(name) {
        Some(text) if !whole => Ok(text.to_owned()),
        _ => Ok(presets::machine(name, Numbering::Dense)?.to_toml()),
    }
}

fn workload(name: &str) -> Result<String, Failure> {
    let text = Workload::preset_text(name);
    let text = text.or(numa::Workload::preset_text(name)).or(mask::Workload::preset_text(name));
    text.map(str::to_owned).ok_or_else(|| {
        let known = Workload::presets().chain(numa::Workload::presets());
        let known = known.chain(mask::Workload::presets());
        let known = known.collect::<Vec<_>>().join(", ");
        Failure::Usage(format!("no workload is named '{name}'; allowed are {known}"))
    })
}

impl File<'_> {
    pub(super) fn print(&self, json: bool) -> Result<Exit, Failure> {
        if json { output::print_json(self) } else { output::print_text(&self.text) }?;
        Ok(Exit::Complete)
    }
}
