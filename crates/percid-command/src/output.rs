//! Output of the result of a run on stdout: text, or a single JSON document.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

use crate::exit::Failure;

/// Prints text at once, so that a reader sees it while the next part is still being measured.
/// Colours are left out if stdout is no terminal or `NO_COLOR` is set.
pub fn print_text(text: &dyn fmt::Display) -> Result<(), Failure> {
    let mut stdout = anstream::stdout().lock();
    write!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(cannot_write)
}

/// Prints the document. Called once per run.
pub fn print_json(result: &impl Serialize) -> Result<(), Failure> {
    let mut document =
        serde_json::to_vec_pretty(result).map_err(|error| cannot_write(error.into()))?;
    document.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&document).and_then(|()| stdout.flush()).map_err(cannot_write)
}

/// Prints one of many documents, each on its own line.
pub fn print_json_line(document: &impl Serialize) -> Result<(), Failure> {
    let mut line = serde_json::to_vec(document).map_err(|error| cannot_write(error.into()))?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line).and_then(|()| stdout.flush()).map_err(cannot_write)
}

fn cannot_write(cause: io::Error) -> Failure {
    Failure::new("cannot write to standard output", cause)
}
