//! The recorded program: threads whose number is known, and which note their work.
//!
//! It works in bouts, with pauses between them. The age of an ID is then far from the limit of 100
//! ms whenever the kernel decides by it, so that a recording determines the decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use percid_sim::random::Random;
use percid_trace::event::{Cpu, Tid};

use crate::cpus;

/// Runs the program: `workload NOTES`.
pub(crate) const NAME: &str = "workload";
/// The name of the program that its children execute.
pub(crate) const CHILD: &str = "child";

/// Pause between two bouts: longer than an unused ID is kept.
const PAUSE: Duration = Duration::from_millis(250);

/// The program's notes about itself.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The first thread.
    pub(crate) process: Tid,
    /// The others.
    pub(crate) threads: BTreeMap<Tid, Noted>,
    /// Number of its children.
    pub(crate) children: usize,
}

/// A thread's notes about itself.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Its run time, in nanoseconds.
    pub(crate) run_ns: u64,
    /// The CPUs that it ran on.
    pub(crate) cpus: BTreeSet<Cpu>,
}

impl Notes {
    /// Reads what [`run`] wrote.
    pub(crate) fn read(path: &Path) -> Result<Notes, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("the notes: {error}"))?;
        let mut notes = Notes::default();
        for line in text.lines() {
            notes.take(line).ok_or_else(|| format!("the notes: {line:?}"))?;
        }
        Ok(notes)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        match (words.next()?, words.next()?.parse().ok()?) {
            ("process", number) => self.process = number,
            ("child", _) => self.children += 1,
            ("thread", number) => {
                let run_ns = words.next()?.parse().ok()?;
                let cpus = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
                self.threads.insert(number, Noted { run_ns, cpus });
            }
            _ => return None,
        }
        Some(())
    }

    /// Returns the CPUs that the threads ran on.
    pub(crate) fn cpus(&self) -> BTreeSet<Cpu> {
        self.threads.values().flat_map(|noted| &noted.cpus).copied().collect()
    }
}

/// Runs the program. It ends with its notes in a file.
pub(crate) fn run(notes: Option<OsString>) -> Result<(), String> {
    let path = notes.ok_or("where do the notes go?")?;
    let all = cpus::of_class("online")?;
    cpus::restrict(&all[..1])?;
    let workload = Workload { all, notes: Mutex::new(format!("process {}\n", std::process::id())) };
    workload.everywhere();
    for (seed, threads) in [(1, 3), (2, 5)] {
        thread::sleep(PAUSE);
        workload.wander(seed, threads);
    }
    thread::sleep(PAUSE);
    workload.children()?;
    let notes = workload.notes.into_inner().map_err(|error| error.to_string())?;
    fs::write(path, notes).map_err(|error| format!("the notes: {error}"))
}

struct Workload {
    all: Vec<Cpu>,
    notes: Mutex<String>,
}

impl Workload {
    /// Runs more threads than CPUs: one that stays on each, and half as many without a restriction.
    /// First they run all at once, then some of those that stay, one after the other.
    fn everywhere(&self) {
        let mut places: Vec<&[Cpu]> = self.all.chunks(1).collect();
        places.resize(self.all.len() + self.all.len() / 2, &self.all);
        thread::scope(|scope| {
            let team = Team::start(scope, self, &places);
            team.all(Order::Rounds);
            let some = (0..self.all.len()).rev().step_by(self.all.len().div_ceil(TURNS));
            let delays = (1..).map(|turn| turn * (PAUSE + TURN));
            some.zip(delays).for_each(|(nr, delay)| team.tell(nr, Order::Turn(delay)));
            thread::sleep((TURNS as u32 + 1) * (PAUSE + TURN));
        });
    }

    /// Runs fewer threads than CPUs, which may use other ones in each bout.
    fn wander(&self, seed: u64, threads: usize) {
        thread::scope(|scope| {
            let places = vec![&self.all[..]; threads];
            let team = Team::start(scope, self, &places);
            for bout in 0..BOUTS {
                thread::sleep(PAUSE);
                team.all(|nr| Order::Wander(seed << 32 | bout << 16 | nr as u64));
            }
        });
    }

    /// Starts children that replace their programs: as by `posix_spawn`, and by `fork` if work is
    /// necessary between the two calls.
    fn children(&self) -> Result<(), String> {
        for nr in 0..CHILDREN {
            let this = std::env::current_exe().map_err(|error| error.to_string())?;
            let mut command = Command::new(this);
            command.arg(CHILD);
            if nr % 2 == 1 {
                // SAFETY: what is done there is nothing.
                unsafe { command.pre_exec(|| Ok(())) };
            }
            let mut child = command.spawn().map_err(|error| error.to_string())?;
            self.note(format_args!("child {}", child.id()));
            let status = child.wait().map_err(|error| error.to_string())?;
            if !status.success() {
                return Err(format!("a child ended with {status}"));
            }
        }
        Ok(())
    }

