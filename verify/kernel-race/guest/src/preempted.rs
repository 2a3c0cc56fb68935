//! A scan that is late.
//!
//! | CPU | who |
//! |---|---|
//! | 0 | the conductor |
//! | 1 | the scanner, an ordinary thread that is busy; the real-time thread |
//! | 2 | the settler |
//! | 3 | the late one |
//! | 4, 5, 6 | holders, which hold the lowest IDs for a while |
//! | 7 | the wanderer, which makes CPUs forget |
//! | 8 | at first, the real-time thread |
//! | 9 | none: only while there are fewer threads than CPUs do CPUs forget |
//!
//! The settler has run on CPU 2 with an ID *k* and sleeps. After 100 ms the scan on CPU 1 tries to
//! take back *k*: it marks CPU 2's slot as lazy and finds that no thread of the process runs there.
//! At this moment a timer interrupt wakes up the real-time thread, which preempts the scanner,
//! because interrupts are on. It wakes up the settler, which finds the mark, frees *k* and gets it
//! again. The real-time thread keeps CPU 1 for longer than the period of scans. The holders sleep
//! by now, so the next scan by weight, on CPU 0, tries to take back *k* as too large, and marks the
//! slot, although the settler runs. Now the real-time thread sleeps, and the first scan mistakes
//! that mark for its own: *k* is free, and the late thread gets it.
//!
//! The late thread gets exactly that ID by preparation. Up to 6.12 the lowest free one is assigned,
//! so the holders hold all below *k*. From 6.13 on it is the one that the CPU had last, so the late
//! thread runs on CPU 3 with *k* before, and CPU 2 remembers none.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use percid_race_guest::{Line, Outcome, answer};

use crate::actor::{self, Actor, make_real_time, nap, pin, spin, spin_until, wait_while};
use crate::ask::{ask, say};

const SCANNING: u32 = 1;
const SETTLING: u32 = 2;
const LATE: u32 = 3;
const HOLDING: [u32; 3] = [4, 5, 6];
const WANDERING: u32 = 7;
const WAITING: u32 = 8;

/// Number of IDs in use while the scanner stands: the conductor's, the scanner's, the settler's. A
/// scan by weight takes back all IDs from this number on.
const RUNNING: u32 = 3;

static SCANNER: Actor = Actor::new();
static REAL_TIME: Actor = Actor::new();
static SETTLER: Actor = Actor::new();
static LATE_ONE: Actor = Actor::new();
static HOLDERS: [Actor; 3] = [const { Actor::new() }; 3];
static WANDERER: Actor = Actor::new();

static ANSWER: AtomicU32 = AtomicU32::new(answer::NONE);
/// The stage of the real-time thread.
static STAGE: AtomicU32 = AtomicU32::new(IDLE);
const IDLE: u32 = 0;
const STALLING: u32 = 1;
const OVER: u32 = 2;

/// Longer than two periods of scans by weight.
const STALL: Duration = Duration::from_millis(600);
/// After this time, an ID that no thread used is free: it expires after 100 ms, and a scan comes
/// every 100 ms.
const EXPIRY: Duration = Duration::from_millis(500);
/// Less than it takes an ID to expire.
const HOLDING_ON: Duration = Duration::from_millis(30);
const MOMENT: Duration = Duration::from_millis(30);

