//! A process most of whose threads do nothing.

use std::sync::Barrier;

use super::Outcome;
use super::following::{BYTES, Scene};
use crate::numa::area::{Area, PAGE};

/// Number of threads. Checking all of them takes emulated Arm CPUs longer.
const THREADS: usize = if cfg!(target_arch = "x86_64") { 2000 } else { 500 };
const STACK: usize = 64 << 10;
/// Maximum share of balancing in the run time of all threads.
const MOST: f64 = 0.03;

/// Checks that threads which have used the memory once and then wait delay nothing, and cost
/// little: the memory that one of them continues to use follows it.
pub(super) fn idle() -> Outcome {
    let scene = Scene::new(Area::new(BYTES)?)?;
    let (used, end) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let (scene, used, end) = (&scene, &used, &end);
            let body = move || {
                scene.region.touch(number % scene.area.pages() * PAGE);
                used.wait();
                end.wait();
            };
            let thread = std::thread::Builder::new().stack_size(STACK);
            // A thread that is missing would keep the others waiting.
            let spawned = thread.spawn_scoped(scope, body);
            spawned.expect("memory for a small stack");
        }
        used.wait();
        let followed = scene.follows().and_then(|()| scene.goes_on());
        end.wait();
        followed
    })?;
    // A look at all threads takes several system calls for each.
    let share = scene.balancer.report().scan_share();
    eprint!(" scan share {share:.4};");
    if share <= MOST { Ok(None) } else { Err(format!("scan share {share:.4}")) }
}
