//! Detection of writes: armed memory is write-protected. The first writer waits until a thread of
//! percid's, the *monitor*, has recorded the access and let the writer continue (`userfaultfd(2)`).
//!
//! System calls that write to armed memory wait in the same way; in trapped memory they fail. Reads
//! are not detected.
//!
//! # Why no thread waits forever
//!
//! A waiting thread has sent a message, and the monitor answers each message by letting its writer
//! continue, whether the grain is armed or not, and even if the region does not exist any more. It
//! removes the protection, which wakes the writer. If that fails, because the memory was unmapped
//! or replaced, it wakes the writer, which then retries the access. Ending a registration wakes no
//! thread, nor does closing the descriptor while a child of `fork` still has it. So the monitor
//! reads all messages before it ends, when no region is left that could cause others.
//!
//! The monitor itself never waits for a thread that may wait for it. A thread that faults may hold
//! any lock, so the monitor takes none, and allocates nothing: memory of the allocator may be
//! armed. It writes only to mappings that cannot be registered, because they have the name of a
//! file: its stack with its thread-local memory and this state, and the
//! [`Pages`](crate::access::pages::Pages) of the regions that it serves. It runs none of the
//! program's signal handlers. So it never has to answer a fault of its own.
//!
//! # Arming while threads write
//!
//! Arming sets the bits first and then protects the memory, a whole piece by one call. The monitor
//! clears the bit first and then removes the protection. If the other side runs between the two
//! steps, a grain may stay protected that is not armed: the next write continues and is not
//! counted. Or a grain stays armed that is not protected: no access is detected there until the
//! next pass protects the piece again, which it does if anything in it is armed. The same happens
//! to a grain if the program discards its pages (`MADV_DONTNEED`).

use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering::Relaxed};

use percid_rules::scan::migration_policy::PageAccess;

use crate::access::directory::Directory;
use crate::access::pages::Pages;
use crate::error::RegisterError;
use crate::sys::own_stack::{self, Thread};
use crate::sys::userfaultfd::{Message, Refusal, Userfaultfd};
use crate::sys::{MAX_CPUS, maps, memory, nodes, process};

/// Size of the monitor's stack. The monitor uses a few KiB; the C library puts the program's
/// thread-local variables there too.
const STACK: usize = 1 << 20;

/// Number of messages that are read at once.
const AT_ONCE: usize = 16;

/// Value in [`MonitorState::nodes`] for a CPU that was not looked up yet, or whose node the kernel
/// does not report.
const UNKNOWN: u16 = u16::MAX;

/// The monitor's data, in a mapping of its own.
#[derive(Debug)]
struct MonitorState {
    faults: Userfaultfd,
    /// Readable once the monitor must end.
    end: OwnedFd,
    regions: Directory,
    /// The node of each CPU, if it was looked up.
    nodes: [AtomicU16; MAX_CPUS],
    /// The monitor's thread number; 0 before it runs.
    thread: AtomicU32,
}

/// The monitor thread, running until this is dropped; by then there are no regions any more.
#[derive(Debug)]
pub(crate) struct Monitor {
    /// Placed above the stack, in the same mapping.
    state: NonNull<MonitorState>,
    mapping: NonNull<u8>,
    thread: Option<Thread>,
    /// The process that the thread belongs to.
    process: u32,
}

// SAFETY: the state is made of atomics and of descriptors, which any thread may use and close.
unsafe impl Send for Monitor {}
// SAFETY: `&Monitor` gives access to atomics and descriptors only, which any thread may use.
unsafe impl Sync for Monitor {}

impl Monitor {
    /// Starts the monitor.
    pub(crate) fn start() -> Result<Monitor, RegisterError> {
        let faults = Userfaultfd::open().map_err(|refusal| match refusal {
            Refusal::NotPermitted => RegisterError::NotPermitted,
            Refusal::NotSupported => RegisterError::NotSupported,
            Refusal::Other(errno) => RegisterError::Refused { errno },
        })?;
        // SAFETY: the call takes a number and flags.
        let end = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if end < 0 {
            return Err(RegisterError::Refused { errno: crate::sys::errno() });
        }
        // SAFETY: the descriptor was just opened, and nothing else owns it.
        let end = unsafe { OwnedFd::from_raw_fd(end) };
        let mapping = memory::map_under_a_name(Monitor::mapped()).ok_or(RegisterError::NoMemory)?;
        let nodes = [const { AtomicU16::new(UNKNOWN) }; MAX_CPUS];
        // SAFETY: inside the mapping, which is aligned to a page, as the stack's size is.
        let state = unsafe { mapping.add(STACK).cast::<MonitorState>() };
        // SAFETY: the address is that of new memory that is large enough.
        unsafe {
            let (regions, thread) = (Directory::new(), AtomicU32::new(0));
            state.write(MonitorState { faults, end, regions, nodes, thread });
        }
        let mut monitor = Monitor { state, mapping, thread: None, process: process::generation() };
        // SAFETY: the lower part of the mapping is used by the stack alone; state and stack stay
        // until the thread was joined.
        let started = unsafe { own_stack::start(mapping, STACK, run, state.as_ptr().cast()) };
        monitor.thread = Some(started.map_err(|errno| RegisterError::Refused { errno })?);
        Ok(monitor)
    }

