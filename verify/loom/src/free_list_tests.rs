//! The list of free cells: no cell is allocated twice, none is lost, and each is zeroed.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use loom::thread;

use crate::explore;
use crate::free_list::FreeList;

/// Offsets 1 to 3 are cells; 0 ends the list.
struct Cells {
    list: FreeList,
    words: Vec<AtomicI64>,
}

impl Cells {
    fn new(free: u32) -> Arc<Cells> {
        let words = (0..4).map(|_| AtomicI64::new(0)).collect();
        let cells = Cells { list: FreeList { head: AtomicU64::new(0) }, words };
        (1..=free).for_each(|cell| cells.push(cell));
        Arc::new(cells)
    }

    fn push(&self, cell: u32) {
        self.list.push(cell, &self.words[cell as usize]);
    }

    fn pop(&self) -> Option<u32> {
        let cell = self.list.pop(|offset| &self.words[offset as usize])?;
        // Using the cell: it must come zeroed, and be no other thread's.
        assert_eq!(self.words[cell as usize].swap(-1, Relaxed), 0, "cell {cell} is in use");
        Some(cell)
    }

    fn put_back(&self, cell: u32) {
        assert_eq!(self.words[cell as usize].swap(0, Relaxed), -1);
        self.push(cell);
    }

    /// Returns all free cells, which must be distinct.
    fn drain(&self) -> Vec<u32> {
        let mut cells: Vec<u32> = std::iter::from_fn(|| self.pop()).collect();
        cells.sort_unstable();
        cells
    }
}

#[test]
fn two_threads_pop_and_push() {
    explore::all("free_list, 2 threads, pop and push", || {
        let cells = Cells::new(2);
        let theirs = Arc::clone(&cells);
        let other = thread::spawn(move || {
            theirs.pop().into_iter().for_each(|cell| theirs.put_back(cell));
        });
        cells.pop().into_iter().for_each(|cell| cells.put_back(cell));
        other.join().unwrap();
        assert_eq!(cells.drain(), [1, 2]);
    });
}

/// Provokes ABA: one thread is about to pop while the other pops two and puts the first back.
fn aba(cells: &Arc<Cells>) {
    let theirs = Arc::clone(cells);
    let other = thread::spawn(move || {
        let first = theirs.pop();
        let second = theirs.pop();
        first.into_iter().for_each(|cell| theirs.put_back(cell));
        second
    });
    let mine = cells.pop();
    let second = other.join().unwrap();
    let mut all = cells.drain();
    all.extend(mine.into_iter().chain(second));
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3]);
}

#[test]
fn the_tag_keeps_aba_out() {
    explore::all("free_list, 2 threads, ABA", || aba(&Cells::new(3)));
}

#[test]
fn a_list_without_a_tag_is_caught() {
    explore::expect_failure("free_list without a tag", || {
        // A list as before, whose tag another thread resets between any two accesses: it never
        // differs.
        let cells = Cells::new(3);
        let theirs = Arc::clone(&cells);
        let other = thread::spawn(move || {
            let first = theirs.pop();
            let second = theirs.pop();
            first.into_iter().for_each(|cell| theirs.put_back(cell));
            let head = theirs.list.head.load(Relaxed);
            theirs.list.head.store(head & u64::from(u32::MAX), Relaxed);
            second
        });
        cells.pop();
        other.join().unwrap();
        cells.drain();
    });
}
