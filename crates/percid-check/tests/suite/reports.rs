//! Reports, and what is as before after a check.

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use percid::Source;
use percid::id::SourceError;
use percid_check::{Check, Failure, Random, Structure};

/// A structure without critical sections.
struct Plain(AtomicI64);

impl Structure for Plain {
    fn operate(&self, _: &mut Random) {
        self.0.fetch_add(1, Relaxed);
    }

    fn audit(&self) -> Result<(), String> {
        Ok(())
    }
}

fn plain() -> Check<Plain> {
    Check::new(|_| Ok(Plain(AtomicI64::new(0)))).rounds(1).threads(1)
}

#[test]
fn a_check_that_interrupts_nothing_reports_it() -> Result<(), Failure> {
    let report = plain().run()?;
    for of_source in &report.sources {
        assert_eq!(of_source.work.instructions, 0, "{report}");
        assert!(of_source.no_instructions.is_some(), "{report}");
    }
    assert!(report.to_string().contains("no instruction was interrupted"), "{report}");
    Ok(())
}

#[test]
fn unavailable_sources_are_reported_with_the_reason() -> Result<(), Failure> {
    let check = Check::<Plain>::new(|_| Err(SourceError::NoMemory));
    let report = check.sources(&[Source::Atomic]).run()?;
    assert_eq!(report.unavailable, [(Source::Atomic, SourceError::NoMemory)]);
    assert!(report.sources.is_empty() && report.work(Source::Atomic).is_none());
    assert!(report.to_string().contains("atomic is not checked: "), "{report}");
    Ok(())
}

#[test]
fn the_seed_is_the_given_one() -> Result<(), Failure> {
    let report = plain().seed(7).run()?;
    println!("{report}");
    if env::var_os("PERCID_CHECK_SEED").is_none() {
        assert_eq!(report.seed, 7);
    }
    Ok(())
}

#[test]
fn the_environment_overrides_the_seed() {
    let mut command = Command::new(env::current_exe().expect("this program"));
    command.args(["--exact", "reports::the_seed_is_the_given_one", "--nocapture"]);
    let output = command.env("PERCID_CHECK_SEED", "42").output().expect("a child");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("seed 42"), "{text}");
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
struct Counted(percid::Counter);

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
impl Structure for Counted {
    fn operate(&self, _: &mut Random) {
        self.0.add(1);
    }

    fn audit(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The variable that makes a test check in its own process, where no other test does.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
const ALONE: &str = "PERCID_CHECK_TEST_ALONE";

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn handlers_and_affinity_are_as_before() {
    if env::var_os(ALONE).is_none() {
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(["--exact", "reports::handlers_and_affinity_are_as_before"]);
        assert!(command.env(ALONE, "1").status().expect("a child").success());
        return;
    }
    let before = now();
    let check = Check::new(|source| Ok(Counted(percid::Counter::with_source(source)?)));
    check.rounds(1).run().unwrap();
    assert_eq!(now(), before);
}

/// Returns the handlers of the signals that a check uses, and the thread's affinity.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn now() -> ([usize; 2], [u64; 128]) {
    let handler = |signal| {
        // SAFETY: zero is a valid action, and the action is writable.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            action.sa_sigaction
        }
    };
    let mut mask = [0; 128];
    // SAFETY: the mask is writable for its whole size.
    unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    ([libc::SIGTRAP, libc::SIGRTMAX()].map(handler), mask)
}
