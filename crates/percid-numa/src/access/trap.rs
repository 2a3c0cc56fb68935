//! Trapped accesses: armed memory has no access rights, and the first access faults.
//!
//! # Why no percid fault is reported as a crash, and no crash is ignored
//!
//! A grain is armed by setting its bit and then removing the rights. It is disarmed by restoring
//! the rights and then clearing the bit. A thread that faults at an armed grain disarms it. A fault
//! at a grain that is *not* armed may be late: another thread has disarmed the grain since. Or the
//! grain lost its rights after its bit was cleared, because a late fault came between the two steps
//! of arming. So the rights are restored there too, and the access is retried. Afterwards only
//! another arming can prevent the access, and that changes the region's generation. So a second
//! fault at the same address in the same generation is not percid's, and is passed on. While a
//! generation is odd, arming is under way, and the thread retries until it ends. The number of
//! retries is limited, because a child of `fork` may inherit an odd generation that no thread will
//! end.
//!
//! A fault outside all regions is retried once, because the region may have been unregistered
//! between the fault and the handler. It is passed on if it occurs again before another region was
//! removed. An access to unmapped memory is passed on at once.
//!
//! A thread remembers its last such fault for longer than regions exist, so the numbers that it
//! compares must not be reused with another meaning. The generations of all regions come from one
//! counter, and removals have numbers of their own. A removal changes its number before the region
//! can no longer be found. The counters wrap after 2^30 armings or removals. For a false crash, a
//! thread would have to be late at one address at both ends of exactly that many, and nowhere else
//! in between.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use std::time::Duration;

use crate::access::directory::Directory;
use crate::access::mapping_budget;
use crate::access::pages::{Pages, Shared};
use crate::access::wakeup;
use crate::sys::last_fault::LastFault;
use crate::sys::{fault, last_fault, maps, memory, modules, process};

/// Faults in a row at one address after which the fault is not percid's.
const TRIES: u32 = 3;
const TRIES_WHILE_ARMING: u32 = 100_000;

/// The trapped regions.
static TRAPPED: Directory = Directory::new();
/// The process (its generation) of the thread that inserts or permanently removes a region; 0 if
/// there is none.
static LOCK: AtomicU32 = AtomicU32::new(0);
/// The last generation that began. Generations are multiples of 4, and one more while arming is
/// under way.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Changes whenever a region is removed. Never a generation: 2 more than a multiple of 4.
static REMOVED: AtomicU32 = AtomicU32::new(2);

/// Installs the fault handler if it is not installed; the caller holds the [`DirectoryLock`].
/// Returns `false` if another handler was installed since.
pub(crate) fn prepare() -> bool {
    fault::install(catch)
}

/// Returns `true` if percid's fault handler is installed.
pub(crate) fn is_prepared() -> bool {
    fault::is_installed()
}

/// Returns a generation that no region has had.
fn next_generation() -> u32 {
    GENERATION.fetch_add(4, SeqCst).wrapping_add(4)
}

/// The right to insert regions, which one thread at a time has.
#[derive(Debug)]
pub(crate) struct DirectoryLock(());

impl DirectoryLock {
    /// Waits for the thread that holds the lock. A child of `fork` does not wait for a thread of
    /// its parent.
    fn wait() -> DirectoryLock {
        let me = process::generation();
        let mut free = 0;
        while let Err(holder) = LOCK.compare_exchange(free, me, Acquire, Relaxed) {
            free = if holder == me { 0 } else { holder };
            std::thread::sleep(Duration::from_micros(50));
        }
        DirectoryLock(())
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        LOCK.store(0, Release);
    }
}

/// Waits for the right to insert a region at these addresses. Afterwards all of its memory has its
/// original rights: it overlaps no other trapped region of any balancer, because a region is
/// removed after it was disarmed. So the rights must be looked up after this call. An inherited
/// region at these addresses (in a child of `fork`) is disarmed and permanently removed.
///
/// The error is the start of the region that overlaps.
pub(crate) fn enter(range: &Range<usize>) -> Result<DirectoryLock, usize> {
    let lock = DirectoryLock::wait();
    let found = || {
        TRAPPED
            .overlapping(range, |there| (ptr::from_ref(there), there.layout.start, there.process))
    };
    while let Some((shared, start, process)) = found() {
        if process == process::generation() {
            return Err(start);
        }
        // SAFETY: the bookkeeping of an inherited region is never freed.
        take_out_inherited(unsafe { &*shared });
    }
    Ok(lock)
}

