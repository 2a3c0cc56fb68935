//! A process that shares this one's memory for a moment, to do what a thread cannot do to itself.
//!
//! It is a child made by `clone` with `CLONE_VM`: no thread of the C library, invisible to `fork`
//! handlers, without an rseq registration of its own (the kernel clears it for such children), with
//! every signal blocked that its parent has blocked. It ends without a signal to its parent, and a
//! plain `wait` for any child does not find it. From its first system call on the kernel kills it
//! if the thread that made it ends first. If another thread replaces the program (`exec`)
//! meanwhile, it is killed, and stays a child of the new program that has ended.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use super::raw_call::raw_call;
use super::{clock, memory};
use crate::sys::{errno, race_detector};

/// Enough for a few system calls and a set of CPUs, unoptimised.
const STACK_BYTES: usize = 64 << 10;

/// How long a companion that should end is waited for before it is killed, and then once more, in
/// milliseconds.
const GRACE_MS: u64 = 100;

/// A running companion.
#[derive(Debug)]
pub(crate) struct Companion {
    number: libc::pid_t,
    stack: NonNull<u8>,
}

/// What has become of a companion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It has ended by itself.
    Exited,
    /// It did not end in time, as on a busy machine, and was killed here.
    Late,
    /// Something else killed it, such as a sandbox that does not like its system calls.
    Killed,
    /// It does not end, or the kernel does not say whether it has: it may still use its memory.
    Unknown,
}

