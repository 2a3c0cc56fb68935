//! A thread that is sent from CPU to CPU, around and around.

use std::io;
use std::time::{Duration, Instant};

use percid::Counter;

use super::subject::{Batch, add};
use crate::bench::cpu::{pin_this_thread, pin_this_thread_to};
use percid_command::exit::Failure;

/// Moves between two looks at the clock.
const STRIDE: u64 = 16;

/// Moves for about `length`, with the increments after every move.
pub(super) fn batch(
    cpus: &[u32],
    counter: Option<&Counter>,
    length: Duration,
) -> Result<Batch, Failure> {
    let began = Instant::now();
    let mut moves = 0;
    let mut way = cpus.iter().cycle();
    while began.elapsed() < length {
        for &cpu in way.by_ref().take(STRIDE as usize) {
            pin_this_thread(cpu).map_err(cannot_move)?;
            add(counter);
        }
        moves += STRIDE;
    }
    let wall = began.elapsed();
    everywhere(cpus)?;
    Ok(Batch { moves, wall })
}

/// Lets the calling thread run on all of them again.
pub(super) fn everywhere(cpus: &[u32]) -> Result<(), Failure> {
    pin_this_thread_to(cpus).map_err(cannot_move)
}

fn cannot_move(cause: io::Error) -> Failure {
    Failure::new("cannot change the CPUs of a thread", cause)
}
