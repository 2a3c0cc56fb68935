//! Wrong arguments: one line with the error and the allowed values, exit status 2.

use std::env;
use std::process::ExitCode;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::{self, Exit, refuse};
use crate::version::Version;

/// Prints the parser's message: help and version unchanged, errors in one line.
pub fn show(error: &clap::Error, command: Command, version: &Version) -> ExitCode {
    if error.kind() == ErrorKind::DisplayVersion && env::args_os().any(|given| given == "--json") {
        return exit::code(version.print_json().map(|()| Exit::Complete));
    }
    if !error.use_stderr() {
        // The reader closed the pipe (`percid --help | head -1`): that is not an error.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let what = match error.kind() {
        // The parser's message would be the whole manual.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a subcommand is expected".to_owned()
        }
        _ => first_paragraph(&error.render().to_string()),
    };
    match allowed(error, command) {
        Some(allowed) => refuse(format_args!("{what}; {allowed}")),
        None => refuse(format_args!("{what}")),
    }
}

/// Returns the parser's message without the tips and the usage that follow it.
fn first_paragraph(rendered: &str) -> String {
    let text = rendered.strip_prefix("error: ").unwrap_or(rendered);
    let paragraph = text.split("\n\n").next().unwrap_or(text);
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the arguments allowed in place of an unexpected one. Other errors list them.
fn allowed(error: &clap::Error, mut command: Command) -> Option<String> {
    use ErrorKind::*;
    let lists_none = [UnknownArgument, InvalidSubcommand, DisplayHelpOnMissingArgumentOrSubcommand];
    if !lists_none.contains(&error.kind()) {
        return None;
    }
    // Adds clap's automatic options: --help, --version, the global options.
    command.build();
    let command = named_by_arguments(&command);
    let subcommands = command.get_subcommands().map(|subcommand| subcommand.get_name().to_owned());
    let options = command
        .get_arguments()
        .filter(|option| !option.is_hide_set())
        .filter_map(|option| option.get_long())
        .map(|name| format!("--{name}"));
    let allowed = subcommands.chain(options).collect::<Vec<_>>().join(", ");
    Some(match places(error, command) {
        Some(places) => format!("{places}; allowed are {allowed}"),
        None => format!("allowed are {allowed}"),
    })
}

/// Returns the positional arguments of the command, if the unexpected argument is no option either,
/// such as one file too many.
fn places(error: &clap::Error, command: &Command) -> Option<String> {
    let Some(ContextValue::String(unexpected)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let places: Vec<String> = command
        .get_positionals()
        .filter(|place| !place.is_last_set())
        .filter_map(|place| Some(place.get_value_names()?.first()?.to_string()))
        .collect();
    if unexpected.starts_with('-') || places.is_empty() {
        return None;
    }
    let name = command.get_name();
    Some(format!("`{name}` takes {} and no further one", places.join(" and ")))
}

/// Returns the innermost subcommand that the arguments name.
fn named_by_arguments(root: &Command) -> &Command {
    env::args()
        .skip(1)
        .fold(root, |command, argument| command.find_subcommand(&argument).unwrap_or(command))
}
