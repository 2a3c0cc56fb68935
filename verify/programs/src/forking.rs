//! Children of `fork` start fresh, on a copy of the data, whatever the other threads of the parent
//! did at that moment; and nothing is lost in the parent.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use percid::{Counter, Histogram, Local, Overflow, Ring, Source, Stack, testing};

use crate::length::Length;
use crate::options::Options;
use crate::verdict::Verdict;

/// Number of children at most; fewer if the time is over.
const CHILDREN: u64 = 60;

/// Everything that parents and children use.
struct Structures {
    source: Source,
    counter: Counter,
    histogram: Histogram,
    stack: Stack<u64>,
    local: Local<u64>,
    ring: Ring,
}

impl Structures {
    fn new(source: Source) -> Result<Structures, percid::id::SourceError> {
        Ok(Structures {
            source,
            counter: Counter::with_source(source)?,
            histogram: Histogram::with_source(source)?,
            stack: Stack::with_source(source, 32)?,
            local: <Local<_>>::with_source(source, || 0)?,
            ring: Ring::with_source(source, 4096, Overflow::OverwriteOldest)?,
        })
    }

    /// Uses all structures, as the threads of the parent do all the time.
    fn use_all(&self) {
        self.histogram.record(7);
        let _ = self.stack.push(1);
        self.stack.pop();
        self.local.with(|value| *value += 1);
        let _ = self.ring.append(b"a record of the parent");
    }

    /// Returns `true` if all structures work in a child: nothing waits for threads that do not
    /// exist there.
    fn work_in_child(&self) -> bool {
        let item = 1 << 40;
        self.local.with(|value| *value = 1 << 50);
        let lent = self.local.with(|value| *value >= 1 << 50);
        let mut found = false;
        let pushed = self.stack.push(item).is_ok();
        found |= self.stack.pop() == Some(item);
        self.stack.drain(|drained| found |= drained == item);
        self.histogram.record(7);
        // It overwrites, so there is room; but without sections a thread of the parent may have had
        // the locks, and then the record is counted as lost.
        let lost = self.ring.lost();
        let appended = self.ring.append(b"a record of the child").is_ok();
        let appended = appended || (self.source == Source::Atomic && self.ring.lost() == lost + 1);
        lent && pushed && found && appended
    }
}

pub(crate) fn run(options: &Options) -> Verdict {
    let source = options.source.unwrap_or(percid::init().source);
    let structures = Structures::new(source).map_err(|error| error.to_string())?;
    let counter = &structures.counter;
    let (stop, added) = (AtomicBool::new(false), AtomicI64::new(0));
    let mut children = 0;
    let outcome = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    (0..1000).for_each(|_| counter.add(1));
                    (0..100).for_each(|_| structures.use_all());
                    added.fetch_add(1000, Relaxed);
                }
            });
        }
        // A thread is in the slow path nearly all the time, so that many forks happen during it.
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                testing::while_table_is_locked(std::hint::spin_loop);
            }
        });
        let length = Length::begin(options, 1.0);
        let mut outcome = Ok(());
        while outcome.is_ok() && children < CHILDREN && length.goes_on(children) {
            outcome = one_child(&structures);
            children += 1;
        }
        stop.store(true, Relaxed);
        outcome
    });
    outcome?;
    let (sum, added) = (counter.sum(), added.load(Relaxed));
    let figures = format!("source={source} children={children} sum={sum} added={added}");
    if sum == added { Ok(figures) } else { Err(figures) }
}

fn one_child(structures: &Structures) -> Result<(), String> {
    // SAFETY: the child only does what is allowed after fork in a threaded process: it counts
    // (which is async-signal-safe) and exits.
    match unsafe { libc::fork() } {
        -1 => Err(format!("fork: {}", std::io::Error::last_os_error())),
        // SAFETY: `_exit` runs no handlers of the parent.
        0 => unsafe { libc::_exit(in_child(structures)) },
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

/// Returns the exit status of the child: 0 if everything passed.
fn in_child(structures: &Structures) -> i32 {
    let (counter, source) = (&structures.counter, structures.source);
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
    if !structures.work_in_child() {
        return 4;
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
