//! Threads that work on a structure while they are interrupted, moved, ended and begun again, and
//! while the process forks.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Threads that work at any time.
const THREADS: usize = 8;

/// The environment variable with the duration of each stress in seconds.
const SECONDS: &str = "PERCID_STRESS_SECONDS";
const DEFAULT_SECONDS: u64 = 2;

/// Operations of a thread until another one takes its place.
const LIFE: u64 = 2000;

/// The share of the disturbances that are forks.
const FORKS: u64 = 64;

/// The pause between two disturbances.
const PAUSE: Duration = Duration::from_micros(100);

/// The stress that handlers work for. One runs at a time.
static HANDLED: AtomicPtr<Stress<'static>> = AtomicPtr::new(ptr::null_mut());
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A function that returns `true` if it has found no fault.
type Check<'s> = &'s (dyn Fn() -> bool + Sync);

/// The work on a structure.
pub(super) struct Work<'s> {
    /// An operation of a thread, which gets a random number. It panics at a fault.
    pub(super) operate: &'s (dyn Fn(u64) + Sync),
    /// The work of a signal handler. It must be async-signal-safe.
    pub(super) interrupt: Check<'s>,
    /// The work of a child, whose only thread it runs on: it must not allocate.
    pub(super) fork: Check<'s>,
}

/// A stress that runs.
struct Stress<'s> {
    work: Work<'s>,
    end: AtomicBool,
    /// The threads, by their place; 0 where none runs. Nobody ends a thread while it is signalled.
    threads: [Mutex<libc::pid_t>; THREADS],
    /// `true` if a handler or a child has found a fault.
    fault: AtomicBool,
    counts: Counts,
}

/// Numbers of what has happened.
#[derive(Debug, Default)]
struct Counts {
    operations: AtomicU64,
    threads: AtomicU64,
    signals: AtomicU64,
    moves: AtomicU64,
    forks: AtomicU64,
}

/// Runs a stress for its time, and longer until enough has happened.
pub(super) fn run(work: Work<'_>) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let stress = Stress {
        work,
        end: AtomicBool::new(false),
        threads: [const { Mutex::new(0) }; THREADS],
        fault: AtomicBool::new(false),
        counts: Counts::default(),
    };
    install_handler();
    HANDLED.store(ptr::from_ref(&stress).cast_mut().cast(), SeqCst);
    let end = Instant::now() + Duration::from_secs(seconds());
    thread::scope(|scope| {
        for place in 0..THREADS {
            let stress = &stress;
            scope.spawn(move || stress.replace(place));
        }
        let mut random = Random::new(THREADS as u64);
        let is_over = || Instant::now() >= end && stress.counts.are_enough();
        while !is_over() && !stress.end.load(Acquire) {
            stress.disturb(&mut random);
            thread::sleep(PAUSE);
        }
        stress.end.store(true, Release);
    });
    HANDLED.store(ptr::null_mut(), SeqCst);
    assert!(!stress.fault.into_inner(), "a handler or a child has found a fault");
    println!("{:?}", stress.counts);
}

fn seconds() -> u64 {
    let given = std::env::var(SECONDS).ok().and_then(|seconds| seconds.parse().ok());
    given.unwrap_or(DEFAULT_SECONDS)
}

impl Counts {
    /// Returns `true` if each disturbance has happened several times, and much was done meanwhile.
    fn are_enough(&self) -> bool {
        let Counts { operations, threads, signals, moves, forks } = self;
        let disturbances = [threads, signals, moves, forks];
        operations.load(Relaxed) >= 10_000
            && disturbances.into_iter().all(|count| count.load(Relaxed) >= 10)
    }
}

fn count(count: &AtomicU64) -> u64 {
    count.fetch_add(1, Relaxed)
}

impl Stress<'_> {
    /// Runs one thread after the other at a place. The first panic ends the stress.
    fn replace(&self, place: usize) {
        while !self.end.load(Acquire) {
            let seed = count(&self.counts.threads) + 1;
            let ended = thread::scope(|scope| scope.spawn(|| self.live(place, seed)).join());
            if let Err(panic) = ended {
                self.end.store(true, Release);
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// The life of a thread.
    fn live(&self, place: usize, seed: u64) {
        /// Takes the thread out of the list, also when it panics.
        struct Listed<'l>(&'l Mutex<libc::pid_t>);
        impl Drop for Listed<'_> {
            fn drop(&mut self) {
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = 0;
            }
        }

        let listed = Listed(&self.threads[place]);
        *listed.0.lock().unwrap_or_else(PoisonError::into_inner) = thread_id();
        let mut random = Random::new(seed);
        for _ in 0..LIFE {
            if self.end.load(Relaxed) {
                return;
            }
            (self.work.operate)(random.next());
            count(&self.counts.operations);
        }
    }

    /// Disturbs a thread, or forks.
    fn disturb(&self, random: &mut Random) {
        if random.below(FORKS) == 0 {
            return self.fork();
        }
        let place = random.below(THREADS as u64) as usize;
        let thread = self.threads[place].lock().unwrap_or_else(PoisonError::into_inner);
        if *thread == 0 {
            return;
        }
        if random.below(2) == 0 {
            // SAFETY: no pointers; the thread lives as long as its entry is locked.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), *thread, signal_number()) };
        } else if move_thread(*thread, random) {
            count(&self.counts.moves);
        }
    }

    fn fork(&self) {
        // SAFETY: the child calls only functions that are allowed in a child of several threads.
        match unsafe { libc::fork() } {
            0 => {
                let status = c_int::from(!(self.work.fork)());
                // SAFETY: it does not return.
                unsafe { libc::_exit(status) }
            }
            child => self.wait(child),
        }
    }

    fn wait(&self, child: libc::pid_t) {
        assert!(child > 0, "cannot fork");
        let mut status = 0;
        // SAFETY: a child of this process, and a place for its status.
        while unsafe { libc::waitpid(child, &raw mut status, 0) } != child {}
        if status != 0 {
            self.fault.store(true, SeqCst);
        }
        count(&self.counts.forks);
    }
}

/// Returns the kernel's number of the calling thread.
fn thread_id() -> libc::pid_t {
    // SAFETY: no arguments.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// Binds a thread to one CPU, or to all that this process may use. Returns `true` if it did.
fn move_thread(thread: libc::pid_t, random: &mut Random) -> bool {
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of CPUs is plain memory, for which zeros are the empty set; both calls get one
    // of that size.
    unsafe {
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, bytes, &raw mut all);
        let cpus: Vec<usize> =
            (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &all)).collect();
        let mut chosen = all;
        if random.below(2) == 0 {
            chosen = std::mem::zeroed();
            libc::CPU_SET(cpus[random.below(cpus.len() as u64) as usize], &mut chosen);
        }
        libc::sched_setaffinity(thread, bytes, &raw const chosen) == 0
    }
}

fn signal_number() -> c_int {
    libc::SIGRTMAX() - 1
}

fn install_handler() {
    // SAFETY: zeros are a valid action, and the handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal_number(), &raw const action, ptr::null_mut()), 0);
    }
}

extern "C" fn handle(_: c_int) {
    // SAFETY: a thread is only signalled while its stress runs, and ends before that does.
    let stress = unsafe { &*HANDLED.load(SeqCst) };
    if !(stress.work.interrupt)() {
        stress.fault.store(true, SeqCst);
    }
    count(&stress.counts.signals);
}

/// A generator of random numbers: Marsaglia's xorshift with the shifts 13, 7, 17.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
