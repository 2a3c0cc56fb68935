//! `percid trace`: with the feature `trace` within this program; else by `percid-trace`, a program of its
//! own, because what reads and writes traces takes long to build, and measuring a machine should not wait
//! for that.

use percid_command::exit::{Exit, Failure};
use percid_command::trace::TracePart;

#[cfg(feature = "trace")]
pub(crate) use percid_trace_cli::run;

#[cfg(not(feature = "trace"))]
pub(crate) fn run(_understood: &TracePart, _json: bool) -> Result<Exit, Failure> {
    another_program::run()
}

#[cfg(not(feature = "trace"))]
mod another_program {
    use std::env;
    use std::ffi::OsString;
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::path::PathBuf;
    use std::process::Command;

    use super::{Exit, Failure};

    const PROGRAM: &str = "percid-trace";
    const MISSING: &str = "it is neither beside this percid nor in PATH; install a percid that has it within (cargo install percid-cli --features trace) or build it (cargo build --release -p percid-trace-cli)";

    /// Replaces this process by the other program, from the folder of this one or from `PATH`.
    pub(super) fn run() -> Result<Exit, Failure> {
        let cause = Command::new(program()).args(arguments()).exec();
        let cause = match cause.kind() {
            io::ErrorKind::NotFound => io::Error::new(cause.kind(), MISSING),
            _ => cause,
        };
        Err(Failure::new(format!("cannot run {PROGRAM}"), cause))
    }

    /// All that was given but the name of the subcommand, in front of which nothing but `--json` may be.
    fn arguments() -> impl Iterator<Item = OsString> {
        let name = env::args_os().position(|argument| argument == "trace").unwrap_or(0);
        let given = env::args_os().enumerate().skip(1);
        given.filter(move |&(place, _)| place != name).map(|(_, argument)| argument)
    }

    fn program() -> PathBuf {
        let beside = env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
        beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM))
    }
}
