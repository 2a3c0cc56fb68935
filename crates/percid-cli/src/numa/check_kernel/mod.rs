//! `percid numa check-kernel`: the costs and benefits of the kernel's NUMA balancing for a process.

mod document;
mod faults;
mod observation;
mod verdict;

use std::io;
use std::process::{Child, Command};
use std::time::Duration;

use super::process::Process;
use crate::cli::CheckKernelArguments;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::report::Report;

use document::CostDocument;
use observation::observe;

/// Default time for which a process is observed.
const OF_PROCESS: Duration = Duration::from_secs(10);

pub(crate) fn run(arguments: &CheckKernelArguments, json: bool) -> Result<Exit, Failure> {
    let report = Report::to(arguments.html.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let document = match (&arguments.pid, arguments.command.split_first()) {
        (Some(pid), _) => of_process(*pid, arguments.seconds.unwrap_or(OF_PROCESS), &interrupt)?,
        (None, Some((program, rest))) => {
            of_command(program, rest, arguments.seconds.unwrap_or(Duration::MAX), &interrupt)?
        }
        (None, None) => {
            let what = "which process? expected --pid PID, or -- and a command";
            return Err(Failure::Usage(what.to_owned()));
        }
    };
    let printed = if json { output::print_json(&document) } else { output::print_text(&document) };
    if document.is_interrupted() {
        complain(format_args!("interrupted"));
    }
    let exit = if document.is_interrupted() { Exit::Interrupted } else { Exit::Complete };
    report.write(printed, || document.page(), exit)
}

fn of_process(pid: u32, limit: Duration, interrupt: &Interrupt) -> Result<CostDocument, Failure> {
    let process = Process { number: pid };
    if !process.exists() {
        let cause = io::Error::from(io::ErrorKind::NotFound);
        return Err(Failure::new(format!("there is no process {pid}"), cause));
    }
    let name = process.name();
    let seen = observe(process, limit, interrupt, || process.exists());
    Ok(CostDocument::new(process, name, &seen))
}

/// Runs a command until it ends or the time is over; the command continues after that.
fn of_command(
    program: &str,
    arguments: &[String],
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<CostDocument, Failure> {
    let mut child = Command::new(program)
        .args(arguments)
        .spawn()
        .map_err(|cause| Failure::new(format!("cannot run {program}"), cause))?;
    let process = Process { number: child.id() };
    let name = program.to_owned();
    let seen = observe(process, limit, interrupt, || runs(&mut child));
    Ok(CostDocument::new(process, name, &seen))
}

fn runs(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}
