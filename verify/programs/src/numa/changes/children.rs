//! Children that are made while other threads are within the balancer, whatever they have locked.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use percid_numa::{AccessMethod, Balancer, Region};

use super::Outcome;
use super::following::BYTES;
use crate::numa::area::{Area, PAGE};
use crate::numa::armed::{UNHARMED, balancer, ends_with};
use crate::numa::follow::register;

const CHILDREN: usize = 200;
/// Time limit of a child in seconds: one that waits for a lock without an owner is killed.
const PATIENCE: u32 = 10;

/// Checks that a child may report, exclude and drop the regions of its parent, and balance by
/// itself.
pub(super) fn of_passes() -> Outcome {
    let (balancer, area, other) = (balancer()?, Area::new(BYTES)?, Area::new(BYTES)?);
    let mut region = Some(register(&balancer, &area, AccessMethod::Reported)?);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| work_until(&stop, &balancer, &other));
        }
        let outcome = (0..CHILDREN).try_for_each(|_| {
            let ended = ends_with(|| {
                // SAFETY: the signal's default effect is wanted.
                unsafe { libc::alarm(PATIENCE) };
                if let Err(why) = as_a_child(&balancer, region.take(), &area) {
                    eprintln!("in a child: {why}");
                    // SAFETY: ends the child.
                    unsafe { libc::_exit(1) };
                }
            })?;
            if ended == UNHARMED { Ok(()) } else { Err(format!("a child ended with {ended}")) }
        });
        stop.store(true, Relaxed);
        outcome
    })?;
    Ok(None)
}

/// Takes every lock of the balancer time after time.
fn work_until(stop: &AtomicBool, balancer: &Balancer, area: &Area) {
    while !stop.load(Relaxed) {
        balancer.pass();
        let Ok(region) = register(balancer, area, AccessMethod::Reported) else { return };
        (0..area.pages()).for_each(|page| region.touch(page * PAGE));
        balancer.report();
        balancer.take_events();
    }
}

fn as_a_child(balancer: &Balancer, region: Option<Region>, area: &Area) -> Result<(), String> {
    balancer.pass();
    balancer.report();
    balancer.take_events();
    let region = region.ok_or("no region")?;
    region.touch(0);
    drop(region.exclude(0..PAGE));
    drop(region);
    let own = super::super::armed::balancer()?;
    let region = register(&own, area, AccessMethod::Reported)?;
    own.pass();
    region.touch(0);
    drop(region);
    Ok(())
}
