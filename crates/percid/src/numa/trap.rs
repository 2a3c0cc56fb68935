//! Access that is trapped: armed memory has no access rights, and the fault of who touches it first is caught.
//!
//! # Why no fault is taken for a crash, and no crash for a fault
//!
//! A grain is armed by setting its bit and then taking the rights away; it is disarmed by giving the rights
//! back and then clearing the bit. Whoever faults at an armed grain disarms it. A fault at a grain that is
//! *not* armed may be late (another thread has disarmed the grain since), or the grain may have lost
//! its rights after its bit was cleared, if a late fault came between the two steps of arming. So the
//! rights are given back there too, and the access is tried again. Afterwards nothing of ours can keep the
//! thread from its access but another arming, which changes the region's generation: so a thread that
//! faults again at the same address in the same generation is not ours to help, and the fault is passed on.
//! While a generation is odd, arming is under way, and the thread tries again for as long as that takes;
//! but not for ever, because a child of `fork` may inherit an odd generation that nobody will end.
//!
//! A fault outside all regions is tried again once, because the region may have been unregistered between
//! the fault and the handler. It is passed on when it comes again. An access to nothing (no mapping) is
//! passed on at once.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, SeqCst},
};

use super::directory::Directory;
use super::pages::{Pages, Shared};
use crate::sys::{fault, memory, thread};

/// Faults in a row at one address that cannot be ours any more.
const TRIES: u32 = 3;
const TRIES_WHILE_ARMING: u32 = 100_000;

/// The trapped regions.
static TRAPPED: Directory = Directory::new();
/// Changes whenever a region is taken out.
static REMOVED: AtomicU32 = AtomicU32::new(0);

/// Sees to it that faults are caught. `false`: another handler was installed since.
pub(super) fn prepare() -> bool {
    fault::install(catch)
}

/// Enters a region. `false`: there are too many.
pub(super) fn insert(pages: &Pages) -> bool {
    TRAPPED.insert(pages)
}

/// Takes a region out, whose memory has its rights back. Answers whether no handler looks at it any more:
/// if one does for a second (a child of `fork` waits for nobody), its memory must stay.
pub(super) fn remove(pages: &Pages) -> bool {
    TRAPPED.remove(pages);
    REMOVED.fetch_add(1, SeqCst);
    TRAPPED.wait_for_lookers()
}

/// Takes the rights of some grains away, after `mark` has armed them. To be called by one thread at a time.
pub(super) fn arm(
    shared: &Shared,
    start: usize,
    bytes: usize,
    mark: impl FnOnce(),
) -> Result<(), i32> {
    shared.generation.fetch_add(1, SeqCst);
    mark();
    // SAFETY: by the contract of a trapped region its memory is mapped; faults there are caught.
    let done = unsafe { memory::protect(start, bytes, libc::PROT_NONE) };
    shared.generation.fetch_add(1, SeqCst);
    done
}

/// Gives the rights of a part back.
pub(super) fn give_back(shared: &Shared, start: usize, bytes: usize) -> Result<(), i32> {
    // SAFETY: these are the rights that the program's memory had when it was registered.
    unsafe { memory::protect(start, bytes, shared.layout.rights) }
}

/// The handler: whether the access at `address` may be tried again. Async-signal-safe.
fn catch(code: i32, address: usize) -> bool {
    if code != fault::ACCESS_ERROR {
        return false;
    }
    TRAPPED.look_up(address, |found| match found {
        Some((shared, grain)) => let_through(shared, grain, address),
        None => repeats(address, REMOVED.load(SeqCst)) < 2,
    })
}

fn let_through(shared: &Shared, grain: usize, address: usize) -> bool {
    let generation = shared.generation.load(Acquire);
    let armed = shared.is_armed(grain);
    if !armed && is_a_crash(address, generation) {
        return false;
    }
    let part = shared.layout.grain(grain);
    if give_back(shared, part.start, part.len()).is_ok() {
        shared.use_armed(grain);
        return true;
    }
    // Every grain with rights of its own is a mapping of its own; there may be too many. One with the same
    // rights everywhere takes none. The bits of the others stay: they count when they are touched, or not.
    shared.disarmed_whole.fetch_add(1, Relaxed);
    let whole = give_back(shared, shared.layout.start, shared.layout.bytes).is_ok();
    if whole {
        shared.use_armed(grain);
    }
    whole
}

fn is_a_crash(address: usize, generation: u32) -> bool {
    let times = repeats(address, generation);
    if generation.is_multiple_of(2) {
        return times >= TRIES;
    }
    fault::pause();
    times >= TRIES_WHILE_ARMING
}

/// How often in a row the calling thread has been here with the same address and generation.
fn repeats(address: usize, generation: u32) -> u32 {
    let block = thread::own();
    // SAFETY: the block is this thread's own, and no other handler interrupts this one.
    let block = unsafe { &mut *block };
    if (block.fault_address, block.fault_generation) != (address, generation) {
        (block.fault_address, block.fault_generation) = (address, generation);
        block.fault_repeats = 0;
    }
    block.fault_repeats += 1;
    block.fault_repeats
}
