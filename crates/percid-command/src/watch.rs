//! Simulations with progress and Ctrl-C.

use std::panic;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use percid_sim::run_control::RunControl;

use crate::interrupt::Interrupt;
use crate::progress::{Progress, WORTH_TELLING};

/// How often the progress of the simulation is read.
const LOOK: Duration = Duration::from_millis(20);

/// Runs `work` on a thread of its own, reports its progress, and lets it stop if Ctrl-C is pressed.
/// It has `total` runs, if that is known.
pub fn watched<T: Send>(
    label: &str,
    total: Option<u64>,
    interrupt: &Interrupt,
    work: impl FnOnce(&RunControl) -> T + Send,
) -> T {
    let counters = RunControl::default();
    let meter =
        Meter { began: Instant::now(), progress: Progress::new(label, Duration::MAX), total };
    thread::scope(|scope| {
        let worker = scope.spawn(|| work(&counters));
        while !worker.is_finished() {
            if interrupt.pressed() {
                counters.stop.store(true, Ordering::Relaxed);
                thread::sleep(LOOK);
            } else {
                interrupt.sleep(LOOK);
                meter.tell(&counters);
            }
        }
        worker.join().unwrap_or_else(|cause| panic::resume_unwind(cause))
    })
}

/// How far a simulation is.
struct Meter {
    began: Instant,
    progress: Progress,
    total: Option<u64>,
}

impl Meter {
    /// The length of a simulation is not known beforehand: a short one reports nothing.
    fn tell(&self, counters: &RunControl) {
        let elapsed = self.began.elapsed();
        if elapsed < WORTH_TELLING {
            return;
        }
        let done = counters.done.load(Ordering::Relaxed) as f64;
        match self.total {
            Some(total) if done > 0.0 => {
                let fraction = done / total as f64;
                self.progress.at(fraction, elapsed.mul_f64((1.0 / fraction - 1.0).max(0.0)));
            }
            _ => self.progress.after(elapsed),
        }
    }
}
