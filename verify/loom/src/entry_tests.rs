//! An ID on its way to a section: its memory is open and sums visit it before any thread uses it.

use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use loom::thread;

use crate::entry::Entry;
use crate::explore;
use crate::seen::Seen;

struct Table {
    entry: Entry,
    seen: Seen,
    /// Stands for the memory of ID 0: 1 once it is open.
    memory: AtomicU32,
    /// Stands for what the section stores there.
    shard: AtomicU32,
}

fn table() -> Arc<Table> {
    Arc::new(Table {
        entry: Entry(AtomicU32::new(0)),
        seen: Seen { end: AtomicU32::new(0) },
        memory: AtomicU32::new(0),
        shard: AtomicU32::new(0),
    })
}

fn install(table: &Table) {
    table.memory.store(1, Relaxed);
    table.seen.add(0);
    table.entry.set(0, &table.seen);
}

/// Runs a section on the CPU of the entry. It reads the entry and then memory at an address that
/// depends on it: the supported processors keep that order, and the languages' name for it is
/// acquire.
fn section(table: &Table) {
    if table.entry.0.load(Acquire) != 0 {
        assert_eq!(table.memory.load(Relaxed), 1, "closed memory");
        table.shard.store(1, Release);
    }
}

/// Computes a sum in a thread that may have observed the section's update.
fn sum(table: &Table) {
    let updated = table.shard.load(Acquire) == 1;
    let end = table.seen.end();
    assert!(!updated || end == 1, "an update that is not summed");
    assert!(end == 0 || table.memory.load(Relaxed) == 1, "closed memory");
}

fn threads(installing: fn(&Table)) {
    let shared = table();
    let others: Vec<_> = [installing, section]
        .into_iter()
        .map(|work| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || work(&shared))
        })
        .collect();
    sum(&shared);
    others.into_iter().for_each(|other| other.join().unwrap());
}

#[test]
fn who_finds_an_id_finds_its_memory_open_and_summed() {
    explore::all("entry, 3 threads", || threads(install));
}

#[test]
fn an_entry_stored_first_is_caught() {
    explore::expect_failure("entry before its memory", || {
        threads(|table| {
            table.entry.0.store(1, Release);
            table.memory.store(1, Relaxed);
            table.seen.add(0);
        });
    });
}
