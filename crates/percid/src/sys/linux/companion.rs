//! A process that temporarily shares this one's memory, for actions that a thread cannot perform on
//! itself.
//!
//! It is a child made by `clone` with `CLONE_VM`. It is no thread of the C library, and invisible
//! to `fork` handlers. It has no rseq registration of its own (the kernel clears it for such
//! children). All signals that its parent has blocked are blocked in it. It ends without a signal
//! to its parent, and a plain `wait` for any child does not find it. From its first system call on,
//! the kernel kills it if the thread that made it ends first. If another thread replaces the
//! program (`exec`) during that time, the companion is killed, and stays an ended child of the new
//! program.
//!
//! A companion that does not end in time, as on a busy machine, is [left](LEFT) with its memory,
//! and [`reap_left`] waits for it later.

use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

use super::raw_call::raw_call;
use super::{clock, holder, memory};
#[cfg(test)]
use crate::sys::steps::{self, Step};
use crate::sys::{errno, race_detector};

/// Stack size: enough for a few system calls and a set of CPUs, unoptimised.
const STACK_BYTES: usize = 64 << 10;

/// Time that a companion gets to end before it is killed, and once more after that, in
/// milliseconds.
const GRACE_MS: u64 = 100;

/// Zeroed memory that is unmapped when this value is dropped.
#[derive(Debug)]
pub(crate) struct Mapped {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapped {
    pub(crate) fn new(bytes: usize) -> Option<Mapped> {
        Some(Mapped { start: memory::map(bytes)?, bytes })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this is a whole mapping, and the owner of this value is the only one that may use
        // it.
        unsafe { memory::unmap(self.start, self.bytes) };
    }
}

/// A running companion. Its memory stays unless [`end`](Self::end) returns that it is gone.
#[derive(Debug)]
pub(crate) struct Companion {
    number: libc::pid_t,
    /// The generation of the process that is its parent.
    generation: u32,
    stack: Mapped,
    argument: Mapped,
}

/// The way in which a companion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It has ended by itself.
    Exited,
    /// It did not end in time, as on a busy machine, and was killed here.
    Late,
    /// Something else killed it, such as a sandbox that forbids its system calls.
    Killed,
}

/// The reason why a companion may still use its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotGone {
    /// It has not ended in time: it is left, and a later call waits for it.
    Left,
    /// The kernel, or a sandbox, does not report whether it has ended: the `errno`. Its memory
    /// stays forever.
    Refused(i32),
}

/// A companion that did not end in time, in the lowest bytes of its own stack.
struct Left {
    next: *mut Left,
    companion: Companion,
}

/// The companions that were left. A thread takes the whole list, and adds the ones that still run
/// again. So no other thread has access to a companion that is waited for.
static LEFT: AtomicPtr<Left> = AtomicPtr::new(ptr::null_mut());

impl Companion {
    /// Starts `work` with the address of `argument`. It runs in the child and must only make system
    /// calls and access memory: it shares the parent's thread pointer, hence its thread-local
    /// storage.
    ///
    /// # Errors
    ///
    /// The `errno`: no memory, no process, a sandbox that forbids it, or ThreadSanitizer (ENOSYS),
    /// whose runtime treats the call as a fork, and then finds its own memory changed.
    ///
    /// # Safety
    ///
    /// `work` uses no other memory of this process than `argument`, and memory that stays forever.
    pub(crate) unsafe fn start(
        work: extern "C" fn(*mut c_void) -> c_int,
        argument: Mapped,
    ) -> Result<Companion, i32> {
        if race_detector::is_thread_sanitizer() {
            return Err(libc::ENOSYS);
        }
        let stack = Mapped::new(STACK_BYTES).ok_or(libc::ENOMEM)?;
        // Before the child exists: the first call may map memory.
        let generation = holder::generation();
        // Flags that every C library's function passes on: musl's refuses those about the child's
        // thread number. Everything except the memory and the files is copied: with a shared root
        // directory, other threads could not run programs with more privileges during that time.
        let flags = libc::CLONE_VM | libc::CLONE_FILES;
        // SAFETY: only the child uses the stack, and both mappings stay until it is gone. The
        // caller guarantees that `work` uses only `argument` and memory that stays.
        let number = unsafe {
            let top = stack.start.as_ptr().add(STACK_BYTES).cast::<c_void>();
            libc::clone(work, top, flags, argument.start.as_ptr().cast())
        };
        if number < 0 {
            return Err(errno());
        }
        Ok(Companion { number, generation, stack, argument })
    }

