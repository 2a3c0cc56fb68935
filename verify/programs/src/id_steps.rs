//! Records the scheduler's actions on a scripted process and the IDs that the kernel gave its
//! threads, for a replay by the simulator's policies (`percid_sim::conformance` reads the output).
//!
//! The process starts itself a second time, so that the recording begins with `exec`, when the
//! kernel has no information about the program's IDs yet. All input of a kernel's policy comes from
//! the kernel's own events: switches, migrations, timer ticks, threads that begin and end. The
//! script decides only the schedule.

mod notes;
mod owners;
mod script;
mod trace;
mod translate;
mod workers;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use percid::Source;

use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;

/// Interval of activity on every CPU. The scan compares the time of a slot with the clock of that
/// CPU's run queue, which stands still while the CPU sleeps.
const HEARTBEAT: Duration = Duration::from_millis(3);

pub(crate) fn run(options: &Options) -> Verdict {
    if options.traced {
        return workers::run(options);
    }
    // Begins with this word, which distinguishes it from a recording.
    let missing = Source::Kernel.prepare().err().map(|error| error.to_string());
    if let Some(why) = missing.or_else(|| trace::missing().err()) {
        return Ok(format!("skipped: {why}"));
    }
    // Before the process is started, so that it has never been allowed more.
    if let Some(cpus) = options.cpus {
        let mut allowed = pinning::allowed();
        allowed.truncate(cpus);
        pinning::restrict(0, &allowed);
    }
    let mut failed = String::new();
    for attempt in 1..=ATTEMPTS {
        let instance = trace::Instance::new()?;
        let (child, notes) = record(&instance, options)?;
        match translate::translate(&instance.read()?, child, &notes) {
            Ok(text) => {
                print!("{text}");
                return Ok(format!("lines={} attempts={attempt}", text.lines().count()));
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Number of attempts: on one kernel the trace sometimes lacked events without counting them as
/// lost.
const ATTEMPTS: usize = 4;

/// Runs the process under trace. Returns its number and what it printed.
fn record(instance: &trace::Instance, options: &Options) -> Result<(u32, String), String> {
    let beating = AtomicBool::new(true);
    thread::scope(|scope| {
        for cpu in pinning::allowed() {
            scope.spawn({
                let beating = &beating;
                move || {
                    pinning::restrict(0, &[cpu]);
                    yield_to_all();
                    while beating.load(Relaxed) {
                        thread::sleep(HEARTBEAT);
                    }
                }
            });
        }
        let recorded = run_traced(instance, options);
        beating.store(false, Relaxed);
        recorded
    })
}

/// Makes the calling thread run only while no other thread does.
fn yield_to_all() {
    // SAFETY: all zero is a valid parameter, and the call reads it.
    unsafe {
        let parameter: libc::sched_param = std::mem::zeroed();
        // If that is refused, workers are preempted sometimes.
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameter);
    }
}

fn run_traced(instance: &trace::Instance, options: &Options) -> Result<(u32, String), String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut command = Command::new(program);
    command.args(&options.given).arg("--traced").stdout(Stdio::piped());
    instance.start()?;
    let child = command.spawn().map_err(|error| format!("starting again: {error}"))?;
    let number = child.id();
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    instance.stop()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        Ok((number, text))
    } else {
        Err(format!("the traced process ended with {}: {text}", output.status))
    }
}
