//! `percid bench wander`: the cost for threads that keep changing their CPU.

mod forced;
mod pipes;
mod report;
mod subject;

use std::time::Duration;

use percid::IdLimit;

use super::shuffle::Shuffler;
use crate::busy::Watch;
use crate::deadline::Deadline;
use crate::judged::{Circumstances, Judged};
use percid_command::exit::Failure;
use percid_command::interrupt::Interrupt;
use percid_command::progress::Progress;

pub(crate) use report::{Row, WanderReport};
use subject::{Movement, subjects};

/// Number of kinds of movement for each subject.
const MOVEMENTS: usize = 2;

/// Length of a batch: long compared to the steals at its beginning, before the table assigns extra
/// IDs.
const BATCH: Duration = Duration::from_millis(20);

/// Measures until `length` is over or Ctrl-C is pressed.
pub(crate) fn measure(
    cpus: &[u32],
    length: Duration,
    interrupt: &Interrupt,
) -> Result<Judged<WanderReport>, Failure> {
    let progress = Progress::new("bench wander", length);
    let mut subjects = subjects();
    let mut shuffler = Shuffler::new(1);
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    let pipes = pipes::Pipes::open()?;
    let deadline = Deadline::new(length, MOVEMENTS * subjects.len());
    let mut watch = Watch::start();
    let mut partial = false;
    while cpus.len() > 1 && !partial && !interrupt.pressed() {
        shuffler.shuffle(&mut order);
        for &index in &order {
            partial |= deadline.is_overdue();
            if partial {
                break;
            }
            let subject = &mut subjects[index];
            subject.measure(|counter| forced::batch(cpus, counter, BATCH), Movement::Forced)?;
            watch.look(0);
            subject.measure(|counter| pipes.batch(counter, BATCH), Movement::Pipe)?;
            watch.look(0);
        }
        let (share, left) = deadline.progress();
        progress.at(share, left);
        if deadline.is_reached() {
            break;
        }
    }
    percid::set_id_limit(IdLimit::default());
    forced::everywhere(cpus)?;
    let circumstances = Circumstances { noise: watch.noise(), partial };
    Ok(Judged::new(WanderReport::of(subjects), circumstances))
}
