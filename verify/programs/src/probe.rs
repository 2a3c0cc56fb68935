//! The probe of the kernel at the first use, in many new processes, all of which must agree.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use percid::id::{SelectionReason, SourceError};
use percid::testing::{self, SpoiltProbe};
use percid::{Source, SourceSelection};

use crate::length::becomes;
use crate::options::{Kernel, Options};
use crate::verdict::Verdict;

/// The exit status of a child: what its first choice was, or that of a later try.
const GOOD: i32 = 10;
const BAD: i32 = 11;
const GOOD_LATER: i32 = 12;
const BAD_LATER: i32 = 13;
const NEVER: i32 = 14;

pub(crate) fn run(options: &Options) -> Verdict {
    if options.probe == SpoiltProbe::No {
        testing::spoil_probe(SpoiltProbe::Always);
    }
    let mut counts = [0; 5];
    let mut times = Vec::new();
    for _ in 0..options.starts {
        let (status, time) = one_child()?;
        let known = [GOOD, BAD, GOOD_LATER, BAD_LATER, NEVER];
        let answer = known.iter().position(|&known| known == status);
        counts[answer.ok_or_else(|| format!("a child ended with status {status}"))?] += 1;
        times.push(time.as_micros());
    }
    times.sort_unstable();
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return Err("--starts 0 tries nothing".to_owned());
    };
    let [first_good, first_bad, good_later, bad_later, never] = counts;
    let (good, bad) = (first_good + good_later, first_bad + bad_later);
    let figures = format!(
        "starts={} good={good} bad={bad} later={} never={never} min_us={} median_us={} max_us={}",
        options.starts,
        good_later + bad_later,
        first,
        times[times.len() / 2],
        last,
    );
    let right = match options.expect {
        Some(Kernel::Good) => bad == 0 && never == 0,
        Some(Kernel::Bad) => good == 0 && never == 0,
        None => never == 0 && (good == 0 || bad == 0),
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
            let first = percid::init();
            shared.store(start.elapsed().as_nanos() as u64, Relaxed);
            // SAFETY: ends the child without the parent's exit handlers.
            unsafe { libc::_exit(in_the_end(first)) }
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

/// Returns the exit status for a choice, or for that of a later try if there was no time for the
/// first.
fn in_the_end(first: SourceSelection) -> i32 {
    let mut choice = first;
    becomes(|| {
        choice = percid::init();
        choice.reason != SelectionReason::ProbeInconclusive
    });
    let later = first.reason == SelectionReason::ProbeInconclusive;
    match choice {
        SourceSelection { source: Source::Table, .. } if later => GOOD_LATER,
        SourceSelection { source: Source::Table, .. } => GOOD,
        SourceSelection {
            reason: SelectionReason::TableUnavailable(SourceError::SectionsNotAborted),
            ..
        } if later => BAD_LATER,
        SourceSelection {
            reason: SelectionReason::TableUnavailable(SourceError::SectionsNotAborted),
            ..
        } => BAD,
        SourceSelection { reason: SelectionReason::ProbeInconclusive, .. } => NEVER,
        other => {
            eprintln!("{other:?}");
            1
        }
    }
}

/// Returns a word that parent and children share; mapped once.
fn shared_word() -> Option<&'static AtomicU64> {
    static WORD: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let address = *WORD.get_or_init(|| {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let place = unsafe { libc::mmap(std::ptr::null_mut(), 8, protection, flags, -1, 0) };
        if place == libc::MAP_FAILED { 0 } else { place as usize }
    });
    // SAFETY: the mapping is zeroed, aligned, large enough, and never unmapped.
    (address != 0).then(|| unsafe { &*(address as *const AtomicU64) })
}
