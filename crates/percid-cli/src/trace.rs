//! `percid trace`: runs `percid-trace`, a program of its own, because what reads and writes traces
//! takes long to build, and measuring a machine should not wait for that.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use percid_command::exit::{Exit, Failure};

/// The program that does the work.
const PROGRAM: &str = "percid-trace";

/// Replaces this process by the other program, from the folder of this one or from `PATH`.
pub(crate) fn run(arguments: &[OsString], json: bool) -> Result<Exit, Failure> {
    let mut command = Command::new(program());
    let cause = command.args(json.then_some("--json")).args(arguments).exec();
    if cause.kind() == io::ErrorKind::NotFound {
        let how = "build it beside this program (cargo build --release -p percid-trace-cli) or install it (cargo install percid-trace-cli)";
        return Err(Failure::new(format!("there is no {PROGRAM}; {how}"), cause));
    }
    Err(Failure::new(format!("cannot run {PROGRAM}"), cause))
}

fn program() -> PathBuf {
    let beside = env::current_exe().ok().map(|own| own.with_file_name(PROGRAM));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM))
}