    /// Moves to its place, follows orders until there are no more, and notes its work. A thread
    /// that fails is not noted, and is missing for a reader of the notes.
    fn noted(&self, place: &[Cpu], orders: &Receiver<Order>, done: &Sender<()>) {
        let mut noted = Noted::default();
        let mut work = || {
            cpus::restrict(place)?;
            thread::sleep(Duration::from_millis(1));
            let _ = done.send(());
            let mut next = awake_until_told(orders);
            while let Some(order) = next {
                order.follow(&self.all, &mut noted)?;
                let _ = done.send(());
                next = orders.recv().ok();
            }
            Ok::<(), String>(())
        };
        if let Err(error) = work() {
            eprintln!("a thread of the workload: {error}");
            let _ = done.send(());
            return;
        }
        let words: String = noted.cpus.iter().map(|cpu| format!(" {cpu}")).collect();
        self.note(format_args!("thread {} {}{words}", gettid(), thread_cpu_time()));
    }

    fn note(&self, line: std::fmt::Arguments<'_>) {
        let mut notes = self.notes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Writing to a string cannot fail.
        let _ = writeln!(notes, "{line}");
    }
}

const CHILDREN: u32 = 4;

/// About this many threads run one after the other.
const TURNS: usize = 4;

/// Between the starts of two threads, and between their ends: which of two CPUs went first must not
/// matter.
const APART: Duration = Duration::from_millis(15);

/// Threads that follow orders.
struct Team<'scope> {
    threads: Vec<(Sender<Order>, ScopedJoinHandle<'scope, ()>)>,
    /// Receives a message from each thread that is done.
    done: Receiver<()>,
}

/// An order to a thread.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// To work and rest, in a rhythm that depends on its number.
    Rounds(usize),
    /// To work after a pause, for long enough to be ticked. No other thread runs then.
    Turn(Duration),
    /// To let itself be moved, by chance.
    Wander(u64),
}

impl<'scope> Team<'scope> {
    /// Starts threads, one after the other.
    fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        workload: &'env Workload,
        places: &[&'env [Cpu]],
    ) -> Team<'scope> {
        let (tell, done) = mpsc::channel();
        let mut threads = Vec::new();
        for &place in places {
            let (order, orders) = mpsc::channel();
            let tell = tell.clone();
            let thread = scope.spawn(move || workload.noted(place, &orders, &tell));
            threads.push((order, thread));
            // It has come to its place.
            let _ = done.recv();
        }
        Team { threads, done }
    }

    /// Tells one what to do.
    fn tell(&self, nr: usize, order: Order) {
        // A failed thread reports that itself.
        let _ = self.threads[nr].0.send(order);
    }

    /// Gives an order to all threads, and waits until they have followed it.
    fn all(&self, order: impl Fn(usize) -> Order) {
        let told = (0..).zip(&self.threads).filter(|(nr, (to, _))| to.send(order(*nr)).is_ok());
        let told = told.count();
        self.done.iter().take(told).for_each(drop);
    }
}

/// One after the other ends.
impl Drop for Team<'_> {
    fn drop(&mut self) {
        for (orders, thread) in self.threads.drain(..) {
            thread::sleep(APART);
            drop(orders);
            // The scope hears of a panic too.
            let _ = thread.join();
        }
    }
}

/// Number of times that each of many threads works and rests.
const ROUNDS: usize = 16;

/// Duration of a bout of few threads: shorter than an unused ID is kept.
const BOUT: Duration = Duration::from_millis(50);

/// Number of bouts of the same threads.
const BOUTS: u64 = 2;

/// Long enough for three ticks.
const TURN: Duration = Duration::from_millis(12);

impl Order {
    fn follow(self, all: &[Cpu], noted: &mut Noted) -> Result<(), String> {
        match self {
            Order::Rounds(nr) => {
                for round in nr..nr + ROUNDS {
                    noted.cpus.insert(cpus::current());
                    spin(Duration::from_millis(if round % 8 == 0 { 6 } else { 1 }));
                    rest(round as u64);
                }
            }
            Order::Turn(delay) => {
                thread::sleep(delay);
                spin(TURN);
            }
            Order::Wander(seed) => {
                let mut random = Random::new(seed);
                let first = random.below(all.len() as u64) as usize;
                // Once in a bout: recordings learn the CPUs a tenth of a second later.
                cpus::restrict(match random.below(3) {
                    0 => &all[first..=first],
                    1 => &all[first..],
                    _ => all,
                })?;
                let began = Instant::now();
                while began.elapsed() < BOUT {
                    noted.cpus.insert(cpus::current());
                    spin(Duration::from_micros(500 + random.below(5000)));
                    rest(random.below(3));
                }
            }
        }
        Ok(())
    }
}

/// Waits for the first order, with periodic work, so that no ID is taken back.
fn awake_until_told(orders: &Receiver<Order>) -> Option<Order> {
    loop {
        match orders.recv_timeout(Duration::from_millis(10)) {
            Err(RecvTimeoutError::Timeout) => {}
            told => return told.ok(),
        }
    }
}

/// Sleeps, or lets other threads run first.
fn rest(nr: u64) {
    match nr % 3 {
        0 => thread::yield_now(),
        nr => thread::sleep(Duration::from_millis(nr)),
    }
}

fn spin(duration: Duration) {
    let until = Instant::now() + duration;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

fn gettid() -> Tid {
    // SAFETY: the call has no preconditions.
    unsafe { libc::gettid() as Tid }
}

/// Nanoseconds for which the calling thread has run.
fn thread_cpu_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
