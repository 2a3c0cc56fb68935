//! Common parts of all subcommands that record: the target, Ctrl-C, and the exit status.

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use percid_command::arguments::BackendChoice;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_trace::record::{self, Backend, Ended, Options, Progress, Refusal, Sink, Target};

/// A process, a command, or else the whole system.
pub(crate) fn target(pid: Option<u32>, command: &[OsString]) -> Target {
    match (pid, command) {
        (Some(pid), _) => Target::Process(pid),
        (None, []) => Target::System,
        (None, command) => Target::Command(command.to_vec()),
    }
}

pub(crate) fn backend(choice: BackendChoice) -> Backend {
    match choice {
        BackendChoice::Tracefs => Backend::Tracefs,
        BackendChoice::Perf => Backend::PerfEvents,
    }
}

/// Reports a command that does not exist or cannot be started as shells do.
pub(crate) fn refused(refusal: &Refusal) -> Result<Exit, Failure> {
    match refusal {
        Refusal::NoCommand(_) | Refusal::Unstartable(..) => {
            complain(format_args!("{refusal}"));
            Ok(Exit::Status(refusal.exit_code()))
        }
        _ => Err(Failure::new("cannot record", io::Error::other(refusal.to_string()))),
    }
}

/// Interval at which Ctrl-C is checked.
const LOOK: Duration = Duration::from_millis(50);

/// Records until the target ends, the sink has enough or Ctrl-C is pressed: then `pressed` is called at
/// once.
pub(crate) fn record(
    options: &Options,
    interrupt: &Interrupt,
    sink: &mut dyn Sink,
    pressed: impl Fn() + Sync,
    progress: impl FnMut(Progress),
) -> Result<Ended, Refusal> {
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                interrupt.sleep(LOOK);
                if interrupt.pressed() {
                    pressed();
                    stop.store(true, Relaxed);
                    thread::sleep(LOOK);
                }
            }
        });
        let ended = record::record_to(options, &stop, sink, progress);
        over.store(true, Relaxed);
        ended
    })
}

/// The command's own status comes first, but for Ctrl-C without a command.
pub(crate) fn exit(status: Option<u8>, is_broken: bool, interrupt: &Interrupt) -> Exit {
    match status {
        Some(status) if status != 0 => Exit::Status(status),
        _ if is_broken => Exit::Partial,
        _ if interrupt.pressed() => Exit::Interrupted,
        _ => Exit::Complete,
    }
}

/// Returns the status as shells do: 128 plus the number of the signal that ended it.
pub(crate) fn status_code(status: ExitStatus) -> u8 {
    let by_signal = signal(status).map(|signal| 128 + signal);
    status.code().or(by_signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}
