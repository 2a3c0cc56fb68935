//! Threads take blocks of a free list that the program has built itself, and give them back;
//! another thread drains the list now and then. At the end every block is accounted for.
//!
//! usage: `free_list [THREADS]`

mod free_list;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use free_list::FreeList;

const BLOCKS: i64 = 100_000;

static LIST: FreeList = FreeList::new();

fn main() -> ExitCode {
    let threads = match std::env::args().nth(1).map_or(Ok(4), |threads| threads.parse::<usize>()) {
        Ok(threads @ 1..=1000) => threads,
        _ => {
            eprintln!("free_list: the argument is a number of threads, from 1 to 1000");
            return ExitCode::from(2);
        }
    };
    let working = AtomicUsize::new(threads);
    let drained = thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for n in 0..BLOCKS {
                    let mut block = LIST.take();
                    block.bytes.clear();
                    block.bytes.extend(n.to_ne_bytes());
                    LIST.give_back(block);
                }
                working.fetch_sub(1, Relaxed);
            });
        }
        let mut drained = 0;
        while working.load(Relaxed) > 0 {
            drained += LIST.drain();
            thread::yield_now();
        }
        drained
    });
    let left = LIST.drain();
    println!("{} blocks taken by {threads} threads", LIST.taken());
    println!("{left} were left at the end; drains had freed {drained} before");
    let complete = LIST.taken() == threads as i64 * BLOCKS;
    if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
