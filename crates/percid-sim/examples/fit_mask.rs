//! Fits three numbers of the workload `linpack` to three published figures: the scheduler's share
//! of cycles before and after test-before-set, and the gain in throughput.
//!
//! ```text
//! cargo run --release -p percid-sim --example fit_mask
//! ```
//!
//! Starts at the workload's file and tries neighbours in ever smaller steps, always with the same
//! seeds. Prints the fitted numbers, and the figures that are not fitted: the latencies.

use percid_sim::mask::{PaperFigures, Parameters, figures};
use percid_sim::published;

/// Seeds whose errors are added up, so that the fit does not follow one seed.
const SEEDS: [u64; 2] = [11, 12];

const NUMBERS: [fn(&mut Parameters) -> &mut f64; 3] =
    [|it| &mut it.work_us, |it| &mut it.scheduler_us, |it| &mut it.alone_speed];

fn main() {
    let target = Target::read();
    let mut best = Parameters::default();
    let mut error = target.error(&best);
    let mut step = 0.08;
    while step > 0.001 {
        let neighbour = NUMBERS
            .iter()
            .flat_map(|number| [1.0 + step, 1.0 / (1.0 + step)].map(|by| (number, by)));
        let neighbours = neighbour.map(|(number, by)| {
            let mut changed = best.clone();
            *number(&mut changed) *= by;
            (target.error(&changed), changed)
        });
        match neighbours.min_by(|(a, _), (b, _)| a.total_cmp(b)) {
            Some((least, changed)) if least < error => (error, best) = (least, changed),
            _ => step /= 2.0,
        }
        let Parameters { work_us, scheduler_us, alone_speed, .. } = best;
        println!("{error:.6} at step {step:.4}: {work_us:.3} {scheduler_us:.4} {alone_speed:.4}");
    }
    println!("{:#?}", figures(&best, SEEDS[0]));
}

/// The published figures, in percent.
struct Target {
    share_before: f64,
    share_after: f64,
    gain: f64,
}

impl Target {
    fn read() -> Target {
        let rows = published::mask();
        let row = |metric: &str| {
            rows.iter().find(|row| row.metric == metric).expect("a metric of the published table")
        };
        let share = row("schedule_share_of_cycles_percent");
        let speed = row("linpack_mean_gflops");
        Target {
            share_before: share.before,
            share_after: share.after,
            gain: 100.0 * (speed.after / speed.before - 1.0),
        }
    }

    /// Returns the sum of the squared relative errors over all seeds.
    fn error(&self, parameters: &Parameters) -> f64 {
        let square = |figure: f64, target: f64| (figure / target - 1.0).powi(2);
        let of = |PaperFigures { share_before, share_after, gain, .. }: PaperFigures| {
            square(share_before, self.share_before)
                + square(share_after, self.share_after)
                + square(gain, self.gain)
        };
        SEEDS.iter().map(|seed| of(figures(parameters, *seed))).sum()
    }
}
