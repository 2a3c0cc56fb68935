//! The accomplice: a second thread that does to the worker what only a thread of its process can.

use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use percid::testing;
use percid_subject::board::{Board, Request};
use percid_subject::{LOOT, Operation};

use crate::counters;

pub(crate) fn start(board: &'static Board) {
    std::thread::spawn(move || serve(board));
    while board.done.count() == 0 {
        board.done.wait_beyond(0);
    }
}

fn serve(board: &Board) {
    // A signal for the process must not end up here.
    block_signals();
    move_to(board.accomplice_cpu.load(SeqCst));
    let mut seen = board.asked.count();
    board.done.ring();
    loop {
        board.asked.wait_beyond(seen);
        if board.asked.count() == seen {
            continue;
        }
        seen = board.asked.count();
        let granted = grant(board);
        board.granted.store(granted.into(), SeqCst);
        board.done.ring();
    }
}

fn grant(board: &Board) -> bool {
    let cpu = board.request_cpu.load(SeqCst);
    match Request::from_number(board.request.load(SeqCst)) {
        Some(Request::Fence) => testing::fence(cpu),
        Some(Request::StealAndFree) => steal(board, cpu, None),
        Some(Request::StealAndReturn) => steal(board, cpu, Some(cpu)),
        Some(Request::StealWithoutFence) => {
            testing::skip_fence(true);
            steal(board, cpu, None)
        }
        Some(Request::Preempt) => preempt(board, cpu),
        None => false,
    }
}

/// Takes the ID of a CPU and adds to the counter of the present operation through it, by a load and a
/// store.
fn steal(board: &Board, cpu: u32, back_to: Option<u32>) -> bool {
    let Some(operation) = Operation::from_number(board.operation.load(SeqCst)) else {
        return false;
    };
    let Some(stolen) = testing::steal(cpu) else { return false };
    stolen.add_unprotected(counters::counter(operation), LOOT);
    board.stolen.fetch_add(1, SeqCst);
    stolen.put_back(back_to);
    true
}

/// Runs on the CPU: whoever ran there does not meanwhile.
fn preempt(board: &Board, cpu: u32) -> bool {
    let moved = move_to(cpu);
    let end = Instant::now() + Duration::from_micros(20);
    while Instant::now() < end {}
    move_to(board.accomplice_cpu.load(SeqCst)) && moved
}

fn move_to(cpu: u32) -> bool {
    let mut mask = [0u64; 128];
    mask[cpu as usize / 64 % 128] |= 1 << (cpu % 64);
    // SAFETY: the mask is readable for its whole size; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&mask), mask.as_ptr()) == 0 }
}

fn block_signals() {
    // SAFETY: a set of signals is plain memory that `sigfillset` initialises.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}