/// Disarms a region of the parent, in a child of `fork`, and removes it, unless that was done
/// before. No thread arms there; locks of the parent are of no use. Its memory must stay forever.
pub(crate) fn disarm_inherited(pages: &Pages) {
    let _lock = DirectoryLock::wait();
    if TRAPPED.has(pages) {
        take_out_inherited(pages);
    }
}

fn take_out_inherited(shared: &Shared) {
    let _ = disarm(shared, 0..shared.layout.grains());
    take_out(shared);
}

/// Returns the first address in the range that the handler itself reads or writes: if it were
/// armed, the handler would fault. Thread-local data is not checked here.
pub(crate) fn own_place_in(range: &Range<usize>) -> Option<usize> {
    let own = [(&raw const GENERATION).addr(), (&raw const REMOVED).addr(), wakeup::place()];
    let mut places: Vec<usize> = own.to_vec();
    places.extend(mapping_budget::places());
    places.extend(fault::places());
    places.extend(process::places());
    let places = places.into_iter().map(|place| place..place + 1);
    let modules = modules::of_handler(catch as *const () as usize);
    maps::first_in(range, places.chain(modules).chain(TRAPPED.places()))
}

/// Inserts a region; the caller holds the [`DirectoryLock`]. Returns `false` if there are too many.
pub(crate) fn insert(pages: &Pages) -> bool {
    mapping_budget::measure();
    pages.generation.store(next_generation(), Relaxed);
    TRAPPED.insert(pages)
}

/// Removes a region whose rights were restored. Returns `true` if no handler uses it any more. If a
/// handler still does after a second, the memory of `pages` must stay.
pub(crate) fn remove(pages: &Pages) -> bool {
    take_out(pages);
    TRAPPED.wait_for_lookers()
}

fn take_out(shared: &Shared) {
    // First: a thread that does not find the region then observes that a region was removed.
    REMOVED.fetch_add(4, SeqCst);
    mapping_budget::set(shared, 0);
    TRAPPED.remove(shared);
}

/// Removes the rights of some grains, after `mark` has armed them. Must be called by one thread at
/// a time.
pub(crate) fn arm(
    shared: &Shared,
    start: usize,
    bytes: usize,
    mark: impl FnOnce(),
) -> Result<(), i32> {
    shared.generation.store(next_generation() + 1, SeqCst);
    mark();
    // SAFETY: by the contract of a trapped region its memory is mapped; faults there are caught.
    let done = unsafe { memory::protect(start, bytes, libc::PROT_NONE) };
    shared.generation.store(next_generation(), SeqCst);
    done
}

/// Restores the rights of a part of a region.
pub(crate) fn restore_rights(shared: &Shared, start: usize, bytes: usize) -> Result<(), i32> {
    // SAFETY: these are the rights that the program's memory had when it was registered.
    unsafe { memory::protect(start, bytes, shared.layout.rights) }
}

/// Restores the rights of some grains, armed or not: a grain that is not armed may lack them too,
/// see above. No thread may be arming during the call. The error is the last `errno`; the grains
/// that it refers to stay armed.
pub(crate) fn disarm(shared: &Shared, grains: Range<usize>) -> Result<(), i32> {
    if grains.is_empty() {
        return Ok(());
    }
    let (start, end) =
        (shared.layout.grain(grains.start).start, shared.layout.grain(grains.end - 1).end);
    let all_at_once = || restore_rights(shared, start, end - start);
    let everywhere = || restore_rights(shared, shared.layout.start, shared.layout.bytes);
    if grains.clone().any(|grain| shared.is_armed(grain)) {
        mapping_budget::add(shared, shared.armed_beside(&grains));
    }
    if all_at_once().is_ok() {
        grains.for_each(|grain| _ = shared.disarm(grain));
        return Ok(());
    }
    // A part is not mapped any more, or the edges cannot become mappings: there are too many
    // mappings, or huge pages of their own file system are larger than grains. In the second case
    // restore the rights of the whole region, which needs no edges, as in `let_through`.
    let mut outcome = Ok(());
    for grain in grains.clone() {
        let part = shared.layout.grain(grain);
        match restore_rights(shared, part.start, part.len()) {
            Ok(()) => _ = shared.disarm(grain),
            Err(errno) => outcome = Err(errno),
        }
    }
    if outcome.is_err() && everywhere().is_ok() {
        mapping_budget::set(shared, 0);
        shared.disarmed_whole.fetch_add(1, Relaxed);
        grains.for_each(|grain| _ = shared.disarm(grain));
        return Ok(());
    }
    outcome
}

