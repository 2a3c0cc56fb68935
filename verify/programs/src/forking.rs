//! Children of `fork` start fresh, on a copy of the data, whatever the other threads of the parent did at
//! that moment; and nothing is lost in the parent.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use percid::{Counter, Source, testing};

use crate::Verdict;
use crate::options::Options;

const CHILDREN: usize = 60;

pub(crate) fn run(options: &Options) -> Verdict {
    let source = options.source.unwrap_or(percid::init().source);
    let counter = Counter::with_source(source).map_err(|error| error.to_string())?;
    let (stop, added) = (AtomicBool::new(false), AtomicI64::new(0));
    let outcome = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    (0..1000).for_each(|_| counter.add(1));
                    added.fetch_add(1000, Relaxed);
                }
            });
        }
        // Somebody is in the slow path nearly all the time, so that many forks happen meanwhile.
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                testing::while_table_is_locked(std::hint::spin_loop);
            }
        });
        let outcome = (0..CHILDREN).try_for_each(|_| one_child(&counter, source));
        stop.store(true, Relaxed);
        outcome
    });
    outcome?;
    let (sum, added) = (counter.sum(), added.load(Relaxed));
    let figures = format!("source={source} children={CHILDREN} sum={sum} added={added}");
    if sum == added { Ok(figures) } else { Err(figures) }
}

fn one_child(counter: &Counter, source: Source) -> Result<(), String> {
    // SAFETY: the child only does what is allowed after fork in a threaded process: it counts (which is
    // async-signal-safe) and exits.
    match unsafe { libc::fork() } {
        -1 => Err(format!("fork: {}", std::io::Error::last_os_error())),
        // SAFETY: `_exit` runs no handlers of the parent.
        0 => unsafe { libc::_exit(in_child(counter, source)) },
        child => {
            let mut status = 0;
            // SAFETY: waits for the child just made.
            unsafe { libc::waitpid(child, &mut status, 0) };
            match status {
                0 => Ok(()),
                other => Err(format!("a child ended with status {other:#x}")),
            }
        }
    }
}

/// The exit status: 0 if all is well.
fn in_child(counter: &Counter, source: Source) -> i32 {
    let before = counter.sum();
    (0..10_000).for_each(|_| counter.add(1));
    if counter.sum() != before + 10_000 {
        return 1;
    }
    // One thread: it must get ID 0 however many the parent had, and the lock must be free.
    if source == Source::Table
        && (source.current_id() != Some(0) || testing::table_ids_in_use() != Some(1))
    {
        return 2;
    }
    // Children of children.
    // SAFETY: as in `one_child`.
    match unsafe { libc::fork() } {
        // SAFETY: as in `one_child`.
        0 => unsafe {
            counter.add(1);
            libc::_exit(i32::from(counter.sum() != before + 10_001))
        },
        child => {
            let mut status = 0;
            // SAFETY: as in `one_child`.
            unsafe { libc::waitpid(child, &mut status, 0) };
            if status == 0 { 0 } else { 3 }
        }
    }
}
