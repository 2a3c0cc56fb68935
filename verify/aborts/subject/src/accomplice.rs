//! The accomplice: a second thread that does to the worker what only a thread of its process can.

use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use percid::testing;
use percid_subject::board::{Answer, Board, Request};

use crate::structure;

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
        let answer = serve_one(board);
        board.answer.store(answer as u32, SeqCst);
        board.done.ring();
    }
}

fn serve_one(board: &Board) -> Answer {
    let cpu = board.request_cpu.load(SeqCst);
    let felt = |done| if done { Answer::Felt } else { Answer::Refused };
    match Request::from_number(board.request.load(SeqCst)) {
        Some(Request::Fence) => felt(testing::fence(cpu)),
        Some(Request::StealAndFree) => felt(steal(board, cpu, None)),
        Some(Request::StealAndReturn) => felt(steal(board, cpu, Some(cpu))),
        Some(Request::StealWithoutFence) => {
            testing::skip_fence(true);
            felt(steal(board, cpu, None))
        }
        Some(Request::Preempt) => felt(preempt(board, cpu)),
        Some(Request::Visit) => visit(board),
        Some(Request::VisitWithoutFence) => {
            testing::skip_fence(true);
            visit(board)
        }
        None => Answer::Refused,
    }
}

/// Takes the ID of a CPU and does to its copy what the present operation does, by loads and stores.
fn steal(board: &Board, cpu: u32, back_to: Option<u32>) -> bool {
    let Some((structure, operation)) = structure::chosen(board) else { return false };
    let Some(stolen) = testing::steal(cpu) else { return false };
    if structure.rob(operation, &stolen) {
        board.stolen.fetch_add(1, SeqCst);
    }
    stolen.put_back(back_to);
    true
}

fn visit(board: &Board) -> Answer {
    let chosen = structure::chosen(board);
    chosen.map_or(Answer::Refused, |(structure, operation)| structure.visit(operation))
}

/// Runs on the CPU, so that the thread that ran there is preempted.
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
