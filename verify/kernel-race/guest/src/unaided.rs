//! The late migration without help: a thread is held by chance only.
//!
//! If an emulator has more virtual CPUs than the host has free ones, each of them stops sometimes,
//! for as long as the host's scheduler decides, as under any hypervisor. Here two threads repeat
//! the steps of [`crate::held`]: the mover leaves CPU 1 for CPU 2 and takes its ID *k* along, and
//! at this moment the settler begins to run on CPU 1. If CPU 2 stands between its two
//! compare-exchanges while the settler takes *k* over, and a scan by weight comes, both have *k*.
//!
//! The scan takes back *k* only if a lower ID has become free. A thread that comes to a CPU with an
//! ID frees its own at once (while there are fewer threads than CPUs): the holder does that, on the
//! conductor's CPU, as soon as the settler runs. The settler does the same at the end, so that its
//! CPU has no ID and remembers none.

use std::time::{Duration, Instant};

use percid_race_guest::{Line, Outcome};

use crate::actor::{self, Actor, pin, sample_once, spin};
use crate::ask::say;

const CONDUCTING: u32 = 0;
const SOURCE: u32 = 1;
const DESTINATION: u32 = 2;
const HOLDING: u32 = 3;

static MOVER: Actor = Actor::new();
static SETTLER: Actor = Actor::new();
static HOLDER: Actor = Actor::new();

/// Time limit for a thread to run: if it does not, its CPU stands, and the attempt is over.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_micros(50);
/// Time for which two threads with one ID are left running, to measure the damage.
const AFTERMATH: Duration = Duration::from_millis(100);
const BETWEEN_REPORTS: Duration = Duration::from_secs(30);

/// The counts so far.
#[derive(Default)]
struct Tally {
    attempts: u64,
    /// Attempts in which the mover's ID was above another one in use, as a scan requires.
    favourable: u64,
    doubled: u64,
    migrations: u64,
}

/// Tries for this many seconds.
pub(crate) fn run(seconds: u32) -> Result<Outcome, String> {
    pin(0, CONDUCTING);
    use_all_ids();
    let (began, time) = (Instant::now(), Duration::from_secs(seconds.into()));
    let mut tally = Tally::default();
    let mut reported = began;
    while began.elapsed() < time {
        tally.attempt();
        if reported.elapsed() >= BETWEEN_REPORTS {
            reported = Instant::now();
            tally.report(began);
        }
    }
    tally.report(began);
    let (added, kept) = actor::finish(&[&MOVER, &SETTLER, &HOLDER])?;
    Ok(Outcome { samples: tally.attempts, doubled: tally.doubled, added, kept })
}

/// Uses all IDs. While there are IDs that no thread ever had, these are taken before lower ones
/// that are free.
fn use_all_ids() {
    for (actor, cpu) in [(&MOVER, SOURCE), (&SETTLER, DESTINATION), (&HOLDER, HOLDING)] {
        actor.start(cpu);
        actor.run();
    }
    spin(Duration::from_millis(50));
    for actor in [&MOVER, &SETTLER, &HOLDER] {
        park(actor);
    }
}

impl Tally {
    fn attempt(&mut self) {
        run_once(&HOLDER, HOLDING);
        run_once(&MOVER, SOURCE);
        self.favourable += u64::from(MOVER.id() > HOLDER.id());

        let pair = [&MOVER, &SETTLER];
        let before = pair.map(Actor::turns);
        pin(MOVER.thread(), DESTINATION);
        pin(SETTLER.thread(), SOURCE);
        MOVER.wake_up();
        SETTLER.wake_up();
        wait_until(|| SETTLER.turns() > before[1]);
        park(&HOLDER);
        let both_run = wait_until(|| MOVER.turns() > before[0]);
        self.attempts += 1;
        self.migrations += 6;
        if both_run && sample_once(&pair, Instant::now() + PATIENCE) == Some(true) {
            self.doubled += 1;
            say(&Line::Note(format!("two threads run with ID {}", MOVER.id())));
            actor::nap(AFTERMATH);
        }
        put_to_sleep(&MOVER);
        park(&SETTLER);
    }

    fn report(&self, began: Instant) {
        let (attempts, favourable) = (self.attempts, self.favourable);
        say(&Line::Note(format!(
            "{favourable} of {attempts} attempts with a larger ID than the holder's"
        )));
        say(&Line::Progress {
            attempts,
            doubled: self.doubled,
            migrations: self.migrations,
            seconds: began.elapsed().as_secs(),
        });
    }
}

/// Lets a thread that sleeps run on `cpu`, and sleep again there.
fn run_once(actor: &Actor, cpu: u32) {
    pin(actor.thread(), cpu);
    let before = actor.turns();
    actor.wake_up();
    wait_until(|| actor.turns() > before);
    put_to_sleep(actor);
}

/// Takes a thread to this CPU.
fn park(actor: &Actor) {
    put_to_sleep(actor);
    run_once(actor, CONDUCTING);
}

fn put_to_sleep(actor: &Actor) {
    actor.rest();
    wait_until(|| actor.sleeps());
}

/// Waits asleep: other threads may need this CPU.
fn wait_until(done: impl Fn() -> bool) -> bool {
    let until = Instant::now() + PATIENCE;
    while !done() {
        if Instant::now() >= until {
            return false;
        }
        actor::nap(GLANCE);
    }
    true
}