    /// Lets the companion run on all of `cpus`, so that it makes progress if its CPU is not
    /// available to it.
    pub(crate) fn set_free(&self, cpus: &[u64]) {
        let arguments =
            [self.number as usize, size_of_val(cpus), cpus.as_ptr().expose_provenance(), 0];
        // SAFETY: the kernel reads that many bytes. A failure leaves the companion where it is.
        unsafe { raw_call(libc::SYS_sched_setaffinity, arguments) };
    }

    /// Waits until the companion has ended, and returns the memory that it shared. A companion that
    /// does not end in time is killed, and left if that does not end it in time either.
    ///
    /// # Errors
    ///
    /// The reason why it may still use its memory, which stays.
    pub(crate) fn end(self) -> Result<(End, Mapped), NotGone> {
        let end = self.wait(GRACE_MS).or_else(|| {
            self.kill();
            self.wait(GRACE_MS).map(|killed| killed.map(|_| End::Late))
        });
        match end {
            Some(Ok(end)) => Ok((end, self.argument)),
            Some(Err(errno)) => {
                std::mem::forget(self);
                Err(NotGone::Refused(errno))
            }
            None => {
                self.leave();
                Err(NotGone::Left)
            }
        }
    }

    /// Returns how the companion ended, or the `errno` if the kernel does not report that; `None`
    /// while it runs.
    ///
    /// Another thread that waits for children of every kind may be faster. Then the result is
    /// ECHILD, and the child is gone as well, since a process that can be waited for has released
    /// its memory before. Another child may have its number by then, but hardly one that ends
    /// without a signal, and this call only finds such children.
    fn look(&self) -> Option<Result<End, i32>> {
        #[cfg(test)]
        if steps::at(Step::LookAtCompanion).is_some() {
            return None;
        }
        let mut status: c_int = 0;
        let place = (&raw mut status).expose_provenance();
        let options = (libc::__WCLONE | libc::WNOHANG) as usize;
        // SAFETY: the kernel writes the status, if any, to a place of its size.
        let answer =
            unsafe { raw_call(libc::SYS_wait4, [self.number as usize, place, options, 0]) };
        match answer as i32 {
            0 => None,
            number if number == self.number && libc::WIFSIGNALED(status) => Some(Ok(End::Killed)),
            number if number == self.number => Some(Ok(End::Exited)),
            error if error == -libc::ECHILD => Some(Ok(End::Exited)),
            error => Some(Err(-error)),
        }
    }

    fn wait(&self, limit_ms: u64) -> Option<Result<End, i32>> {
        let deadline_ms = clock::now_ms() + limit_ms;
        loop {
            match self.look() {
                None if clock::now_ms() < deadline_ms => give_way(),
                answer => return answer,
            }
        }
    }

    /// Leaves the companion to [`reap_left`].
    fn leave(self) {
        let place = self.stack.start.cast::<Left>().as_ptr();
        // SAFETY: these are the lowest bytes of its stack, which it does not reach.
        unsafe { place.write(Left { next: ptr::null_mut(), companion: self }) };
        let mut first = LEFT.load(Relaxed);
        loop {
            // SAFETY: no other thread has access to the entry before the exchange.
            unsafe { (*place).next = first };
            match LEFT.compare_exchange_weak(first, place, Release, Relaxed) {
                Ok(_) => return,
                Err(other) => first = other,
            }
        }
    }

    /// Unmaps its memory if it is gone, and leaves it again if not. A child of `fork` has a copy of
    /// the memory that no companion uses, and cannot wait for the companion.
    fn reap(self) {
        if self.generation != holder::generation() {
            return;
        }
        match self.look() {
            Some(Ok(_)) => {}
            Some(Err(_)) => std::mem::forget(self),
            None => self.leave(),
        }
    }

    /// Kills it through a descriptor, since another process may have its number by now. The second
    /// check shows that the number was still its own when the descriptor was made.
    fn kill(&self) {
        // SAFETY: the call takes only numbers.
        let descriptor = unsafe { raw_call(libc::SYS_pidfd_open, [self.number as usize, 0, 0, 0]) };
        if descriptor < 0 {
            return;
        }
        if self.look().is_none() {
            let arguments = [descriptor as usize, libc::SIGKILL as usize, 0, 0];
            // SAFETY: the call takes numbers, and a null pointer for the details.
            unsafe { raw_call(libc::SYS_pidfd_send_signal, arguments) };
        }
        // SAFETY: the descriptor was made above.
        unsafe { raw_call(libc::SYS_close, [descriptor as usize, 0, 0, 0]) };
    }
}