    /// Returns the bytes of the mapping.
    fn mapped() -> usize {
        STACK + size_of::<MonitorState>().next_multiple_of(memory::page_size())
    }

    fn state(&self) -> &MonitorState {
        // SAFETY: the state was written in `start`, and stays until this value is dropped.
        unsafe { self.state.as_ref() }
    }

    /// Returns the number of the monitor's thread, which is not the program's; 0 before it runs.
    pub(crate) fn thread(&self) -> u32 {
        self.state().thread.load(Relaxed)
    }

    /// Inserts a region: from now on its memory can be protected.
    pub(crate) fn insert(&self, pages: &Pages) -> Result<(), RegisterError> {
        let MonitorState { faults, regions, .. } = self.state();
        faults.register(&range(pages)).map_err(|errno| match errno {
            libc::EINVAL => RegisterError::NotPrivate { address: pages.layout.start },
            libc::EBUSY => RegisterError::OtherMonitor,
            libc::ENOMEM => RegisterError::NoMemory,
            errno => RegisterError::Refused { errno },
        })?;
        if regions.insert(pages) {
            return Ok(());
        }
        let _ = faults.unregister(&range(pages));
        Err(RegisterError::TooManyWritten)
    }

    /// Removes a region, even if its memory was unmapped or replaced. Threads that wait there are
    /// still answered. Returns `true` if the monitor does not use the region any more. If it still
    /// does after a second, the memory of `pages` must stay.
    pub(crate) fn remove(&self, pages: &Pages) -> bool {
        let MonitorState { faults, regions, .. } = self.state();
        let all = range(pages);
        if faults.unregister(&all).is_err() {
            // Part of the region is not mapped any more, or is a file now.
            let mappings = maps::all().unwrap_or_default();
            for mapping in maps::overlapping(&mappings, &all) {
                let part = mapping.range.start.max(all.start)..mapping.range.end.min(all.end);
                let _ = faults.unregister(&part);
            }
        }
        regions.remove(pages);
        regions.wait_for_lookers()
    }

    /// Protects a range, which must belong to a region.
    ///
    /// # Errors
    ///
    /// The `errno`: `ENOENT` if part of it is not what was registered; on kernels before 6.4 also
    /// if it consists of several mappings.
    pub(crate) fn protect(&self, range: &Range<usize>) -> Result<(), i32> {
        self.state().faults.protect(range)
    }
}

fn range(pages: &Pages) -> Range<usize> {
    pages.layout.start..pages.layout.start + pages.layout.bytes
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if process::generation() != self.process {
            // The thread is the parent's, and these descriptors may be any others in this process.
            return;
        }
        if let Some(thread) = self.thread.take() {
            let one = 1u64.to_ne_bytes();
            // SAFETY: the buffer has the eight bytes that an eventfd requires.
            unsafe { libc::write(self.state().end.as_raw_fd(), one.as_ptr().cast(), one.len()) };
            thread.join();
        }
        // SAFETY: nothing uses the state or the stack any more.
        unsafe {
            self.state.drop_in_place();
            memory::unmap(self.mapping, Monitor::mapped());
        }
    }
}

/// Runs the monitor's thread.
extern "C" fn run(state: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the state stays until this thread was joined.
    let state = unsafe { &*state.cast::<MonitorState>() };
    state.thread.store(process::thread_id(), Relaxed);
    // SAFETY: the name is a terminated string of less than 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"percid-monitor".as_ptr()) };
    while state.wait() {
        state.answer_all();
    }
    // For threads that wait where there is no region any more.
    state.answer_all();
    std::ptr::null_mut()
}

