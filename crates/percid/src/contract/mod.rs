//! What holds for every structure, as a table: a row for each structure ([`rows`]), a column for
//! each kind of fault ([`cells`]).
//!
//! A structure's row is an implementation of [`Contract`], whose items have no defaults. So a new
//! structure needs a row, and a row does not compile before each of its cells has what the test
//! needs, or the reason why it does not apply.
//!
//! Each cell runs in a process of its own, which is this test program again: nothing was used there
//! before, no other test has a thread there, and what is done to it stays there.

mod cells;
mod rows;

use std::io;
use std::process::{Command, Output};

use crate::id::{Source, Unavailable};
use crate::sys::race_detector;

/// A cell: what its test needs, or the reason why it does not apply.
type Cell<T> = Result<T, &'static str>;

/// Visits what a structure has, and takes it out. Calls a function for each visit.
type Visit<R> = fn(&R, &mut dyn FnMut());

/// A row of the table. A *put* is one use by the calling thread that leaves something behind.
trait Contract: Sized + Sync + 'static {
    fn with(source: Source) -> Result<Self, Unavailable>;

    /// As it lies in a `static`.
    fn fresh() -> Self;

    /// One use. `false`: there was no memory for it, which is told.
    fn put(&self) -> bool;

    /// The puts that it still has. May take them out.
    fn count(&self) -> u64;

    /// Puts that were lost for want of memory, as the structure tells it; nothing if it tells each
    /// caller.
    fn told(&self) -> Cell<u64>;

    /// All that can be done with one, in a short life: what is dropped afterwards holds memory of
    /// every kind that the structure knows.
    fn live(&self);

    /// Bytes of memory that a life leaves behind for good, by its contract, and of address space.
    const LEAVES: (u64, u64);

    /// How often a thousand puts take memory at most, once it has been used.
    const TAKES_MEMORY: u64;

    /// Whether `put` is async-signal-safe.
    const HANDLER: Cell<()>;

    /// The visits of what it has, their fences, and whether each takes one put out.
    const VISIT: Cell<(Visit<Self>, Fences, bool)>;

    /// Of the puts that were counted, those that are counted again.
    fn kept_by_count(counted: u64) -> u64;

    /// Whether it depends on the IDs of threads: such a structure is used with all of them.
    const IDS: Cell<()>;
}

/// Fences of all CPUs that a visit takes where there are sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fences {
    None,
    /// One for each 64 IDs that have something.
    PerWord,
}

/// The sources of this machine.
fn sources() -> impl Iterator<Item = Source> {
    Source::ALL.into_iter().filter(|source| source.prepare().is_ok())
}

/// A column.
#[derive(Clone, Copy)]
struct Column {
    name: &'static str,
    /// Runs its cells in this process, of which each has its row.
    run: fn(row: usize),
}

/// The variable that says which cell a process is to run.
const CELL: &str = "PERCID_CONTRACT_CELL";

/// Runs a column: each row in a process of its own.
fn check(column: &str) {
    if race_detector::is_present() {
        percid_skips::not_checked(column, "fast paths are not taken under a race detector");
        return;
    }
    let program = std::env::current_exe().expect("this program");
    for row in rows::NAMES {
        let cell = format!("{column}/{row}");
        let mut child = Command::new(&program);
        child.args(["--exact", "contract::cell", "--nocapture"]).env(CELL, &cell);
        let started = child.env_remove("PERCID_SOURCE").output();
        if is_not_for_this_machine(&started) {
            return percid_skips::not_checked(column, "this program cannot be started");
        }
        let output = started.expect("it starts");
        let said = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (said(&output.stdout), said(&output.stderr));
        assert!(output.status.success(), "{cell}: {}\n{out}\n{err}", output.status);
        assert!(out.contains(&format!("checked {cell}")), "{cell} was not run:\n{out}");
    }
}

/// `true` under an emulator of programs, of whose architecture the kernel knows nothing. QEMU makes a
/// child with memory of its own, which cannot tell its parent why it was not started: it ends with
/// the status of a shell and says nothing.
fn is_not_for_this_machine(started: &io::Result<Output>) -> bool {
    match started {
        Ok(output) => output.status.code() == Some(127) && output.stdout.is_empty(),
        Err(error) => error.raw_os_error() == Some(libc::ENOEXEC),
    }
}

/// One cell, in a process that was made for it; nothing in any other.
#[test]
fn cell() {
    let Ok(cell) = std::env::var(CELL) else { return };
    let (column, row) = cell.split_once('/').expect("a column and a row");
    let column = cells::COLUMNS.iter().find(|known| known.name == column).expect("a column");
    (column.run)(rows::NAMES.iter().position(|&name| name == row).expect("a row"));
    println!("checked {cell}");
}

/// A structure that the crate exports has a row here, or is named below as none.
#[test]
fn every_structure_has_a_row() {
    const NO_STRUCTURES: [&str; 9] = [
        "Choice",
        "Density",
        "Overflow",
        "Source",
        "compact",
        "init",
        "own_memory_in",
        "set_density",
        "ids",
    ];
    let exported =
        include_str!("../lib.rs").lines().filter_map(|line| line.strip_prefix("pub use "));
    let names = exported.flat_map(|path| {
        let last = path.trim_end_matches(';').rsplit("::").next().unwrap_or_default();
        let from = path.find('{').map_or(last, |brace| &path[brace..]);
        from.split(|other: char| !other.is_alphanumeric() && other != '_')
            .filter(|name| !name.is_empty())
    });
    let missing: Vec<&str> =
        names.filter(|name| !rows::NAMES.contains(name) && !NO_STRUCTURES.contains(name)).collect();
    assert_eq!(missing, [] as [&str; 0]);
}

#[test]
fn memory_comes_back_from_every_life() {
    check("lives");
}

#[test]
fn who_loses_a_race_keeps_nothing() {
    check("lost-races");
}

#[test]
fn errno_is_kept_by_every_operation() {
    check("errno");
}

#[test]
fn work_is_bounded_by_counts() {
    check("work");
}

#[test]
fn a_signal_handler_may_use_it_and_interrupt_its_first_use() {
    check("handler");
}

#[test]
fn a_fork_has_what_was_there() {
    check("fork");
}

#[test]
fn what_is_refused_is_told_and_works_again() {
    check("refusal");
}

#[test]
fn every_id_counts() {
    check("ids-of-atomic");
    check("ids-of-table");
}

#[test]
fn a_visit_ends_although_the_visitor_adds() {
    check("visitor-adds");
}

#[test]
fn a_visitor_may_panic() {
    check("visitor-panics");
}
