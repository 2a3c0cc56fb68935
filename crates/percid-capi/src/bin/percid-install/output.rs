//! The output of the installer, which `--quiet` suppresses.

use std::io::Write;
use std::path::Path;

use crate::options::Options;

/// Prints a path on standard output.
pub(crate) fn say(options: &Options, path: &Path) {
    if !options.quiet {
        // A closed standard output is not an error.
        let _ = writeln!(std::io::stdout(), "{}", path.display());
    }
}

/// Prints a message on standard error.
pub(crate) fn tell(options: &Options, text: &str) {
    if !options.quiet {
        eprintln!("percid-install: {text}");
    }
}
