//! Simulates the missing units of a store, on all CPUs.

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::watch::watched;
use percid_sim::run_control::RunControl;
use percid_sweep::{Campaign, Directory, Error, Plan, Shard, Unit};

use super::failure::failure;
use super::figures::{FailedUnit, Results};
use super::{merge, space};
use crate::cli::SweepArguments;

/// Interval at which a thread without a unit checks for new ones that another unit's result
/// requires.
const LOOK: Duration = Duration::from_millis(5);

pub(super) fn fill(arguments: &SweepArguments, interrupt: &Interrupt) -> Result<Results, Failure> {
    let plan = Arc::new(space::plan(arguments)?);
    let store = Directory::open(&arguments.store, &plan).map_err(failure)?;
    let shard = arguments.shard.map(|(number, of)| Shard { number, of });
    let mut campaign = Campaign::new(plan.clone(), shard);
    find(&mut campaign, &store).map_err(failure)?;
    let left = campaign.counts().left;
    let work = Work {
        plan: &plan,
        store: &store,
        campaign: Mutex::new(campaign),
        to_do: left,
        fault: Mutex::default(),
    };
    watched("sim sweep", Some(left), interrupt, |control| work.run(control));
    let Work { campaign, fault, .. } = work;
    if let Some(fault) = fault.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(failure(fault));
    }
    let counts = campaign.into_inner().unwrap_or_else(PoisonError::into_inner).counts();
    let is_over = counts.left == 0 && shard.is_none();
    let mut results = Results::new(&arguments.store, &plan, counts);
    results.interrupted = interrupt.pressed() && counts.left > 0;
    if is_over {
        merge::show(&store, &plan, &mut results)?;
    }
    results.failures = failures(&store).map_err(failure)?;
    Ok(results)
}

/// Reports the content of a store to its campaign.
fn find(campaign: &mut Campaign, store: &Directory) -> Result<(), Error> {
    for name in store.runs()? {
        let bytes = if campaign.needs_results() { store.read_runs(&name)? } else { None };
        campaign.found(&name, bytes)?;
    }
    Ok(())
}

fn failures(store: &Directory) -> Result<Vec<FailedUnit>, Error> {
    let failed = |unit: String| Ok(FailedUnit { why: store.read_failure(&unit)?, unit });
    store.failures()?.into_iter().map(failed).collect()
}

/// State shared by all threads.
struct Work<'a> {
    plan: &'a Plan,
    store: &'a Directory,
    campaign: Mutex<Campaign>,
    /// Number of missing runs at the beginning.
    to_do: u64,
    /// The error that stopped the threads.
    fault: Mutex<Option<Error>>,
}

impl Work<'_> {
    /// Computes all units. `control` counts runs.
    fn run(&self, control: &RunControl) {
        // Simulations count events in this one.
        let units = RunControl::default();
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        thread::scope(|scope| {
            let workers: Vec<_> =
                (0..threads).map(|_| scope.spawn(|| self.compute_units(&units, control))).collect();
            while workers.iter().any(|worker| !worker.is_finished()) {
                if control.stop.load(Relaxed) {
                    units.stop.store(true, Relaxed);
                }
                thread::sleep(LOOK);
            }
        });
    }

    fn compute_units(&self, units: &RunControl, control: &RunControl) {
        while !units.stop.load(Relaxed) {
            match self.next() {
                Next::Unit(unit) => match self.compute(unit, units) {
                    Ok(()) => control.done.store(self.over(), Relaxed),
                    Err(Error::Stopped) => return,
                    Err(fault) => {
                        units.stop.store(true, Relaxed);
                        lock(&self.fault).get_or_insert(fault);
                        return;
                    }
                },
                Next::Later => thread::sleep(LOOK),
                Next::Nothing => return,
            }
        }
    }

    fn next(&self) -> Next {
        let mut campaign = lock(&self.campaign);
        match campaign.next() {
            Some(unit) => Next::Unit(unit),
            None if campaign.needs_results() && campaign.counts().left > 0 => Next::Later,
            None => Next::Nothing,
        }
    }

    fn compute(&self, unit: Unit, control: &RunControl) -> Result<(), Error> {
        let name = self.plan.name(unit);
        match self.plan.compute(unit, control) {
            Ok(bytes) => {
                self.store.write_runs(&name, &bytes)?;
                lock(&self.campaign).done(unit, Some(bytes))?;
            }
            Err(Error::Stopped) => return Err(Error::Stopped),
            Err(why) => {
                self.store.write_failure(&name, &why.to_string())?;
                lock(&self.campaign).failed(unit);
            }
        }
        Ok(())
    }

    /// Returns the number of runs that need not be computed any more, of those that were missing.
    fn over(&self) -> u64 {
        self.to_do.saturating_sub(lock(&self.campaign).counts().left)
    }
}

/// The next task of a thread.
enum Next {
    Unit(Unit),
    Later,
    Nothing,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
