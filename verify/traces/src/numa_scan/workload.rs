//! The scanned workload: two threads on different nodes that use regions of every kind. One of the
//! regions is mapped and unmapped repeatedly, and one of the threads is bound for a while.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::regions::{Kind, Region, set_thread_policy};
use crate::cpus;

/// The name of this part of the program.
pub(crate) const NAME: &str = "numa-scan-workload";

/// For how long it runs.
const LENGTH: Duration = Duration::from_secs(16);

/// It goes by steps; a cycle has this many.
const STEP: Duration = Duration::from_millis(500);
const CYCLE: usize = 12;

/// Threads that do nothing but count, so that a region may be left out in more sequences before the
/// scan comes to its rescue.
const SLEEPERS: usize = 4;

pub(crate) fn run() -> Result<(), String> {
    play().map_err(|error| format!("the workload: {error}"))
}

fn play() -> io::Result<()> {
    let path = std::env::temp_dir().join(format!("percid-numa-scan-{}", std::process::id()));
    std::fs::write(&path, vec![1; 2 << 20])?;
    let file = File::options().read(true).write(true).open(&path)?;
    std::fs::remove_file(&path)?;
    let hot = Kind::PRIVATE.map(2, None)?;
    let both = Kind::PRIVATE.map(2, None)?;
    let others = Kind::PRIVATE.map(3, None)?;
    let at_times = Kind::PRIVATE.map(2, None)?;
    let of_file = Kind::OF_FILE.map(1, Some(&file))?;
    let balancing = Kind::BALANCING.map(1, None)?;
    for kind in [Kind::PRIVATE, Kind::SHARED, Kind::HIDDEN, Kind::BOUND] {
        kind.map(1, None)?;
    }
    Kind::READ_ONLY.map(1, Some(&file))?.touch();
    let stop = AtomicBool::new(false);
    let cpus = cpus::of_class("online").map_err(io::Error::other)?;
    let last = cpus.last().copied().unwrap_or(0);
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            // If it cannot be moved, it uses memory of one node only, and the scan differs.
            let _ = cpus::restrict(&[last]);
            until(&stop, || [both, others].iter().for_each(Region::touch));
        });
        for _ in 0..SLEEPERS {
            scope.spawn(|| until(&stop, || thread::sleep(STEP)));
        }
        let _ = cpus::restrict(&[0]);
        let done = steps([hot, both, of_file, balancing], at_times);
        stop.store(true, Relaxed);
        done
    });
    drop(file);
    done
}

fn until(stop: &AtomicBool, mut action: impl FnMut()) {
    while !stop.load(Relaxed) {
        action();
    }
}

/// Returns `true` if the kernel reports the regions that a pass skips. If it does not, no trace
/// shows that a thread is bound, so none is.
fn tells_skips() -> bool {
    Path::new("/sys/kernel/tracing/events/sched/sched_skip_vma_numa").exists()
}

/// Runs the first thread.
fn steps(always: [Region; 4], at_times: Region) -> io::Result<()> {
    let began = Instant::now();
    let bound = tells_skips();
    let mut guest: Option<Region> = None;
    for step in (0..CYCLE).cycle() {
        if began.elapsed() >= LENGTH {
            break;
        }
        match step {
            3 => set_thread_policy(bound)?,
            5 => set_thread_policy(false)?,
            7 => guest = Some(Kind::PRIVATE.map(2, None)?),
            11 => guest.take().into_iter().for_each(Region::unmap),
            _ => {}
        }
        let end = Instant::now() + STEP;
        while Instant::now() < end {
            always.iter().for_each(Region::touch);
            if step < 3 {
                at_times.touch();
            }
            if step < 9 {
                guest.iter().for_each(Region::touch);
            }
        }
    }
    Ok(())
}