/// Brings the kernel there. In the control the real-time thread comes at any time instead of that
/// moment.
pub(crate) fn run(control: bool) -> Result<Outcome, String> {
    pin(0, 0);
    start();
    use_all_ids();
    forget();
    HOLDERS.iter().for_each(Actor::run);
    spin(MOMENT);
    LATE_ONE.touch();
    spin(EXPIRY);
    let arm = Line::Arm {
        cpu: SCANNING,
        answer: ANSWER.as_ptr() as u64,
        id: SETTLER.id_word().as_ptr() as u64,
    };
    SETTLER.forget_id();
    ask(&arm, &ANSWER, answer::ARMED)?;
    make_real_time(REAL_TIME.thread(), 50);
    make_real_time(SETTLER.thread(), 10);
    SETTLER.touch();
    let id = SETTLER.id();
    if id != LATE_ONE.id() || id < RUNNING {
        return Err(format!("the settler has ID {id}, the late one had {}", LATE_ONE.id()));
    }
    // Their IDs must not expire before the settler has got its own again.
    spin(HOLDING_ON);
    HOLDERS.iter().for_each(Actor::rest);
    if control {
        spin(Duration::from_millis(40));
        ANSWER.store(answer::DONE, Ordering::Release);
    }
    stall()?;
    if !control && SETTLER.id() != id {
        return Err(format!("the settler had ID {id}, and runs with {}", SETTLER.id()));
    }
    measure()
}

/// Waits for the real-time thread. Asleep at first: otherwise the expected scan might run on this
/// CPU.
fn stall() -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs(3);
    while STAGE.load(Ordering::Acquire) == IDLE {
        if Instant::now() > until {
            return Err("no scan came to the place".to_owned());
        }
        nap(MOMENT);
    }
    // From here on scans come here.
    if !spin_until(Duration::from_secs(5), || STAGE.load(Ordering::Acquire) == OVER) {
        return Err("the real-time thread did not come to an end".to_owned());
    }
    spin(MOMENT);
    Ok(())
}

fn start() {
    SCANNER.start(SCANNING);
    REAL_TIME.start_as(WAITING, stall_the_scanner);
    SETTLER.start(SETTLING);
    LATE_ONE.start(LATE);
    for (holder, cpu) in HOLDERS.iter().zip(HOLDING) {
        holder.start(cpu);
    }
    WANDERER.start(WANDERING);
}

/// Uses all IDs. From 6.13 on a CPU that remembers no ID takes one that no thread ever had, if
/// there is one. With all CPUs busy at the same time there are none left.
fn use_all_ids() {
    let all = || HOLDERS.iter().chain([&SCANNER, &SETTLER, &LATE_ONE, &WANDERER, &REAL_TIME]);
    all().for_each(Actor::run);
    spin(MOMENT * 3);
    all().for_each(Actor::rest);
    SCANNER.run();
    REAL_TIME.leave();
    pin(REAL_TIME.thread(), SCANNING);
    spin(EXPIRY);
}

/// Makes CPUs forget their ID: a thread takes it along.
fn forget() {
    for cpu in [SETTLING, LATE].into_iter().chain(HOLDING).chain([WANDERING]) {
        pin(WANDERER.thread(), cpu);
        WANDERER.touch();
    }
    spin(EXPIRY);
}

/// Runs the real-time thread after its time as an ordinary actor.
fn stall_the_scanner(actor: &'static Actor) {
    actor.act();
    while ANSWER.load(Ordering::Acquire) != answer::DONE {
        nap(Duration::from_millis(2));
    }
    SETTLER.run();
    spin(MOMENT);
    STAGE.store(STALLING, Ordering::Release);
    spin(STALL);
    STAGE.store(OVER, Ordering::Release);
    wait_while(&STAGE, OVER);
}

fn measure() -> Result<Outcome, String> {
    HOLDERS.iter().for_each(Actor::run);
    spin(MOMENT);
    LATE_ONE.run();
    spin(MOMENT);
    let pair = [&SETTLER, &LATE_ONE];
    let (samples, doubled) = actor::sample(&pair, Duration::from_millis(700));
    say(&Line::Note(format!(
        "IDs at the end: settler {}, late one {}",
        SETTLER.id(),
        LATE_ONE.id()
    )));
    let everybody: Vec<&Actor> =
        HOLDERS.iter().chain(pair).chain([&SCANNER, &WANDERER, &REAL_TIME]).collect();
    let (added, kept) = actor::finish(&everybody)?;
    Ok(Outcome { samples, doubled, added, kept })
}
