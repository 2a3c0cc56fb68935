//! A thread that is moved from CPU to CPU in a cycle.

use std::io;
use std::time::{Duration, Instant};

use percid::Counter;

use super::subject::{Batch, add};
use crate::bench::cpu::{pin_this_thread, pin_this_thread_to};
use percid_command::exit::Failure;

/// Moves for about `length`, with the increments after every move. Reads the clock after each,
/// because a move takes milliseconds if others use the CPUs.
pub(super) fn batch(
    cpus: &[u32],
    counter: Option<&Counter>,
    length: Duration,
) -> Result<Batch, Failure> {
    let began = Instant::now();
    let mut moves = 0;
    for &cpu in cpus.iter().cycle() {
        if began.elapsed() >= length && moves > 0 {
            break;
        }
        pin_this_thread(cpu).map_err(cannot_move)?;
        add(counter);
        moves += 1;
    }
    let wall = began.elapsed();
    everywhere(cpus)?;
    Ok(Batch { moves, wall })
}

/// Lets the calling thread run on all CPUs again.
pub(super) fn everywhere(cpus: &[u32]) -> Result<(), Failure> {
    pin_this_thread_to(cpus).map_err(cannot_move)
}

fn cannot_move(cause: io::Error) -> Failure {
    Failure::new("cannot change the CPUs of a thread", cause)
}
