//! `percid trace`: with the feature `trace` inside this program, otherwise by the separate program
//! `percid-trace`. The code that reads and writes traces takes long to build, and measuring a
//! machine should not wait for that.

#[cfg(feature = "trace")]
pub(crate) use percid_trace_cli::run;

#[cfg(not(feature = "trace"))]
pub(crate) use another_program::run;

#[cfg(not(feature = "trace"))]
mod another_program {
    use std::env::{self, consts::EXE_EXTENSION};
    use std::ffi::OsString;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use percid_command::exit::{Exit, Failure};
    use percid_command::trace::TracePart;

    const PROGRAM: &str = "percid-trace";
    const MISSING: &str = "it is neither beside this percid nor in PATH; install a percid that has it within (cargo install percid-cli --features trace) or build it (cargo build --release -p percid-trace-cli)";

    /// Runs the other program, from the folder of this one or from `PATH`.
    pub(crate) fn run(_understood: &TracePart, _json: bool) -> Result<Exit, Failure> {
        let mut command = Command::new(program());
        let cause = match instead(command.args(arguments())) {
            Ok(exit) => return Ok(exit),
            Err(cause) => cause,
        };
        let cause = match cause.kind() {
            io::ErrorKind::NotFound => io::Error::new(cause.kind(), MISSING),
            _ => cause,
        };
        Err(Failure::new(format!("cannot run {PROGRAM}"), cause))
    }

    /// Replaces this process by the other program.
    #[cfg(unix)]
    fn instead(command: &mut Command) -> io::Result<Exit> {
        Err(std::os::unix::process::CommandExt::exec(command))
    }

    /// Waits for the other program, and ends with its status.
    #[cfg(not(unix))]
    fn instead(command: &mut Command) -> io::Result<Exit> {
        let code = command.status()?.code();
        Ok(Exit::Status(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
    }

    /// Returns all arguments except the name of the subcommand, before which only `--json` is
    /// allowed.
    fn arguments() -> impl Iterator<Item = OsString> {
        let name = env::args_os().position(|argument| argument == "trace").unwrap_or(0);
        let given = env::args_os().enumerate().skip(1);
        given.filter(move |&(place, _)| place != name).map(|(_, argument)| argument)
    }

    fn program() -> PathBuf {
        let name = Path::new(PROGRAM).with_extension(EXE_EXTENSION);
        let beside = env::current_exe().ok().map(|own| own.with_file_name(name));
        beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(PROGRAM))
    }
}