/// Handles a fault: returns `true` if the access at `address` may be retried. Async-signal-safe.
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
    let alone = || restore_rights(shared, part.start, part.len()).is_ok();
    let more = if armed { 2 * shared.armed_beside(&(grain..grain + 1)) - 2 } else { 0 };
    let done = if mapping_budget::fits(more) && alone() {
        mapping_budget::add(shared, more);
        true
    } else {
        // Every grain with different rights is a separate mapping, and there may be too many. A
        // region with the same rights everywhere needs one. Restore all rights by one call,
        // although the program waits: parts would need more mappings. The bits of the other grains
        // stay set.
        shared.disarmed_whole.fetch_add(1, Relaxed);
        let whole = restore_rights(shared, shared.layout.start, shared.layout.bytes).is_ok();
        mapping_budget::set(shared, 0);
        whole || alone()
    };
    if done {
        shared.use_armed(grain);
    }
    done
}

fn is_a_crash(address: usize, generation: u32) -> bool {
    let times = repeats(address, generation);
    if generation.is_multiple_of(2) {
        return times >= TRIES;
    }
    fault::pause();
    times >= TRIES_WHILE_ARMING
}

/// Returns how many times in a row the calling thread came here with the same address and
/// generation.
fn repeats(address: usize, generation: u32) -> u32 {
    // SAFETY: the value belongs to this thread, and no other handler interrupts this one.
    let last = unsafe { &mut *last_fault::own() };
    if (last.address, last.generation) != (address, generation) {
        *last = LastFault { address, generation, repeats: 0 };
    }
    last.repeats += 1;
    last.repeats
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::pages::Layout;
    use percid_rules::scan::Width;

    const BYTES: usize = 4 << 16;

    /// Maps memory of whole grains that may be armed; it is never unmapped, so that no other test
    /// gets it.
    fn memory() -> usize {
        memory::map(BYTES).expect("memory").as_ptr() as usize
    }

    fn pages(start: usize) -> Pages {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let (width, backoff) = (Width::Bits64, false);
        let layout = Layout {
            start,
            bytes: BYTES,
            shift: 16,
            nodes: 1,
            rights,
            width,
            backoff,
            anonymous: true,
        };
        Pages::new(layout, &[0], memory::map).expect("memory")
    }

    /// Inserts a region, arms it once, disarms and removes it. The calling thread is late in it
    /// `late` times.
    fn live(start: usize, late: u32) -> Vec<bool> {
        let pages = pages(start);
        assert!(insert(&pages));
        arm(&pages, start, 1 << 16, || _ = pages.arm(0, 0)).expect("mapped");
        restore_rights(&pages, start, 1 << 16).expect("mapped");
        pages.disarm(0);
        let passed_on = (0..late).map(|_| catch(fault::ACCESS_ERROR, start)).collect();
        remove_at_last(&pages);
        passed_on
    }

    /// Removes the region; handlers of other tests may use the directory for long on a busy
    /// machine.
    fn remove_at_last(pages: &Pages) {
        assert!(remove(pages) || (0..600).any(|_| TRAPPED.wait_for_lookers()));
    }

    #[test]
    fn what_the_handler_writes_must_not_be_armed() {
        let own = [(&raw const GENERATION).addr(), (&raw const REMOVED).addr(), wakeup::place()];
        for place in own {
            assert_eq!(own_place_in(&(place..place + 4)), Some(place));
        }
        let local = 0u64;
        let other = (&raw const local).addr();
        assert_eq!(own_place_in(&(other..other + 8)), None, "the control");
    }

    #[test]
    fn a_thread_that_is_late_once_in_every_life_of_a_region_has_not_crashed() {
        let start = memory();
        for life in 0..4 * TRIES {
            assert_eq!(live(start, 1), [true], "life {life}");
        }
    }

    #[test]
    fn a_thread_that_is_late_in_regions_that_were_never_armed_has_not_crashed() {
        let start = memory();
        for life in 0..4 * TRIES {
            let pages = pages(start);
            assert!(insert(&pages));
            assert!(catch(fault::ACCESS_ERROR, start), "life {life}");
            remove_at_last(&pages);
        }
    }

    #[test]
    fn a_thread_that_is_late_in_a_region_and_after_it_has_not_crashed() {
        let start = memory();
        // A generation may equal the number of a removal.
        for life in 0..64 {
            assert_eq!(live(start, 1), [true]);
            assert!(catch(fault::ACCESS_ERROR, start), "after life {life}");
        }
    }

    #[test]
    fn a_thread_that_faults_again_without_an_arming_has_crashed() {
        let start = memory();
        assert_eq!(live(start, TRIES + 1), [true, true, false, false]);
        assert!(catch(fault::ACCESS_ERROR, start));
        // Another test may remove a region in between. If that happened in every second attempt, it
        // would happen in all of them once in 2^1000 runs.
        assert!((0..1000).any(|_| !catch(fault::ACCESS_ERROR, start)));
        assert!(!catch(1, start), "nothing is mapped there");
    }

    #[test]
    fn threads_that_are_late_at_one_address_have_not_crashed() {
        let start = memory();
        let pages = pages(start);
        assert!(insert(&pages));
        let late = || catch(fault::ACCESS_ERROR, start);
        for _ in 0..2 * TRIES {
            std::thread::scope(|scope| assert!(scope.spawn(late).join().expect("no panic")));
        }
        remove_at_last(&pages);
    }

    /// A thread that faults in between finds the bit set or an odd generation, so it is no crash.
    #[test]
    fn bits_are_set_before_rights_are_taken_and_while_the_generation_is_odd() {
        let start = memory();
        let pages = pages(start);
        assert!(insert(&pages));
        let generation = || pages.generation.load(Relaxed);
        let before = generation();
        let mark = || {
            // SAFETY: this test's own memory, which still has its rights.
            unsafe { ptr::with_exposed_provenance_mut::<u8>(start).write_volatile(1) };
            assert!(generation() % 2 == 1 && generation() != before);
            pages.arm(0, 0);
        };
        arm(&pages, start, 1 << 16, mark).expect("mapped");
        let after = generation();
        assert!(after.is_multiple_of(2) && after != before);
        // The kernel cannot write there now; it could before.
        assert_eq!(the_kernel_writes(start), Err(libc::EFAULT));
        assert_eq!(disarm(&pages, 0..pages.layout.grains()), Ok(()));
        assert!(!pages.is_armed(0) && the_kernel_writes(start).is_ok());
        remove_at_last(&pages);
    }

    /// A late fault came between the two steps of arming, and cleared the bit.
    #[test]
    fn a_grain_without_rights_that_is_not_armed_gets_them_back() {
        let start = memory();
        let pages = pages(start);
        assert!(insert(&pages));
        arm(&pages, start, 1 << 16, || ()).expect("mapped");
        assert_eq!(the_kernel_writes(start), Err(libc::EFAULT));
        assert!(!catch(1, start), "an access to nothing");
        assert_eq!(the_kernel_writes(start), Err(libc::EFAULT));
        assert!(catch(fault::ACCESS_ERROR, start));
        assert_eq!(the_kernel_writes(start), Ok(()));
        remove_at_last(&pages);
    }

    /// Makes the kernel write to an address.
    fn the_kernel_writes(place: usize) -> Result<(), i32> {
        let place: *mut u64 = ptr::with_exposed_provenance_mut(place);
        let (how, none) = (libc::SIG_BLOCK, ptr::null::<u64>());
        // SAFETY: requests the blocked signals, eight bytes; the kernel checks the address.
        let done = unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, none, place, 8) };
        if done == 0 { Ok(()) } else { Err(crate::sys::errno()) }
    }

    /// A child of `fork` inherits an arming that no thread will end.
    #[test]
    fn a_thread_waits_for_an_arming_and_not_forever() {
        let (place, generation) = (memory(), next_generation() + 1);
        let tries = 0..2 * TRIES_WHILE_ARMING;
        let times = tries.take_while(|_| !is_a_crash(place, generation)).count();
        assert_eq!(times, TRIES_WHILE_ARMING as usize - 1);
    }

    #[test]
    fn what_a_handler_looks_at_stays() {
        let start = memory();
        let pages = pages(start);
        assert!(insert(&pages));
        let stays = TRAPPED.look_up(start, |found| found.is_some() && !remove(&pages));
        assert!(stays, "it would be unmapped under the handler");
        remove_at_last(&pages);
    }

    #[test]
    fn what_cannot_be_disarmed_stays_armed() {
        let start = memory();
        let pages = pages(start);
        assert!(insert(&pages));
        (0..4).for_each(|grain| assert!(pages.arm(grain, 0)));
        mapping_budget::set(&pages, pages.edges());
        let hole = pages.layout.grain(2);
        // SAFETY: this test's own memory, which it does not use.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(hole.start), hole.len()) };
        assert_eq!(disarm(&pages, 0..4), Err(libc::ENOMEM));
        assert_eq!([0, 1, 2, 3].map(|grain| pages.is_armed(grain)), [false, false, true, false]);
        assert!(!catch(fault::ACCESS_ERROR, hole.start), "the handler cannot either");
        assert!(pages.is_armed(2));
        mapping_budget::set(&pages, pages.edges());
        remove_at_last(&pages);
        assert_eq!(pages.mappings.load(Relaxed), 0, "what is taken out adds no mappings");
    }

    /// A thread that does not find a region any more compares the number of removals.
    #[test]
    fn the_number_changes_before_a_region_cannot_be_found() {
        for _ in 0..100 {
            let pages = pages(memory());
            assert!(insert(&pages));
            let before = REMOVED.load(SeqCst);
            let looks = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    looks.store(true, SeqCst);
                    while TRAPPED.has(&pages) {}
                    assert_ne!(REMOVED.load(SeqCst), before);
                });
                while !looks.load(SeqCst) {
                    std::hint::spin_loop();
                }
                remove_at_last(&pages);
            });
        }
    }

    #[test]
    fn one_thread_has_the_lock_and_a_child_does_not_wait_for_it() {
        let inside = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _lock = DirectoryLock::wait();
                        assert!(!inside.swap(true, SeqCst));
                        std::thread::yield_now();
                        inside.store(false, SeqCst);
                    }
                });
            }
        });
        let lock = DirectoryLock::wait();
        assert_eq!(in_child(take_the_lock), TAKEN);
        drop(lock);
    }

    /// Child and parent have process number 1: each is the first process of a PID namespace.
    #[test]
    fn a_child_with_its_parents_number_does_not_wait_for_it() {
        let parent = || {
            let _lock = DirectoryLock::wait();
            let number = process::id();
            in_next_namespace(|| if process::id() == number { take_the_lock() } else { 1 })
        };
        match in_child(|| in_next_namespace(parent)) {
            NOT_PERMITTED => {
                percid_skips::not_checked(
                    "a child with its parent's number",
                    "no PID namespaces for this user",
                );
            }
            outcome => assert_eq!(outcome, TAKEN),
        }
    }

    const TAKEN: i32 = 7;
    const NOT_PERMITTED: i32 = 77;

    /// Takes the lock, and does not wait forever: a signal ends the process. It needs a handler,
    /// since the first process of a PID namespace ignores signals without one.
    fn take_the_lock() -> i32 {
        extern "C" fn give_up(_: i32) {
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(1) };
        }
        // SAFETY: plain numbers, and a handler that is async-signal-safe.
        unsafe { libc::signal(libc::SIGALRM, give_up as *const () as libc::sighandler_t) };
        // SAFETY: a plain number.
        unsafe { libc::alarm(20) };
        drop(DirectoryLock::wait());
        TAKEN
    }

    /// Returns the exit status of a child of `fork` that runs `body`, which must not allocate.
    fn in_child(body: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the child runs only `body`, which does not allocate, and exits.
        match unsafe { libc::fork() } {
            // SAFETY: ends the child at once.
            0 => unsafe { libc::_exit(body()) },
            child => {
                let mut status = 0;
                // SAFETY: the status has a valid place.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }
            }
        }
    }

    /// Like [`in_child`], but the child is the first process of another PID namespace.
    fn in_next_namespace(body: impl FnOnce() -> i32) -> i32 {
        // SAFETY: the calling process has one thread, and expects nothing of its namespaces.
        let entered = [libc::CLONE_NEWPID, libc::CLONE_NEWPID | libc::CLONE_NEWUSER]
            .into_iter()
            .any(|spaces| unsafe { libc::unshare(spaces) } == 0);
        if entered { in_child(body) } else { NOT_PERMITTED }
    }
}
