//! `percid info`: this machine's features, the selected ID source, and the reason.

use serde::Serialize;

use crate::check::{self, CheckReport};
use crate::cli::InfoArguments;
use crate::machine::MachineReport;
use percid_command::exit::{Exit, Failure};
use percid_command::output;
use percid_command::report::{self, Report};
use percid_report::Page;

/// The document of `percid info --json`.
#[derive(Debug, Serialize)]
struct Info {
    machine: MachineReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<CheckReport>,
}

pub(crate) fn run(arguments: &InfoArguments, json: bool) -> Result<Exit, Failure> {
    let report = Report::to(arguments.html.as_deref())?;
    let machine = MachineReport::read();
    if !json {
        output::print_text(&machine)?;
    }
    let check = arguments.check.then(|| check::run(arguments.length())).transpose()?;
    let exit = check.as_ref().map_or(Exit::Complete, CheckReport::exit);
    let info = Info { machine, check };
    let printed = match &info.check {
        _ if json => output::print_json(&info),
        Some(check) => output::print_text(check),
        None => Ok(()),
    };
    report.write(printed, || info.page(), exit)
}

impl Info {
    fn page(&self) -> Page {
        let interrupted = self.check.as_ref().is_some_and(CheckReport::interrupted);
        let (verdict, name) = (self.machine.verdict(), self.machine.name());
        let mut page = report::page("percid info", verdict, &name, interrupted);
        self.machine.show_on(&mut page);
        if let Some(check) = &self.check {
            page.section("Check", check.verdict()).printed(check.to_string().trim());
        }
        page
    }
}
