//! The asymmetric fence: a pair of barriers, of which one costs nothing.
//!
//! # Proof
//!
//! *Asymmetric*: [`light`] is a barrier for the compiler only. [`all`] is the kernel's private
//! expedited `membarrier`: between its call and its return every CPU that runs a thread of the
//! process executes a full barrier, and a thread that does not run has executed one when it was
//! switched out, or will when it is switched in (`membarrier(2)`). Let one thread do `A; light(); B`
//! and another `C; all(); D`. The first thread's full barrier lies before B or after A, since the
//! two are in program order. In the first case C is visible to B. In the second A is visible to D.
//!
//! *Symmetric*: both are `fence(SeqCst)`. One of the two is first in their total order, so the
//! accesses after the other one see those before it.
//!
//! All threads use the same pair, since `is_asymmetric` is decided once in a process. The child of a
//! `fork` inherits the answer; [`all`] registers there if it must.

use std::fmt;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
    fence,
};

use crate::id::fence as kernel_fence;
use crate::sys::errno::ErrnoName;
use crate::sys::{preserving_errno, race_detector};

/// The pair that this process uses.
static PAIR: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = 0;
const ASYMMETRIC: u32 = 1;
const SYMMETRIC: u32 = 2;

/// The error of a fence that the kernel refuses to a process that it was granted to before: the
/// `errno`. A sandbox can have this effect.
///
/// ```
/// if let Err(refused) = percid::fence::all() {
///     println!("cannot fence: {refused}");
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Refused {
    /// The error number of `membarrier`.
    pub errno: i32,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "membarrier is refused: {}", ErrnoName(self.errno))
    }
}

impl std::error::Error for Refused {}

/// The cheap half of the fence, for the side that runs often.
///
/// If one thread does `A; light(); B` and another `C; all()?; D`, then B sees C, or D sees A, or
/// both.
///
/// * **Threads**, **signals**: thread-safe and async-signal-safe.
/// * **Fork**: nothing is to be done in the child.
/// * **Cost**: a load and a test that the CPU predicts, no barrier instruction, if
///   [`is_asymmetric`]; otherwise a full barrier.
///
/// ```
/// use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
/// use percid::fence;
///
/// static READERS: AtomicU64 = AtomicU64::new(0);
/// static CLOSED: AtomicBool = AtomicBool::new(false);
///
/// // The side that runs often: announces itself, and looks.
/// READERS.fetch_add(1, Relaxed);
/// fence::light();
/// let may_read = !CLOSED.load(Relaxed);
///
/// // The other side: closes, and counts. It sees each reader that did not see it.
/// CLOSED.store(true, Relaxed);
/// fence::all()?;
/// assert_eq!((may_read, READERS.load(Relaxed)), (true, 1));
/// # Ok::<(), fence::Refused>(())
/// ```
#[inline]
pub fn light() {
    if PAIR.load(Relaxed) == ASYMMETRIC || is_asymmetric() {
        kernel_fence::light();
    } else {
        fence(SeqCst);
    }
}

/// The costly half of the fence: see [`light`].
///
/// If the fence is [asymmetric](is_asymmetric), it also reaches critical sections. When it returns,
/// each section of this process that was running has been done or aborted; what it stored is
/// visible to the caller, and sections that begin later see what the caller stored before. It does
/// not reach operations that hold a value, as those of [`Source::Atomic`](crate::Source::Atomic)
/// do: [`PerId::settle`](crate::PerId::settle) does.
///
/// * **Threads**, **signals**: thread-safe and async-signal-safe; preserves `errno`.
/// * **Fork**: the child may fence at once.
/// * **Cost**: about 10 us if asymmetric; otherwise a full barrier.
///
/// ```
/// percid::fence::all()?;
/// # Ok::<(), percid::fence::Refused>(())
/// ```
///
/// # Errors
///
/// The kernel refuses the fence, although it was available before. The caller knows nothing about
/// other threads then.
pub fn all() -> Result<(), Refused> {
    if !is_asymmetric() {
        fence(SeqCst);
        return Ok(());
    }
    kernel_fence::all().map_err(|errno| Refused { errno })
}

