//! `percid bench wander`: what it costs threads that keep changing their CPU.

mod forced;
mod pipes;
mod report;
mod subject;

use std::time::{Duration, Instant};

use percid::Density;

use super::shuffle::Shuffler;
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::progress::Progress;

pub(crate) use report::{Row, WanderReport};
use subject::{Movement, subjects};

/// A batch's length: long against the steals with which each begins, before the table hands out
/// extra IDs.
const BATCH: Duration = Duration::from_millis(20);

/// Measures until `length` is over or Ctrl-C is pressed.
pub(crate) fn measure(
    cpus: &[u32],
    length: Duration,
    interrupt: &Interrupt,
) -> Result<WanderReport, Failure> {
    let began = Instant::now();
    let progress = Progress::new("bench wander", length);
    let mut subjects = subjects();
    let mut shuffler = Shuffler::new(1);
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    let pipes = pipes::Pipes::open()?;
    while cpus.len() > 1 && !interrupt.pressed() {
        shuffler.shuffle(&mut order);
        for &index in &order {
            let subject = &mut subjects[index];
            subject.measure(|counter| forced::batch(cpus, counter, BATCH), Movement::Forced)?;
            subject.measure(|counter| pipes.batch(counter, BATCH), Movement::Pipe)?;
        }
        let elapsed = began.elapsed();
        progress.at(elapsed.div_duration_f64(length), length.saturating_sub(elapsed));
        if elapsed >= length {
            break;
        }
    }
    percid::set_density(Density::default());
    forced::everywhere(cpus)?;
    Ok(WanderReport::of(subjects))
}