impl MonitorState {
    /// Waits for messages. Returns `false` if the monitor must end.
    fn wait(&self) -> bool {
        let wanted = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut both = [wanted(self.faults.as_raw_fd()), wanted(self.end.as_raw_fd())];
        // SAFETY: `both` has as many entries as the call is given.
        unsafe { libc::poll(both.as_mut_ptr(), both.len() as libc::nfds_t, -1) };
        both[1].revents == 0
    }

    fn answer_all(&self) {
        let mut messages = [Message::default(); AT_ONCE];
        loop {
            let count = self.faults.read(&mut messages);
            messages[..count].iter().filter_map(Message::write).for_each(|(address, thread)| {
                self.let_through(address, thread);
            });
            if count == 0 {
                return;
            }
        }
    }

    /// Records the access of a thread that waits to write, and lets the thread continue.
    fn let_through(&self, address: usize, thread: u32) {
        let page = memory::page_size();
        let here = address & !(page - 1);
        let here = here..here + page;
        let grain = self.regions.look_up(address, |found| {
            let (shared, grain) = found?;
            shared.use_armed_by(grain, || self.access(thread));
            Some(shared.layout.grain(grain))
        });
        let answered = grain.is_some_and(|grain| self.faults.unprotect(&grain).is_ok());
        if !answered && self.faults.unprotect(&here).is_err() {
            let _ = self.faults.wake(&here);
        }
    }

