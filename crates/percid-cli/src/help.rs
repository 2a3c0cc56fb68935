//! `percid help`: the manual as `--help` prints it, or as pages for man(1).

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory};

use crate::cli::{Cli, HelpArguments};
use crate::man_page;
use percid_command::exit::{Exit, Failure};
use percid_command::output;

pub(crate) fn run(arguments: &HelpArguments) -> Result<Exit, Failure> {
    let command = built();
    let command = find(&command, &arguments.command)?;
    match &arguments.man {
        None => output::print_text(&command.clone().render_long_help())?,
        Some(None) => output::print_text(&man_page::text(command))?,
        Some(Some(folder)) => write_all(command, folder)?,
    }
    Ok(Exit::Complete)
}

/// Returns the complete command line: each subcommand has its whole name and the global options.
pub(crate) fn built() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

fn find<'a>(command: &'a Command, path: &[String]) -> Result<&'a Command, Failure> {
    path.iter().try_fold(command, |command, name| {
        command.find_subcommand(name).ok_or_else(|| {
            let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Failure::Usage(format!("'{name}' is no command; allowed are {known}"))
        })
    })
}

/// Writes a page for the command and for each below it.
fn write_all(command: &Command, folder: &Path) -> Result<(), Failure> {
    let path = folder.join(man_page::file_name(command));
    fs::write(&path, man_page::text(command))
        .map_err(|cause| Failure::new(format!("cannot write {}", path.display()), cause))?;
    command.get_subcommands().try_for_each(|below| write_all(below, folder))
}
