//! Whether the kernel aborts critical sections, found out as a first use does it: in many fresh processes, all of which
//! must answer alike.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use percid::id::{Reason, Unavailable};
use percid::testing::{self, SpoiltProbe};
use percid::{Choice, Source};

use crate::Verdict;
use crate::options::{Kernel, Options};

/// The exit status of a child: what its choice was.
const GOOD: i32 = 10;
const BAD: i32 = 11;
const LATER: i32 = 12;

pub(crate) fn run(options: &Options) -> Verdict {
    if options.probe == SpoiltProbe::No {
        testing::spoil_probe(SpoiltProbe::Always);
    }
    let mut counts = [0; 3];
    let mut times = Vec::new();
    for _ in 0..options.starts {
        let (status, time) = one_child()?;
        let answer = [GOOD, BAD, LATER].iter().position(|&known| known == status);
        counts[answer.ok_or_else(|| format!("a child ended with status {status}"))?] += 1;
        times.push(time.as_micros());
    }
    times.sort_unstable();
    let [good, bad, later] = counts;
    let figures = format!(
        "starts={} good={good} bad={bad} later={later} min_us={} median_us={} max_us={}",
        options.starts,
        times[0],
        times[times.len() / 2],
        times[times.len() - 1],
    );
    let right = match options.expect {
        Some(Kernel::Good) => bad == 0 && good > 0,
        Some(Kernel::Bad) => good == 0 && bad > 0,
        None => (good == 0) != (bad == 0),
    };
    if right { Ok(figures) } else { Err(figures) }
}

/// Lets a child make its choice; its exit status, and how long the choice took.
fn one_child() -> Result<(i32, Duration), String> {
    let shared = shared_word().ok_or("no shared memory")?;
    // SAFETY: the parent has one thread and never used the library, so the child's is a first use.
    match unsafe { libc::fork() } {
        0 => {
            let start = Instant::now();
            let choice = percid::init();
            shared.store(start.elapsed().as_nanos() as u64, Relaxed);
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(status(choice)) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child just made.
            unsafe { libc::waitpid(child, &mut status, 0) };
            if !libc::WIFEXITED(status) {
                return Err(format!("a child ended with wait status {status:#x}"));
            }
            Ok((libc::WEXITSTATUS(status), Duration::from_nanos(shared.load(Relaxed))))
        }
    }
}

fn status(choice: Choice) -> i32 {
    match choice {
        Choice { source: Source::Table, .. } => GOOD,
        Choice { reason: Reason::TableIsNot(Unavailable::SectionsNotAborted), .. } => BAD,
        Choice { reason: Reason::NotKnownYet, .. } => LATER,
        _ => 1,
    }
}

/// A word that parent and children share; mapped once.
fn shared_word() -> Option<&'static AtomicU64> {
    static WORD: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let address = *WORD.get_or_init(|| {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice touches nobody's memory.
        let place = unsafe { libc::mmap(std::ptr::null_mut(), 8, protection, flags, -1, 0) };
        if place == libc::MAP_FAILED { 0 } else { place as usize }
    });
    // SAFETY: the mapping is zeroed, aligned, large enough, and never unmapped.
    (address != 0).then(|| unsafe { &*(address as *const AtomicU64) })
}
