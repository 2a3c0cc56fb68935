//! The schedule of the process on kernels whose IDs belong to threads or to CPUs (Linux 6.19 and
//! later).
//!
//! Threads start, move from CPU to CPU and end: up to twice as many as CPUs, and down again. So the
//! owners change both ways, while some threads run, others sleep, and one begins or ends. Such a
//! kernel does not depend on ticks or pauses, so nothing here waits for one.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::notes::{APART_ENDS, LOOKS, be_seen, look, pin, sleep, spin};
use crate::random::Random;

/// Number of times that the number of threads rises and falls.
const TIDES: usize = 2;

/// Time that a member stays on its CPU, in milliseconds: the minimum, and the range above it.
const HOLD_MS: (u64, usize) = (4, 8);

/// Lets the threads of a crew start and end.
pub(super) fn follow(cpus: &[u32], random: &mut Random) {
    thread::scope(|scope| {
        for _ in 0..TIDES {
            let mut crew = Vec::new();
            for _ in 0..2 * cpus.len() {
                let busy = set_to_work(&crew, cpus, random);
                crew.push(Member::start(scope));
                await_end_of_work(&crew, &busy);
            }
            while !crew.is_empty() {
                let leaving = crew.swap_remove(random.below(crew.len()));
                let busy = set_to_work(&crew, cpus, random);
                leaving.end();
                await_end_of_work(&crew, &busy);
            }
        }
    });
}

/// Lets some members, and never all CPUs, run beside each other. They begin one after the other,
/// because those that do so at the same time may take IDs in any order.
fn set_to_work(crew: &[Member<'_>], cpus: &[u32], random: &mut Random) -> Vec<usize> {
    let most = crew.len().min(cpus.len() - 1);
    let count = if most == 0 { 0 } else { 1 + random.below(most) };
    let members = some_of(crew.len(), count, random);
    let places = some_of(cpus.len(), count, random);
    for (&member, place) in members.iter().zip(places) {
        let hold = Duration::from_millis(HOLD_MS.0 + random.below(HOLD_MS.1) as u64);
        crew[member].run(Turn { cpu: cpus[place], hold });
        crew[member].answer();
    }
    members
}

fn await_end_of_work(crew: &[Member<'_>], busy: &[usize]) {
    busy.iter().for_each(|&member| crew[member].answer());
}

/// This many different numbers below `end`.
fn some_of(end: usize, count: usize, random: &mut Random) -> Vec<usize> {
    let mut all: Vec<usize> = (0..end).collect();
    (0..count).map(|_| all.swap_remove(random.below(all.len()))).collect()
}

/// The next CPU of a member, and the time to run there.
struct Turn {
    cpu: u32,
    hold: Duration,
}

/// A thread that runs on the CPUs of its orders.
struct Member<'scope> {
    turns: Sender<Turn>,
    /// One answer when it runs, one when it has done its turn.
    answers: Receiver<()>,
    thread: ScopedJoinHandle<'scope, ()>,
}

impl<'scope> Member<'scope> {
    fn start<'env>(scope: &'scope Scope<'scope, 'env>) -> Member<'scope> {
        let (turns, own_turns) = channel();
        let (own_answers, answers) = channel();
        let thread = scope.spawn(move || serve(&own_turns, &own_answers));
        Member { turns, answers, thread }
    }

    fn run(&self, turn: Turn) {
        be_seen();
        let _ = self.turns.send(turn);
    }

    fn answer(&self) {
        be_seen();
        let _ = self.answers.recv();
    }

    /// Lets it end, and waits until the trace has shown that, some time after its ID was taken
    /// back.
    fn end(self) {
        drop(self.turns);
        let _ = self.thread.join();
        sleep(APART_ENDS);
    }
}

fn serve(turns: &Receiver<Turn>, answers: &Sender<()>) {
    look();
    while let Ok(Turn { cpu, hold }) = turns.recv() {
        let end = Instant::now() + hold;
        pin(cpu);
        look();
        let _ = answers.send(());
        while Instant::now() < end {
            spin(LOOKS);
            look();
        }
        be_seen();
        let _ = answers.send(());
    }
}
