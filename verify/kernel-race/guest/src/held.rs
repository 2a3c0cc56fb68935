//! A migration that is late.
//!
//! | CPU | who |
//! |---|---|
//! | 0 | the conductor |
//! | 1, 3, 4, 5 | helpers, which hold the low IDs for a while |
//! | 2 | first the mover, then the settler |
//! | 7 | the mover, later |
//!
//! The mover runs on CPU 2, gets an ID *k* above the helpers', and sleeps. When it is woken up on
//! CPU 7, it tries to take *k* along: CPU 7 marks CPU 2's slot as lazy, finds that no thread of the
//! process runs there, and is held. The settler begins to run on CPU 2, finds the mark, frees *k*
//! and gets it again. The helpers sleep, their IDs expire, and a scan by weight tries to take back
//! *k* as too large: it marks the slot, although the settler runs. Now CPU 7 continues and mistakes
//! that mark for its own.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use percid_race_guest::{Line, Outcome, answer};

use crate::actor::{self, Actor, make_real_time, pin, spin};
use crate::ask::{ask, say};

const SOURCE: u32 = 2;
const DESTINATION: u32 = 7;
const HELPER_CPUS: [u32; 4] = [1, 3, 4, 5];

static HELPERS: [Actor; 4] = [const { Actor::new() }; 4];
static MOVER: Actor = Actor::new();
static SETTLER: Actor = Actor::new();
static ANSWER: AtomicU32 = AtomicU32::new(answer::NONE);

/// Brings the kernel there. The control does all the same; it is the host that does not hold the
/// CPU then.
pub(crate) fn run(control: bool) -> Result<Outcome, String> {
    pin(0, 0);
    for (helper, cpu) in HELPERS.iter().zip(HELPER_CPUS) {
        helper.start(cpu);
    }
    SETTLER.start(SOURCE);
    MOVER.start(SOURCE);
    // Threads of the kernel must not take their CPUs: after a switch a thread may have another ID.
    make_real_time(SETTLER.thread(), 10);
    make_real_time(MOVER.thread(), 10);
    HELPERS.iter().for_each(Actor::run);
    spin(Duration::from_millis(100));
    let arm = Line::Arm { cpu: DESTINATION, answer: ANSWER.as_ptr() as u64, id: 0 };
    ask(&arm, &ANSWER, answer::ARMED)?;

    MOVER.touch();
    let id = MOVER.id();
    // It sleeps, so this changes nothing until it is woken up.
    pin(MOVER.thread(), DESTINATION);
    MOVER.wake_up();
    spin(Duration::from_millis(100));
    if !control && MOVER.cpu() == DESTINATION {
        return Err("the mover went without being caught".to_owned());
    }
    SETTLER.run();
    spin(Duration::from_millis(50));
    HELPERS.iter().for_each(Actor::rest);
    // The IDs of the helpers expire after 100 ms, and a scan comes every 100 ms.
    spin(Duration::from_millis(500));
    // Otherwise a thread of the kernel preempted the settler.
    if !control && SETTLER.id() != id {
        return Err(format!("the settler has ID {}, the mover had {id}", SETTLER.id()));
    }
    ask(&Line::Release { answer: ANSWER.as_ptr() as u64 }, &ANSWER, answer::DONE)?;

    let pair = [&SETTLER, &MOVER];
    let (samples, doubled) = actor::sample(&pair, Duration::from_millis(700));
    say(&Line::Note(format!("IDs at the end: settler {}, mover {}", SETTLER.id(), MOVER.id())));
    let everybody: Vec<&Actor> = HELPERS.iter().chain(pair).collect();
    let (added, kept) = actor::finish(&everybody)?;
    Ok(Outcome { samples, doubled, added, kept })
}