/// Fences one CPU, like [`all`] for the threads that ran on it when the call began.
///
/// Sections whose thread was on another CPU are not reached. So it is for data of one CPU, such as
/// the value of an ID that percid's table assigns to that CPU.
///
/// The cost is 10 us if the CPU runs a thread of this process, and less than 1 us otherwise.
///
/// ```
/// percid::fence::cpu(0)?;
/// # Ok::<(), percid::fence::Refused>(())
/// ```
///
/// # Errors
///
/// Those of [`all`].
pub fn cpu(cpu: u32) -> Result<(), Refused> {
    if !is_asymmetric() {
        fence(SeqCst);
        return Ok(());
    }
    preserving_errno(|| kernel_fence::cpu(cpu)).map_err(|errno| Refused { errno })
}

/// Returns `true` if [`light`] costs no barrier: on 64-bit Linux from 5.10 on, without a sandbox that
/// refuses `membarrier`, and without a race detector, which would not know this fence.
///
/// The first call registers the process for the fence: 2 us while it has one thread, about 20 ms
/// later. All later calls return the same. Thread-safe, async-signal-safe.
///
/// ```
/// println!("a cheap fence: {}", percid::fence::is_asymmetric());
/// ```
#[must_use]
#[inline]
pub fn is_asymmetric() -> bool {
    match PAIR.load(Relaxed) {
        UNKNOWN => decide(),
        pair => pair == ASYMMETRIC,
    }
}

#[cold]
fn decide() -> bool {
    let available = preserving_errno(kernel_fence::is_available) && !race_detector::is_present();
    let pair = if available { ASYMMETRIC } else { SYMMETRIC };
    // The first answer counts: two threads that disagree would not fence each other.
    PAIR.compare_exchange(UNKNOWN, pair, Relaxed, Relaxed).map_or_else(|first| first, |_| pair)
        == ASYMMETRIC
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;
    use crate::sys::steps::{self, Fence, Step};
    use crate::sys::{errno, set_errno};

    #[test]
    fn all_threads_use_one_pair() {
        let pairs: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(is_asymmetric)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(pairs, [is_asymmetric(); 4]);
        let available = kernel_fence::is_available() && !race_detector::is_present();
        assert_eq!(is_asymmetric(), available);
    }

    #[test]
    fn a_refused_fence_is_an_error_and_leaves_errno_alone() {
        let asymmetric = is_asymmetric();
        let watching = steps::watch(|step| {
            matches!(step, Step::Membarrier(Fence::OfAll | Fence::OfCpu(_)))
                .then_some(Err(steps::REFUSED))
        });
        set_errno(1234);
        let refused = if asymmetric { Err(Refused { errno: steps::REFUSED }) } else { Ok(()) };
        assert_eq!((all(), cpu(0), errno()), (refused, refused, 1234));
        drop(watching);
        assert_eq!((all(), cpu(0)), (Ok(()), Ok(())));
        assert!(Refused { errno: steps::REFUSED }.to_string().starts_with("membarrier is refused"));
    }

    /// Two threads store, fence and load, thousands of times. Without a fence in `all` both loads
    /// miss the other's store in some of these rounds.
    #[test]
    fn of_two_threads_one_sees_the_other() {
        let stores = [const { AtomicBool::new(false) }; 2];
        let arrived = AtomicU32::new(0);
        let meet = |count: usize| {
            arrived.fetch_add(1, SeqCst);
            let mut looks = 0;
            while arrived.load(SeqCst) < count as u32 {
                looks += 1;
                if looks > 1000 { thread::yield_now() } else { std::hint::spin_loop() }
            }
        };
        let run = |own: usize, fence: fn()| {
            let mut missed = Vec::with_capacity(ROUNDS);
            for round in 0..ROUNDS {
                stores[own].store(false, Relaxed);
                meet(4 * round + 2);
                // The two begin at many distances from each other.
                (0..round * (own + 1) % 32).for_each(|_| std::hint::black_box(()));
                stores[own].store(true, Relaxed);
                fence();
                missed.push(!stores[1 - own].load(Relaxed));
                meet(4 * round + 4);
            }
            missed
        };
        let both = thread::scope(|scope| {
            let cold = scope.spawn(|| run(0, || all().expect("it is available")));
            let hot = run(1, light);
            let cold = cold.join().expect("no panic");
            hot.iter().zip(cold).filter(|&(&hot, cold)| hot && cold).count()
        });
        assert_eq!(both, 0, "rounds of {ROUNDS} in which neither saw the other");
    }

    const ROUNDS: usize = if cfg!(miri) { 20 } else { 5000 };
}