impl Companion {
    /// Starts `work`, which runs in the child and must do nothing but system calls and memory
    /// accesses: it shares the parent's thread pointer, hence its thread-local storage.
    ///
    /// # Errors
    ///
    /// The `errno`: no memory, no process, a sandbox that forbids it, or ThreadSanitizer (ENOSYS),
    /// whose runtime takes it for a fork, and then finds its own memory changed.
    ///
    /// # Safety
    ///
    /// What `argument` leads to stays valid until [`end`](Self::end) answers anything but
    /// [`End::Unknown`].
    pub(crate) unsafe fn start(
        work: extern "C" fn(*mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> Result<Companion, i32> {
        if race_detector::is_thread_sanitizer() {
            return Err(libc::ENOSYS);
        }
        let stack = memory::map(STACK_BYTES).ok_or(libc::ENOMEM)?;
        // Flags that every C library's function passes on: musl's refuses those about the child's
        // thread number. What is not shared is copied, but for the memory: shared, a root directory
        // would keep other threads from running programs with more rights meanwhile.
        let flags = libc::CLONE_VM | libc::CLONE_FILES;
        // SAFETY: the stack is the child's alone and stays mapped until it is gone; `work` and
        // `argument` by contract.
        let number = unsafe {
            let top = stack.as_ptr().add(STACK_BYTES).cast::<c_void>();
            libc::clone(work, top, flags, argument)
        };
        if number < 0 {
            let why = errno();
            // SAFETY: there is no child, and no other thread has seen the mapping.
            unsafe { memory::unmap(stack, STACK_BYTES) };
            return Err(why);
        }
        Ok(Companion { number, stack })
    }

    /// Lets the companion run wherever `cpus` allow, so that it gets on where a CPU is kept from
    /// it.
    pub(crate) fn set_free(&self, cpus: &[u64]) {
        let arguments =
            [self.number as usize, size_of_val(cpus), cpus.as_ptr().expose_provenance(), 0];
        // SAFETY: the kernel reads that many bytes. A failure leaves it where it is.
        unsafe { raw_call(libc::SYS_sched_setaffinity, arguments) };
    }

    /// Waits until the companion has ended, and gives its stack back. One that does not end in time
    /// is killed.
    pub(crate) fn end(self) -> End {
        let end = match self.wait(GRACE_MS) {
            Some(end) => end,
            None => {
                self.kill();
                match self.wait(GRACE_MS) {
                    Some(End::Unknown) | None => End::Unknown,
                    Some(_) => End::Late,
                }
            }
        };
        if end != End::Unknown {
            // SAFETY: the child is gone, and this value was the only way to its stack.
            unsafe { memory::unmap(self.stack, STACK_BYTES) };
        }
        end
    }

    /// Whether it has ended; `None` while it runs.
    ///
    /// Another thread that waits for children of every kind may be faster: then the answer is
    /// ECHILD, and the child is gone as well, since a process that can be waited for has left its
    /// memory before. Any other error says nothing.
    fn look(&self) -> Option<End> {
        let mut status: c_int = 0;
        let place = (&raw mut status).expose_provenance();
        let options = (libc::__WALL | libc::WNOHANG) as usize;
        // SAFETY: the kernel writes the status, if any, to a place of its size.
        let answer =
            unsafe { raw_call(libc::SYS_wait4, [self.number as usize, place, options, 0]) };
        match answer as i32 {
            0 => None,
            number if number == self.number && libc::WIFSIGNALED(status) => Some(End::Killed),
            number if number == self.number => Some(End::Exited),
            error if error == -libc::ECHILD => Some(End::Exited),
            _ => Some(End::Unknown),
        }
    }

    fn wait(&self, limit_ms: u64) -> Option<End> {
        let deadline_ms = clock::now_ms() + limit_ms;
        loop {
            match self.look() {
                None if clock::now_ms() < deadline_ms => give_way(),
                answer => return answer,
            }
        }
    }

    /// Kills it by a descriptor, since its number might be another process's by now: the second
    /// look says that the number was still its own when the descriptor was made.
    fn kill(&self) {
        // SAFETY: takes numbers.
        let descriptor = unsafe { raw_call(libc::SYS_pidfd_open, [self.number as usize, 0, 0, 0]) };
        if descriptor < 0 {
            return;
        }
        if self.look().is_none() {
            let arguments = [descriptor as usize, libc::SIGKILL as usize, 0, 0];
            // SAFETY: takes numbers and a null pointer for the details.
            unsafe { raw_call(libc::SYS_pidfd_send_signal, arguments) };
        }
        // SAFETY: the descriptor was made above.
        unsafe { raw_call(libc::SYS_close, [descriptor as usize, 0, 0, 0]) };
    }
}

/// Lets others run on this CPU.
pub(crate) fn give_way() {
    // SAFETY: takes nothing.
    unsafe { raw_call(libc::SYS_sched_yield, [0; 4]) };
}

/// To be called in the child first: from here on it ends with the thread that made it.
pub(crate) fn end_with_parent() {
    // SAFETY: takes numbers.
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

/// Asks for a short slice, the shortest there is: a thread with one may preempt a thread in the
/// middle of its own (Linux 6.12 and later), and need not wait for a tick. A refusal leaves things
/// as they are.
pub(crate) fn ask_for_short_slice() {
    const SHORTEST_NS: u64 = 100_000;
    let mut attributes = SchedulingAttributes::default();
    let size = size_of::<SchedulingAttributes>();
    let place = (&raw mut attributes).expose_provenance();
    // SAFETY: the kernel writes at most that many bytes to a place that has them.
    let known = unsafe { raw_call(libc::SYS_sched_getattr, [0, place, size, 0]) } == 0;
    if known && attributes.policy == libc::SCHED_OTHER as u32 {
        attributes.runtime_ns = SHORTEST_NS;
        let place = (&raw const attributes).expose_provenance();
        // SAFETY: the kernel reads as many bytes as the structure says it has.
        unsafe { raw_call(libc::SYS_sched_setattr, [0, place, 0, 0]) };
    }
}

/// The CPU that runs the caller. Not the C library's function, which would look into the parent's
/// rseq area.
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

    /// What a companion of these tests is told, and tells.
    #[derive(Default)]
    struct Board {
        began: AtomicU32,
        enough: AtomicU32,
    }

    fn board() -> &'static Board {
        Box::leak(Box::default())
    }

    fn start(work: extern "C" fn(*mut c_void) -> c_int, board: &'static Board) -> Companion {
        // SAFETY: the board stays forever.
        unsafe { Companion::start(work, ptr(board)).expect("a companion") }
    }

    fn ptr(board: &'static Board) -> *mut c_void {
        std::ptr::from_ref(board).cast_mut().cast()
    }

    extern "C" fn come_and_go(board: *mut c_void) -> c_int {
        // SAFETY: the board stays forever.
        unsafe { &*board.cast::<Board>() }.began.store(1, SeqCst);
        0
    }

    extern "C" fn stay(board: *mut c_void) -> c_int {
        end_with_parent();
        // SAFETY: the board stays forever.
        let board = unsafe { &*board.cast::<Board>() };
        board.began.store(1, SeqCst);
        // Not for ever, if the test dies.
        let end_ms = clock::now_ms() + 600_000;
        while board.enough.load(SeqCst) == 0 && clock::now_ms() < end_ms {
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

    /// Waits until it has ended, and leaves it to others to wait for that. So `end` has no time in
    /// which it must end.
    fn await_end(companion: &Companion) {
        let options = libc::WEXITED | libc::WNOWAIT | libc::__WALL;
        // SAFETY: all zero is a valid place for the answer.
        let answer = unsafe {
            let mut what: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, companion.number as libc::id_t, &mut what, options)
        };
        assert_eq!(answer, 0);
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
        assert_eq!(companion.end(), End::Exited);
        assert_eq!(board.began.load(SeqCst), 1);
    }

    #[test]
    fn one_that_does_not_end_is_killed() {
        let board = board();
        let companion = start(stay, board);
        let (number, mut status) = (companion.number, libc::SIGKILL);
        let end = companion.end();
        if end == End::Unknown {
            // It is killed as well, where a busy machine takes longer for that.
            // SAFETY: `status` is a valid place.
            unsafe { libc::waitpid(number, &mut status, libc::__WALL) };
        }
        board.enough.store(1, SeqCst);
        assert!(matches!(end, End::Late | End::Unknown), "not forbidden: {end:?}");
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL);
    }

    #[test]
    fn another_thread_may_have_waited_for_it() {
        let companion = start(come_and_go, board());
        let mut status = 0;
        // SAFETY: `status` is a valid place.
        let found = unsafe { libc::waitpid(companion.number, &mut status, libc::__WALL) };
        assert_eq!(found, companion.number);
        assert_eq!(companion.end(), End::Exited);
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
        assert_eq!(companion.end(), End::Exited);
        assert_eq!((confined, free), (only, home));
    }

    /// Where 1024 CPUs are enough.
    fn libc_affinity(number: libc::pid_t) -> [u64; 16] {
        let mut words = [0u64; 16];
        // SAFETY: the place has the size that is given.
        let answer = unsafe { libc::sched_getaffinity(number, 128, words.as_mut_ptr().cast()) };
        assert_eq!(answer, 0);
        words
    }

    /// By then its number may be another process's, which is no child of this one.
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
            // SAFETY: as above. The number goes through the pipe, and an answer to a question.
            unsafe {
                if libc::fork() == 0 {
                    let mut number = libc::getpid();
                    libc::write(answers[1], (&raw const number).cast(), 4);
                    // It ends with the test, if that dies.
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
        let companion = Companion { number, stack: NonNull::dangling() };
        companion.kill();
        let mut byte = 0u8;
        // SAFETY: as above. What is to be killed runs no instruction any more, so it would not answer.
        unsafe {
            assert_eq!(libc::write(questions[1], (&raw const byte).cast(), 1), 1);
            assert_eq!(libc::read(answers[0], (&raw mut byte).cast(), 1), 1, "it was killed");
            [answers[0], questions[0], questions[1]].iter().for_each(|&end| _ = libc::close(end));
        }
    }
}
