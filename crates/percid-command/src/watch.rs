//! Simulations with progress and Ctrl-C.

use std::panic;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use percid_sim::run_control::RunControl;

use crate::interrupt::Interrupt;
use crate::progress::{Progress, WORTH_TELLING};

/// Interval at which the progress of the simulation is read.
const LOOK: Duration = Duration::from_millis(20);

/// Runs `work` on a new thread, reports its progress, and stops it if Ctrl-C is pressed. `total` is
/// its amount of work, if known: see [`RunControl::done`].
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

/// The progress of a simulation.
struct Meter {
    began: Instant,
    progress: Progress,
    total: Option<u64>,
}

impl Meter {
    /// Reports the progress. The length of a simulation is not known beforehand: a short one
    /// reports nothing.
    fn tell(&self, counters: &RunControl) {
        let elapsed = self.began.elapsed();
        if elapsed < WORTH_TELLING {
            return;
        }
        let done = counters.done.load(Ordering::Relaxed);
        match self.total.and_then(|total| time_left(elapsed, done, total)) {
            Some((fraction, left)) => self.progress.at(fraction, left),
            None => self.progress.after(elapsed),
        }
    }
}

/// Returns the finished share of the work, and the remaining time if the rest proceeds at the same
/// rate; `None` before anything is done.
fn time_left(elapsed: Duration, done: u64, total: u64) -> Option<(f64, Duration)> {
    let fraction = (done as f64 / total.max(1) as f64).min(1.0);
    (fraction > 0.0).then(|| (fraction, elapsed.mul_f64(1.0 / fraction - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the durations in seconds of runs on two CPUs, in the order in which they begin. The
    /// longest take a hundred times as long as the shortest.
    fn runs() -> Vec<f64> {
        (0..40).map(|n| if n % 5 == 4 { 20.0 } else { 0.2 + 0.3 * f64::from(n % 4) }).collect()
    }

    /// Returns the finished work at a time, and the time of the end. A run counts `units(seconds)`,
    /// and reports its own progress or only its end.
    fn done_at(time: f64, units: fn(f64) -> f64, tells_all_along: bool) -> (f64, f64) {
        let (mut free, mut done) = ([0.0f64; 2], 0.0);
        for seconds in runs() {
            let cpu = usize::from(free[1] < free[0]);
            let share = ((time - free[cpu]) / seconds).clamp(0.0, 1.0);
            done += units(seconds) * if tells_all_along { share } else { share.floor() };
            free[cpu] += seconds;
        }
        (done, free[0].max(free[1]))
    }

    /// Returns the ratio of the estimate to the true remaining time, at a share of the whole time.
    fn error_at(share: f64, units: fn(f64) -> f64, tells_all_along: bool) -> f64 {
        let all = done_at(0.0, units, true).1;
        let total = runs().into_iter().map(units).sum::<f64>();
        let (done, _) = done_at(share * all, units, tells_all_along);
        let elapsed = Duration::from_secs_f64(share * all);
        let found = time_left(elapsed, (1e6 * done) as u64, (1e6 * total) as u64);
        let (_, left) = found.expect("something is done");
        left.as_secs_f64() / ((1.0 - share) * all)
    }

    #[test]
    fn the_time_left_is_right_to_a_factor_of_two_where_runs_are_weighed() {
        // Expected events are themselves accurate only within a factor of 1.5.
        let weighed = |seconds: f64| seconds * if seconds > 10.0 { 0.7 } else { 1.4 };
        for percent in [10, 25, 50, 75, 90] {
            let error = error_at(f64::from(percent) / 100.0, weighed, true);
            assert!((0.5..2.0).contains(&error), "at {percent} %: {error}");
        }
    }

    /// The control: unweighted runs.
    #[test]
    fn it_is_not_where_they_are_counted() {
        let worst = [5, 10, 25, 50, 75, 90, 95].map(|percent| {
            let error = error_at(f64::from(percent) / 100.0, |_| 1.0, false);
            error.max(1.0 / error)
        });
        assert!(worst.iter().any(|&error| error > 2.0), "{worst:?}");
    }

    #[test]
    fn nothing_is_told_before_anything_is_done_and_nothing_is_left_at_the_end() {
        let second = Duration::from_secs(1);
        assert_eq!(time_left(second, 0, 7), None);
        assert_eq!(time_left(second, 7, 7), Some((1.0, Duration::ZERO)));
        assert_eq!(time_left(second, 9, 7), Some((1.0, Duration::ZERO)), "more than was expected");
        assert_eq!(time_left(second, 1, 4), Some((0.25, 3 * second)));
    }
}
