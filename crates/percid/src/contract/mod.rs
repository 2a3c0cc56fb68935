//! The properties of every structure, as a table: a row for each structure ([`rows`]), a column for
//! each kind of fault ([`cells`]).
//!
//! A structure's row is an implementation of [`Contract`], whose items have no defaults. So a new
//! structure needs a row, and a row does not compile until each of its cells has the data for its
//! test, or the reason why it does not apply.
//!
//! Each cell runs in a process of its own, which is this test program again: nothing was used there
//! before, no other test has a thread there, and all changes stay there.

mod cells;
mod rows;

use std::io;
use std::process::{Command, Output};

use crate::id::{Source, SourceError};
use crate::sys::race_detector;

/// A cell: the data for its test, or the reason why it does not apply.
type Cell<T> = Result<T, &'static str>;

/// Visits and removes the contents of a structure. Calls a function for each visit.
type Visit<R> = fn(&R, &mut dyn FnMut());

/// A row of the table. A *put* is one use by the calling thread that leaves something behind.
trait Contract: Sized + Send + Sync + 'static {
    fn with(source: Source) -> Result<Self, SourceError>;

    /// Creates a structure like the one in a `static`.
    fn fresh() -> Self;

    /// Makes one use. Returns `false` if there was no memory for it, which is reported.
    fn put(&self) -> bool;

    /// Returns the number of puts that it still contains. May remove them.
    fn count(&self) -> u64;

    /// Returns the number of puts lost for lack of memory, as the structure reports it; an error if
    /// it reports to each caller.
    fn told(&self) -> Cell<u64>;

    /// Does everything that the structure supports, in a short life: the dropped structure then
    /// holds memory of every kind that it uses.
    fn live(&self);

    /// Bytes of memory that a life leaves behind forever, by its contract, and of address space.
    const LEAVES: (u64, u64);

    /// Maximum number of times that a thousand puts claim memory, once it has been used.
    const TAKES_MEMORY: u64;

    /// `Ok` if `put` is async-signal-safe.
    const HANDLER: Cell<()>;

    /// The visit of the contents, its fences, and `true` if each visit removes one put.
    const VISIT: Cell<(Visit<Self>, Fences, bool)>;

    /// `Ok` if what is put may be memory that another thread uses after it was counted.
    const HANDS_OVER: Cell<()>;

    /// Returns the number of puts that a second count reports again, out of those that were
    /// counted.
    fn kept_by_count(counted: u64) -> u64;

    /// `Ok` if it depends on the IDs of threads: such a structure is used with all of them.
    const IDS: Cell<()>;
}

/// Number of fences of all CPUs that a visit makes if there are sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fences {
    None,
    /// One for each 64 IDs with contents.
    PerWord,
}

/// Returns the sources of this machine.
fn sources() -> impl Iterator<Item = Source> {
    Source::ALL.iter().copied().filter(|source| source.prepare().is_ok())
}

/// A column.
#[derive(Clone, Copy)]
struct Column {
    name: &'static str,
    /// Runs the cell of a row in this process.
    run: fn(row: usize),
}

/// The environment variable with the cell that a process must run.
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

/// Returns `true` under a CPU emulator whose architecture the kernel does not know. QEMU creates a
/// child with memory of its own, which cannot report to its parent why it was not started: it ends
/// with the status of a shell and prints nothing.
fn is_not_for_this_machine(started: &io::Result<Output>) -> bool {
    match started {
        Ok(output) => output.status.code() == Some(127) && output.stdout.is_empty(),
        Err(error) => error.raw_os_error() == Some(libc::ENOEXEC),
    }
}

/// Runs one cell, in a process that was made for it; does nothing in any other.
#[test]
fn cell() {
    let Ok(cell) = std::env::var(CELL) else { return };
    let (column, row) = cell.split_once('/').expect("a column and a row");
    let column = cells::COLUMNS.iter().find(|known| known.name == column).expect("a column");
    (column.run)(rows::NAMES.iter().position(|&name| name == row).expect("a row"));
    println!("checked {cell}");
}

/// Every structure that the crate exports has a row, or is named below as none.
#[test]
fn every_structure_has_a_row() {
    const NO_STRUCTURES: [&str; 9] = [
        "SourceSelection",
        "IdLimit",
        "Overflow",
        "Source",
        "compact_ids",
        "init",
        "own_memory_in",
        "set_id_limit",
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
fn tries_are_counted_and_bounded() {
    check("tries");
}

#[test]
fn race_detectors_are_told_what_is_handed_over() {
    check("announced");
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
