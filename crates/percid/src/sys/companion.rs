//! A process that shares this one's memory for a moment, to do what a thread cannot do to itself.
//!
//! It is a child made by `clone` with `CLONE_VM`: no thread of the C library, invisible to `fork` handlers, without an
//! rseq registration of its own (the kernel clears it for such children), with every signal blocked that its parent has
//! blocked. It ends without a signal to its parent, and a plain `wait` for any child does not find it. The kernel kills
//! it if the thread that made it ends first.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use super::{errno, memory};

/// Enough for a few system calls and a set of CPUs, unoptimised.
const STACK_BYTES: usize = 64 << 10;

/// A running companion; waited for when dropped.
#[derive(Debug)]
pub(crate) struct Companion {
    number: libc::pid_t,
    stack: NonNull<u8>,
}

impl Companion {
    /// Starts `work`, which runs in the child and must do nothing but system calls and memory accesses: it shares the
    /// parent's thread pointer, hence its thread-local storage.
    ///
    /// # Errors
    ///
    /// The `errno`: no memory, no process, or a sandbox that forbids it.
    ///
    /// # Safety
    ///
    /// What `argument` leads to lives until this value is dropped; `work` returns in bounded time.
    pub(crate) unsafe fn start(
        work: extern "C" fn(*mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> Result<Companion, i32> {
        let stack = memory::map(STACK_BYTES).ok_or(libc::ENOMEM)?;
        // Flags that every C library's function passes on: musl's refuses those about the child's thread number.
        let flags = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES;
        // SAFETY: the stack is the child's alone and stays mapped until it is gone; `work` and `argument` by contract.
        let number = unsafe {
            let top = stack.as_ptr().add(STACK_BYTES).cast::<c_void>();
            libc::clone(work, top, flags, argument)
        };
        if number < 0 {
            let why = errno();
            // SAFETY: nobody has seen the mapping.
            unsafe { memory::unmap(stack, STACK_BYTES) };
            return Err(why);
        }
        Ok(Companion { number, stack })
    }

    /// Waits for the child's end. The C library's function would be a place where a thread can be cancelled.
    fn wait(&self) -> bool {
        let none = std::ptr::null_mut::<c_void>();
        // SAFETY: a plain system call; nobody wants the status.
        unsafe { libc::syscall(libc::SYS_wait4, self.number, none, libc::__WALL, none) >= 0 }
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        // Another thread that waits for children of every kind may be faster: then the answer is ECHILD, and the child
        // is gone as well. Whoever has ended has left its memory before.
        while !self.wait() && errno() == libc::EINTR {}
        // SAFETY: the child is gone, and this value was the only way to its stack.
        unsafe { memory::unmap(self.stack, STACK_BYTES) };
    }
}

/// Lets others run on this CPU.
pub(crate) fn give_way() {
    // SAFETY: a plain system call.
    unsafe { libc::syscall(libc::SYS_sched_yield) };
}

/// To be called in the child first: it ends with the thread that made it.
pub(crate) fn end_with_parent() {
    // SAFETY: a plain system call.
    unsafe { libc::syscall(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}