    /// Looks up the node that a waiting thread ran on; `None` if the thread is not of this process.
    fn access(&self, thread: u32) -> Option<PageAccess> {
        let cpu = process::last_cpu(thread)?;
        let known = self.nodes.get(cpu as usize)?;
        if known.load(Relaxed) == UNKNOWN {
            known.store(nodes::node_of(cpu)? as u16, Relaxed);
        }
        Some(PageAccess { thread, node: u32::from(known.load(Relaxed)) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::access::pages::Layout;
    use percid_rules::scan::Width;

    const SHIFT: u32 = 16;

    /// Maps a page for a test, and makes its state as a region of one grain.
    fn memory() -> (&'static AtomicU64, Pages) {
        let bytes = memory::page_size();
        let place = memory::map(bytes).expect("memory").cast::<AtomicU64>();
        let (start, nodes) = (place.as_ptr() as usize, 2);
        let layout = Layout {
            start,
            bytes,
            shift: SHIFT,
            nodes,
            rights: 0,
            width: Width::Bits128,
            backoff: true,
            anonymous: true,
        };
        // SAFETY: the mapping is never unmapped, and used as an atomic only.
        let word = unsafe { place.as_ref() };
        word.store(1, Relaxed);
        (word, Pages::new(layout, &[0, 1], memory::map_under_a_name).expect("memory"))
    }

    fn monitor() -> Option<Monitor> {
        match Monitor::start() {
            Ok(monitor) => Some(monitor),
            Err(why @ (RegisterError::NotPermitted | RegisterError::NotSupported)) => {
                percid_skips::not_checked("regions by write protection", &why.to_string());
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn the_first_write_to_an_armed_grain_is_noted_for_its_thread() {
        let Some(monitor) = monitor() else { return };
        let (word, pages) = memory();
        monitor.insert(&pages).expect("private memory");
        pages.arm(0, 0);
        monitor.protect(&range(&pages)).expect("registered");
        let writer = || {
            word.fetch_add(1, Relaxed);
            word.fetch_add(1, Relaxed);
            process::thread_id()
        };
        let thread = std::thread::spawn(writer).join().expect("no panic");
        let seen = pages.seen();
        assert_eq!((word.load(Relaxed), pages.is_armed(0)), (3, false));
        assert_eq!((seen.local + seen.remote, pages.unattributed.load(Relaxed)), (1, 0));
        assert_eq!(pages.take_users(), 1 << Width::Bits128.bit(thread));
        assert!(monitor.remove(&pages));
    }

    #[test]
    fn a_write_to_a_grain_that_is_not_armed_goes_on_and_counts_for_nothing() {
        let Some(monitor) = monitor() else { return };
        let (word, pages) = memory();
        monitor.insert(&pages).expect("private memory");
        monitor.protect(&range(&pages)).expect("registered");
        word.store(5, Relaxed);
        assert_eq!((pages.seen().local + pages.seen().remote, word.load(Relaxed)), (0, 5));
        assert!(monitor.remove(&pages));
    }

    /// Makes the state of a monitor without its thread: the test calls its steps itself.
    fn state() -> Option<MonitorState> {
        let faults = match Userfaultfd::open() {
            Ok(faults) => faults,
            Err(refusal) => {
                percid_skips::not_checked("waiting writers", &format!("{refusal:?}"));
                return None;
            }
        };
        // SAFETY: the call takes a number and flags; what it opens is this test's own.
        let end = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) };
        let nodes = [const { AtomicU16::new(UNKNOWN) }; MAX_CPUS];
        Some(MonitorState {
            faults,
            end,
            regions: Directory::new(),
            nodes,
            thread: AtomicU32::new(0),
        })
    }

    /// Runs `answer` while a thread waits to write to protected memory, and checks that the thread
    /// continues.
    fn while_a_writer_waits(state: &MonitorState, pages: &Pages, answer: impl FnOnce()) {
        let all = range(pages);
        let start = all.start;
        assert_eq!((state.faults.register(&all), state.faults.protect(&all)), (Ok(()), Ok(())));
        let writer = std::thread::spawn(move || {
            // SAFETY: the page of a test, which stays mapped even if it is replaced.
            unsafe { std::ptr::with_exposed_provenance_mut::<u8>(start).write_volatile(9) };
        });
        let mut poll =
            libc::pollfd { fd: state.faults.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry.
        assert_eq!(unsafe { libc::poll(&mut poll, 1, 600_000) }, 1, "a message of the writer");
        answer();
        // If the writer waits forever, this test does too.
        writer.join().expect("no panic");
    }

    #[test]
    fn a_writer_goes_on_where_there_is_no_region_any_more() {
        let Some(state) = state() else { return };
        let (_, pages) = memory();
        while_a_writer_waits(&state, &pages, || state.answer_all());
    }

    #[test]
    fn a_writer_goes_on_where_its_memory_was_replaced() {
        let Some(state) = state() else { return };
        let (word, pages) = memory();
        assert!(state.regions.insert(&pages));
        let replace = || {
            let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let place = word.as_ptr().cast();
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: this test's own page, which holds nothing of interest.
            unsafe { libc::mmap(place, pages.layout.bytes, rights, flags, -1, 0) };
            state.answer_all();
        };
        while_a_writer_waits(&state, &pages, replace);
    }

    #[test]
    fn a_writer_goes_on_whose_message_comes_with_the_end() {
        let Some(state) = state() else { return };
        let (_, pages) = memory();
        let end = || {
            // SAFETY: the buffer has the eight bytes that an eventfd requires.
            unsafe { libc::write(state.end.as_raw_fd(), 1u64.to_ne_bytes().as_ptr().cast(), 8) };
            std::thread::scope(|scope| {
                scope.spawn(|| _ = run(std::ptr::from_ref(&state).cast_mut().cast()));
            });
        };
        while_a_writer_waits(&state, &pages, end);
    }

    #[test]
    fn what_is_refused_is_another_monitors_to_have() {
        let (Some(one), Some(other)) = (monitor(), monitor()) else { return };
        let mut entered = Vec::new();
        let refused = loop {
            let (_, pages) = memory();
            match one.insert(&pages) {
                Ok(()) => entered.push(pages),
                Err(error) => break (pages, error),
            }
        };
        assert_eq!(refused.1, RegisterError::TooManyWritten);
        assert_eq!(other.insert(&refused.0), Ok(()));
        assert!(other.remove(&refused.0) && entered.iter().all(|pages| one.remove(pages)));
    }

    #[test]
    fn a_child_leaves_its_parents_monitor_alone() {
        let Some(monitor) = monitor() else { return };
        // SAFETY: the child sets a timer, drops a value that it must not touch, and exits.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: a plain number; the default action of the signal is wanted.
                unsafe { libc::alarm(20) };
                drop(monitor);
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(7) }
            }
            child => {
                let mut status = 0;
                // SAFETY: the status has a valid place.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "{status}");
            }
        }
        let (word, pages) = memory();
        monitor.insert(&pages).expect("private memory");
        pages.arm(0, 0);
        monitor.protect(&range(&pages)).expect("registered");
        word.store(5, Relaxed);
        assert!(!pages.is_armed(0) && monitor.remove(&pages));
    }

    #[test]
    fn one_monitor_has_the_memory() {
        let (Some(one), Some(other)) = (monitor(), monitor()) else { return };
        let (_, pages) = memory();
        one.insert(&pages).expect("private memory");
        assert_eq!(other.insert(&pages), Err(RegisterError::OtherMonitor));
        assert_eq!(one.protect(&range(&pages)), Ok(()), "the first has it still");
        assert!(one.remove(&pages));
        assert_eq!(other.insert(&pages), Ok(()));
        assert!(other.remove(&pages));
    }
}