/// Checks the companions that did not end in time, and unmaps the memory of those that have ended
/// since. Returns `true` if none is left, not counting those that another thread is checking. Costs
/// one load while there is none. Async-signal-safe.
pub(crate) fn reap_left() -> bool {
    if LEFT.load(Relaxed).is_null() {
        return true;
    }
    // Acquire: everything that was written before the companion was left is seen.
    let mut place = LEFT.swap(ptr::null_mut(), Acquire);
    while !place.is_null() {
        // SAFETY: `leave` has written it, and no other thread has access to it since the exchange.
        // The stack that it lies on is unmapped after it was read.
        let Left { next, companion } = unsafe { place.read() };
        companion.reap();
        place = next;
    }
    LEFT.load(Relaxed).is_null()
}

/// Yields this CPU to other threads.
pub(crate) fn give_way() {
    // SAFETY: the call has no arguments.
    unsafe { raw_call(libc::SYS_sched_yield, [0; 4]) };
}

/// Makes the child end together with the thread that made it. Must be called first in the child.
pub(crate) fn end_with_parent() {
    // SAFETY: the call takes only numbers.
    unsafe {
        raw_call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, libc::SIGKILL as usize, 0, 0])
    };
}

/// `struct sched_attr` of `linux/sched/types.h` in its first version.
#[repr(C)]
#[derive(Debug, Default)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Requests the shortest possible slice. A thread with one may preempt a thread in the middle of
/// that thread's slice (Linux 6.12 and later), and need not wait for a tick. A refusal has no
/// effect.
pub(crate) fn ask_for_short_slice() {
    const SHORTEST_NS: u64 = 100_000;
    let mut attributes = SchedulingAttributes::default();
    let size = size_of::<SchedulingAttributes>();
    let place = (&raw mut attributes).expose_provenance();
    // SAFETY: the kernel writes at most `size` bytes to a place of that size.
    let known = unsafe { raw_call(libc::SYS_sched_getattr, [0, place, size, 0]) } == 0;
    if known && attributes.policy == libc::SCHED_OTHER as u32 {
        attributes.runtime_ns = SHORTEST_NS;
        let place = (&raw const attributes).expose_provenance();
        // SAFETY: the kernel reads as many bytes as the structure's `size` field contains.
        unsafe { raw_call(libc::SYS_sched_setattr, [0, place, 0, 0]) };
    }
}

