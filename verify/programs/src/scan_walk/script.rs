//! The script of the two threads.

use std::fs::File;
use std::io;
use std::sync::{Barrier, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::memory::{self, Kind, Policy, Region, Snapshot};
use super::tracing::Tracing;
use crate::pinning;

/// The script goes by steps.
pub(crate) const STEP: Duration = Duration::from_millis(250);
/// The threads. Two of them run, one at a time; the others only count, so that a region may be left
/// out in more sequences before the scan comes to its rescue.
pub(crate) const THREADS: usize = 6;
/// After this many steps the script begins again.
const CYCLE: usize = 24;
/// Snapshots in a cycle.
const CHANGES: usize = 3;

/// The regions, in the order of their mapping.
struct Regions {
    /// Touched by the first thread all the time.
    hot: Region,
    /// Touched by the second one when it runs.
    other: Region,
    /// Touched by the first one for a while in each cycle.
    at_times: Region,
    /// A file's pages, private and writable: touched all the time.
    file: Region,
    /// Bound, and yet pages may move.
    balancing: Region,
    /// Never touched again, or never scanned.
    rest: Vec<Region>,
    /// Comes and goes.
    guest: Option<Region>,
}

impl Regions {
    fn map() -> io::Result<Regions> {
        let path = std::env::temp_dir().join(format!("percid-scan-walk-{}", std::process::id()));
        std::fs::write(&path, vec![1; memory::HUGE])?;
        let file = File::options().read(true).write(true).open(&path)?;
        std::fs::remove_file(&path)?;
        let one = Kind { chunks: 1, ..Kind::PRIVATE };
        let of_file = Kind { flags: libc::MAP_PRIVATE, ..one };
        let bound = |policy| Kind { policy: Some(policy), ..one };
        let shared = Kind { flags: libc::MAP_SHARED | libc::MAP_ANONYMOUS, ..one };
        let mut regions = Regions {
            hot: Kind::PRIVATE.map(None)?,
            rest: vec![Kind::PRIVATE.map(None)?],
            other: Kind::PRIVATE.map(None)?,
            at_times: Kind::PRIVATE.map(None)?,
            file: of_file.map(Some(&file))?,
            balancing: bound(Policy::Balancing).map(None)?,
            guest: None,
        };
        regions.rest.extend([bound(Policy::Fixed).map(None)?, shared.map(None)?, one.map(None)?]);
        regions.writable().for_each(|region| region.fill());
        let read_only = Kind { access: libc::PROT_READ, ..of_file }.map(Some(&file))?;
        read_only.touch();
        regions.rest.push(read_only);
        regions.rest.push(Kind { access: libc::PROT_NONE, ..one }.map(None)?);
        // There may be none.
        let huge = Kind { flags: one.flags | libc::MAP_HUGETLB, ..one };
        regions.rest.extend(huge.map(None));
        Ok(regions)
    }

    fn writable(&self) -> impl Iterator<Item = Region> {
        let named = [self.hot, self.other, self.at_times, self.file, self.balancing];
        named.into_iter().chain(self.rest.clone())
    }

    fn all(&self) -> impl Iterator<Item = Region> {
        self.writable().chain(self.guest)
    }
}

/// Whose turn it is, and whether all is over.
struct Turn {
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Turn {
    fn give(&self, thread: usize) {
        self.state.lock().expect("no thread panics").0 = thread;
        self.changed.notify_all();
    }

    /// Waits for a turn. `false` if there is none any more.
    fn take(&self, thread: usize) -> bool {
        let mut state = self.state.lock().expect("no thread panics");
        while state.0 != thread && !state.1 {
            state = self.changed.wait(state).expect("no thread panics");
        }
        !state.1
    }

    fn end(&self) {
        self.state.lock().expect("no thread panics").1 = true;
        self.changed.notify_all();
    }
}

/// Plays the script for this many steps. Returns the snapshots in the order of their marks.
pub(crate) fn play(steps: usize, tracing: &Tracing) -> Result<Vec<Snapshot>, String> {
    let text = |error: io::Error| format!("the script: {error}");
    let mut snapshots: Vec<Snapshot> =
        (0..=CHANGES * (steps / CYCLE + 1)).map(|_| Snapshot::new()).collect();
    let regions = Mutex::new(Regions::map().map_err(text)?);
    let turn = Turn { state: Mutex::new((0, false)), changed: Condvar::new() };
    let started = Barrier::new(THREADS);
    let taken = std::thread::scope(|scope| {
        scope.spawn(|| {
            started.wait();
            while turn.take(1) {
                let region = regions.lock().expect("no thread panics").other;
                run(|| region.touch());
                turn.give(0);
            }
        });
        for sleeper in 2..THREADS {
            let (turn, started) = (&turn, &started);
            scope.spawn(move || {
                started.wait();
                while turn.take(sleeper) {}
            });
        }
        // A thread that starts maps memory of its own.
        started.wait();
        let first = First { tracing, regions: &regions, turn: &turn, taken: 0 };
        let result = first.play(steps, &mut snapshots);
        turn.end();
        result
    })
    .map_err(|error| format!("the script: {error}"))?;
    snapshots.truncate(taken);
    Ok(snapshots)
}

/// Runs for a step.
fn run(mut touch: impl FnMut()) {
    let end = Instant::now() + STEP;
    while Instant::now() < end {
        touch();
    }
}

/// The first thread.
struct First<'a> {
    tracing: &'a Tracing,
    regions: &'a Mutex<Regions>,
    turn: &'a Turn,
    taken: usize,
}

impl First<'_> {
    /// Returns the number of snapshots.
    fn play(mut self, steps: usize, snapshots: &mut [Snapshot]) -> io::Result<usize> {
        self.snapshot(snapshots)?;
        let cpus = pinning::allowed();
        for step in 0..steps {
            // Another CPU each time, so that other nodes come and go.
            pinning::restrict(0, &[cpus[step * 3 % cpus.len()]]);
            self.change(step % CYCLE, snapshots)?;
            self.step(step % CYCLE);
            if step % 3 == 2 {
                self.turn.give(1);
                self.turn.take(0);
            }
        }
        Ok(self.taken)
    }

    fn step(&self, step: usize) {
        let regions = self.regions.lock().expect("no thread panics");
        let at_times = (2..8).contains(&step);
        let guest = regions.guest.filter(|_| step < 18);
        run(|| {
            for region in [regions.hot, regions.file, regions.balancing].iter().chain(&guest) {
                region.touch();
            }
            if at_times {
                regions.at_times.touch();
            }
        });
    }

    fn change(&mut self, step: usize, snapshots: &mut [Snapshot]) -> io::Result<()> {
        match step {
            9 => self.policy(true),
            12 => self.policy(false),
            14 | 19 => {
                let new = Kind::PRIVATE.map(None)?;
                new.fill();
                let old = self.regions.lock().expect("no thread panics").guest.replace(new);
                old.into_iter().for_each(Region::unmap);
                self.snapshot(snapshots)
            }
            22 => {
                let old = self.regions.lock().expect("no thread panics").guest.take();
                old.into_iter().for_each(Region::unmap);
                self.snapshot(snapshots)
            }
            _ => Ok(()),
        }
    }

    fn policy(&self, fixed: bool) -> io::Result<()> {
        memory::set_thread_policy(fixed)?;
        let word = if fixed { "fixed" } else { "default" };
        self.tracing
            .mark(&format!("policy {:x} {word}", pinning::thread_id()))
            .map_err(io::Error::other)
    }

    fn snapshot(&mut self, snapshots: &mut [Snapshot]) -> io::Result<()> {
        let regions = self.regions.lock().expect("no thread panics");
        snapshots[self.taken].take(regions.all())?;
        self.tracing.mark(&format!("map {:x}", self.taken)).map_err(io::Error::other)?;
        self.taken += 1;
        Ok(())
    }
}
