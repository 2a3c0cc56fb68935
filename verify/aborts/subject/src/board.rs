//! The board: memory that the subject and its tracer share.

use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering::SeqCst};

use crate::bell::Bell;

/// The copies that fit on the board; IDs above are refused.
pub const COPIES: usize = 64;

/// A request to the accomplice, the subject's second thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Request {
    /// Fence the CPU, so that the section in flight there is aborted.
    Fence = 1,
    /// Take the ID of the CPU, write through it without protection, then free it.
    StealAndFree = 2,
    /// Take the ID of the CPU, write through it without protection, then give it back to the CPU.
    StealAndReturn = 3,
    /// Like `StealAndFree`, but without the fence: the negative control.
    StealWithoutFence = 4,
    /// Run on the CPU for a moment, so that the thread there is preempted.
    Preempt = 5,
    /// Remove the contents of the structure: a drain of all IDs, a poll.
    Visit = 6,
    /// Like `Visit`, but without the fence: the negative control.
    VisitWithoutFence = 7,
}

impl Request {
    const ALL: [Request; 7] = [
        Request::Fence,
        Request::StealAndFree,
        Request::StealAndReturn,
        Request::StealWithoutFence,
        Request::Preempt,
        Request::Visit,
        Request::VisitWithoutFence,
    ];

    /// Returns the request with this number.
    pub fn from_number(number: u32) -> Option<Request> {
        Request::ALL.into_iter().find(|&request| request as u32 == number)
    }
}

/// Result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Answer {
    /// It could not be done.
    Refused = 0,
    /// It was done, and a section in flight must not have been aborted.
    Unfelt = 1,
    /// It was done, and a section in flight must have been aborted.
    Felt = 2,
}

impl Answer {
    /// Returns the answer with this number.
    pub fn from_number(number: u32) -> Answer {
        let done = [Answer::Unfelt, Answer::Felt];
        done.into_iter().find(|&answer| answer as u32 == number).unwrap_or(Answer::Refused)
    }
}

/// The fields; all zero at first. The one that is named first writes them.
#[derive(Debug)]
#[repr(C)]
pub struct Board {
    /// Tracer: the worker's next [`Operation`](crate::Operation).
    pub operation: AtomicU32,
    /// Tracer: nonzero to publish only, without an operation.
    pub look_only: AtomicU32,
    /// Tracer: the amount that the operation adds.
    pub amount: AtomicI64,
    /// Worker: the address of its rseq area; 0 if the C library has none.
    pub area: AtomicU64,

    /// Tracer: the accomplice's next [`Request`].
    pub request: AtomicU32,
    /// Tracer: the CPU of the request.
    pub request_cpu: AtomicU32,
    /// Tracer: the CPU on which the accomplice stays out of the worker's way.
    pub accomplice_cpu: AtomicU32,
    /// Accomplice: what became of the request, an [`Answer`].
    pub answer: AtomicU32,
    /// Tracer: rung with each request.
    pub asked: Bell,
    /// Accomplice: rung when it is done, and once when it is ready.
    pub done: Bell,

    /// Handler: how often it ran.
    pub handled: AtomicI64,
    /// Handler: where it interrupted the worker last.
    pub interrupted_at: AtomicU64,
    /// Accomplice: how often it wrote through a stolen ID.
    pub stolen: AtomicI64,

    /// Worker, after each operation: the ID of its CPU.
    pub current_id: AtomicI32,
    /// Worker, after each operation: the faults found so far.
    pub faults: AtomicI64,
    /// Worker, after each operation: the last of them, a [`Fault`](crate::Fault).
    pub last_fault: AtomicU32,
    /// Worker, after each operation: what took place without an ID.
    pub shared: AtomicI64,
    /// Worker, after each operation: what took place in the copies, by ID.
    pub copies: [AtomicI64; COPIES],
}

impl Board {
    /// Maps the board that lies in a file of at least `size_of::<Board>()` bytes. It stays mapped.
    pub fn map(file: RawFd) -> Option<&'static Board> {
        // SAFETY: a new mapping; all bytes zero is a valid board, and it consists of atomics, so
        // that others may write to it at any time.
        unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let size = size_of::<Board>();
            let start = libc::mmap(ptr::null_mut(), size, access, libc::MAP_SHARED, file, 0);
            (start != libc::MAP_FAILED).then(|| &*start.cast::<Board>())
        }
    }

    /// Returns the copies as they were after the last operation.
    pub fn copies(&self) -> [i64; COPIES] {
        std::array::from_fn(|id| self.copies[id].load(SeqCst))
    }
}