/// Returns the CPU that runs the caller. It does not use the C library's function, which would read
/// the parent's rseq area.
pub(crate) fn cpu() -> Option<u32> {
    let mut cpu = 0u32;
    // SAFETY: the kernel writes the number to a place of its size.
    let answer =
        unsafe { raw_call(libc::SYS_getcpu, [(&raw mut cpu).expose_provenance(), 0, 0, 0]) };
    (answer == 0).then_some(cpu)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::time::{Duration, Instant};

    use super::*;

    /// The memory shared with a companion of these tests.
    #[derive(Default)]
    struct Board {
        began: AtomicU32,
        enough: AtomicU32,
        /// Number of iterations of the companion.
        seen: AtomicU32,
    }

    fn board() -> &'static Board {
        Box::leak(Box::default())
    }

    /// Starts `work` with a mapping that contains a pointer to the board.
    fn start(work: extern "C" fn(*mut c_void) -> c_int, board: &'static Board) -> Companion {
        start_with(work, board, Mapped::new(8).expect("memory"))
    }

    fn start_with(
        work: extern "C" fn(*mut c_void) -> c_int,
        board: &'static Board,
        argument: Mapped,
    ) -> Companion {
        // SAFETY: the mapping has the room; the board stays forever.
        unsafe {
            argument.start().cast::<&'static Board>().write(board);
            Companion::start(work, argument).expect("a companion")
        }
    }

    /// Returns the board. The pointer is read from the mapping each time: a companion whose memory
    /// is gone is killed by that access.
    fn board_at(argument: *mut c_void) -> &'static Board {
        // SAFETY: `start_with` has written it.
        unsafe { argument.cast::<&'static Board>().read_volatile() }
    }

    /// Returns `true` if the process has a child of this number, including one that has ended.
    fn is_child(number: libc::pid_t) -> bool {
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        // SAFETY: the call takes numbers, and a null pointer for the result.
        unsafe { libc::waitid(libc::P_PID, number as libc::id_t, ptr::null_mut(), options) == 0 }
    }

    extern "C" fn come_and_go(board: *mut c_void) -> c_int {
        board_at(board).began.store(1, SeqCst);
        0
    }

    extern "C" fn stay(board: *mut c_void) -> c_int {
        end_with_parent();
        board_at(board).began.store(1, SeqCst);
        // It does not run forever if the test is killed.
        let end_ms = clock::now_ms() + 600_000;
        while board_at(board).enough.load(SeqCst) == 0 && clock::now_ms() < end_ms {
            board_at(board).seen.fetch_add(1, SeqCst);
            give_way();
        }
        0
    }

    fn wait_until(mut done: impl FnMut() -> bool) -> bool {
        let begin = Instant::now();
        while !done() {
            if begin.elapsed() > Duration::from_secs(600) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Waits until it has ended, without reaping it. So `end` need not wait for it.
    fn await_end(companion: &Companion) {
        let options = libc::WEXITED | libc::WNOWAIT | libc::__WALL;
        // SAFETY: all zero is a valid place for the answer.
        let answer = unsafe {
            let mut what: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, companion.number as libc::id_t, &mut what, options)
        };
        assert_eq!(answer, 0);
    }

    fn end_of(companion: Companion) -> Result<End, NotGone> {
        companion.end().map(|(end, _)| end)
    }

    #[test]
    fn one_that_is_not_seen_to_end_is_left() {
        let board = board();
        let companion = start(stay, board);
        let number = companion.number;
        let watching = steps::watch(|step| (step == Step::LookAtCompanion).then_some(Ok(())));
        assert_eq!(end_of(companion), Err(NotGone::Left));
        drop(watching);
        let gone = || {
            reap_left();
            !is_child(number)
        };
        assert!(wait_until(gone), "a zombie stays");
    }

    /// A file's name in the list of mappings shows whether a mapping exists, whatever other tests
    /// map.
    #[test]
    fn what_was_left_keeps_its_memory_as_long_as_it_runs() {
        let name = c"percid-companion-left";
        let is_mapped = || {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc");
            maps.contains(name.to_str().expect("a name"))
        };
        let (board, bytes) = (board(), 1 << 16);
        // SAFETY: a new file, and a new mapping of it.
        let start = unsafe {
            let file = libc::memfd_create(name.as_ptr(), 0);
            assert_eq!(libc::ftruncate(file, bytes as libc::off_t), 0);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file, 0);
            libc::close(file);
            assert_ne!(start, libc::MAP_FAILED);
            NonNull::new(start.cast()).expect("a mapping")
        };
        let companion = start_with(stay, board, Mapped { start, bytes });
        let number = companion.number;
        companion.leave();
        for _ in 0..3 {
            reap_left();
            let before = board.seen.load(SeqCst);
            assert!(wait_until(|| board.seen.load(SeqCst) > before + 1), "it does not get on");
            assert!(is_mapped() && is_child(number));
        }
        // Another test may be using the list while this one forks.
        let given_back = || !is_mapped_in_child(start);
        assert!(wait_until(given_back), "a child of fork has a copy that nobody uses");
        assert!(is_child(number), "and no right to wait for it");
        board.enough.store(1, SeqCst);
        let gone = || {
            reap_left();
            !is_mapped()
        };
        assert!(wait_until(gone), "its memory stays");
        assert!(!is_child(number), "a zombie stays");
    }

    /// Returns `true` if a child of `fork` still has this page mapped after it has called
    /// [`reap_left`].
    fn is_mapped_in_child(place: NonNull<u8>) -> bool {
        let mut pages = [0u8; 1];
        // SAFETY: the child only makes system calls. `mincore` does not read this process's memory.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                reap_left();
                let there = libc::mincore(place.as_ptr().cast(), 1, pages.as_mut_ptr().cast());
                libc::_exit(if there == 0 { 3 } else { 4 });
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert!(libc::WIFEXITED(status), "{status:#x}");
            libc::WEXITSTATUS(status) == 3
        }
    }

    #[test]
    fn it_shares_the_memory_and_is_no_child_of_the_usual_kind() {
        let board = board();
        let companion = start(come_and_go, board);
        let mut status = 0;
        // SAFETY: `status` is a valid place.
        let found = unsafe { libc::waitpid(companion.number, &mut status, 0) };
        assert_eq!((found, errno()), (-1, libc::ECHILD));
        await_end(&companion);
        assert_eq!(end_of(companion), Ok(End::Exited));
        assert_eq!(board.began.load(SeqCst), 1);
    }

    #[test]
    fn one_that_does_not_end_is_killed() {
        let board = board();
        let companion = start(stay, board);
        let (number, mut status) = (companion.number, libc::SIGKILL);
        let end = end_of(companion);
        if end == Err(NotGone::Left) {
            // It is killed as well if a busy machine takes longer for that. Another test may wait
            // for it first.
            // SAFETY: `status` is a valid place.
            unsafe { libc::waitpid(number, &mut status, libc::__WALL) };
        }
        board.enough.store(1, SeqCst);
        assert!(matches!(end, Ok(End::Late) | Err(NotGone::Left)), "not forbidden: {end:?}");
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL);
    }

    #[test]
    fn another_thread_may_have_waited_for_it() {
        let companion = start(come_and_go, board());
        let mut status = 0;
        // SAFETY: `status` is a valid place.
        let found = unsafe { libc::waitpid(companion.number, &mut status, libc::__WALL) };
        assert_eq!(found, companion.number);
        assert_eq!(end_of(companion), Ok(End::Exited));
    }

    #[test]
    fn it_ends_with_the_thread_that_made_it() {
        let board = board();
        let number = std::thread::spawn(move || {
            let companion = start(stay, board);
            assert!(wait_until(|| board.began.load(SeqCst) == 1));
            companion.number
        });
        let number = number.join().expect("no panic");
        let mut status = 0;
        // SAFETY: `status` is a valid place.
        let gone = || unsafe {
            libc::waitpid(number, &mut status, libc::__WALL | libc::WNOHANG) == number
        };
        wait_until(gone);
        board.enough.store(1, SeqCst);
        assert!(libc::WIFSIGNALED(status), "it went on");
    }

    #[test]
    fn it_can_be_let_out_of_a_cpu() {
        let (board, home) = (board(), libc_affinity(0));
        let companion = start(stay, board);
        let last = (0..1024).rev().find(|cpu| home[cpu / 64] >> (cpu % 64) & 1 == 1);
        let last = last.expect("a CPU");
        let mut only = [0u64; 16];
        only[last / 64] = 1 << (last % 64);
        companion.set_free(&only);
        let confined = libc_affinity(companion.number);
        companion.set_free(&home);
        let free = libc_affinity(companion.number);
        board.enough.store(1, SeqCst);
        await_end(&companion);
        assert_eq!(end_of(companion), Ok(End::Exited));
        assert_eq!((confined, free), (only, home));
    }

    /// Returns the affinity of a process. 1024 CPUs are enough here.
    fn libc_affinity(number: libc::pid_t) -> [u64; 16] {
        let mut words = [0u64; 16];
        // SAFETY: the place has the size that is given.
        let answer = unsafe { libc::sched_getaffinity(number, 128, words.as_mut_ptr().cast()) };
        assert_eq!(answer, 0);
        words
    }

    /// Another process, which is not a child of this one, may have its number by then.
    #[test]
    fn nothing_but_a_child_is_killed() {
        let ([mut answers, mut questions], mut status) = ([[0; 2]; 2], 0);
        // SAFETY: room for two descriptors each.
        let made =
            unsafe { [libc::pipe(answers.as_mut_ptr()), libc::pipe(questions.as_mut_ptr())] };
        assert_eq!(made, [0, 0]);
        // SAFETY: the child and its child do nothing but system calls.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the child and its child only make system calls. The number goes through the
            // pipe, and then an answer to a question.
            unsafe {
                if libc::fork() == 0 {
                    let mut number = libc::getpid();
                    libc::write(answers[1], (&raw const number).cast(), 4);
                    // It ends with the test, if that is killed.
                    libc::close(questions[1]);
                    libc::read(questions[0], (&raw mut number).cast(), 1);
                    libc::write(answers[1], (&raw const number).cast(), 1);
                }
                libc::_exit(0);
            }
        }
        let mut number: libc::pid_t = 0;
        // SAFETY: valid places; the descriptors are this test's.
        unsafe {
            libc::close(answers[1]);
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(libc::read(answers[0], (&raw mut number).cast(), 4), 4);
        }
        let memory = || Mapped::new(8).expect("memory");
        let generation = holder::generation();
        Companion { number, generation, stack: memory(), argument: memory() }.kill();
        let mut byte = 0u8;
        // SAFETY: valid places; the descriptors are this test's. A killed process executes no
        // instruction, so it would not answer.
        unsafe {
            assert_eq!(libc::write(questions[1], (&raw const byte).cast(), 1), 1);
            assert_eq!(libc::read(answers[0], (&raw mut byte).cast(), 1), 1, "it was killed");
            [answers[0], questions[0], questions[1]].iter().for_each(|&end| _ = libc::close(end));
        }
    }
}
