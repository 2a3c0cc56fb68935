//! Injected faults, each of which a check must find; without them it finds nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::{process, thread};

use percid::id::SourceError;
use percid::per_id::{Field, Unchanged, Word};
use percid::{PerId, Source, testing};
use percid_check::{Check, Failure, Part, Random, Structure};

/// `true` if checks send signals and fork.
const IS_LINUX: bool =
    cfg!(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)));

/// Additions of an operation.
const BATCH: i64 = 50;

/// An injected fault of [`Sum`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// An addition reads the word, and then stores it by another operation.
    TwoOperations,
    /// An addition notes each try.
    EveryTryCounts,
    /// An operation expects that its thread keeps its ID.
    KeepsItsId,
    /// An operation adds 2 in two steps, and a drain expects even words.
    HalfDone,
    /// A drain reads words that it does not hold, and stores 0.
    DrainWithoutHold,
    /// A drain does not fence the CPUs.
    SkippedFence,
    /// An addition searches in the wrong place for the value that it must compare.
    Endless,
    /// The operating thread is not registered with the kernel, so nothing is aborted.
    Unregistered,
    /// An operation panics, about once in a thousand times.
    Panic,
    /// A child process does not account for its operations.
    LostInChild,
    /// A child process ends early.
    DeadChild,
    /// A child process never ends.
    EndlessChild,
    /// An operation holds a lock, which all need.
    Lock,
}

struct Sum {
    words: PerId<Word>,
    expected: AtomicI64,
    fault: Fault,
    process: u32,
    lock: Mutex<()>,
}

impl Sum {
    fn with_source(source: Source, fault: Fault) -> Result<Sum, SourceError> {
        let words = PerId::with_source(source, (|| Word::new(0)) as fn() -> Word)?;
        let (process, lock) = (process::id(), Mutex::new(()));
        Ok(Sum { words, expected: AtomicI64::new(0), fault, process, lock })
    }

    fn current(&self) -> i64 {
        self.words.current().map_or(0, Word::load)
    }

    /// Adds 1 like a structure that needs more than an addition: stores what it has computed, if
    /// nothing has changed.
    fn add_by_comparison(&self) {
        let mut seen = self.current();
        loop {
            if self.fault == Fault::EveryTryCounts {
                self.expected.fetch_add(1, Relaxed);
            }
            match self.words.store_if(Field::whole(), seen, seen + 1) {
                Ok(_) => break,
                Err(Unchanged::Differs(now)) if self.fault != Fault::Endless => seen = now,
                // A thread without an ID does not find here what `store_if` compares.
                Err(_) => seen = self.current(),
            }
        }
        if self.fault != Fault::EveryTryCounts {
            self.expected.fetch_add(1, Relaxed);
        }
    }
}

impl Structure for Sum {
    fn operate(&self, random: &mut Random) {
        let is_child = process::id() != self.process;
        match self.fault {
            Fault::LostInChild if is_child => _ = self.words.add(Field::whole(), 1),
            Fault::DeadChild if is_child => process::abort(),
            Fault::EndlessChild if is_child => loop {
                thread::park();
            },
            Fault::Lock => {
                let _lock = self.lock.lock();
                self.words.add(Field::whole(), 1).expect("memory");
                self.expected.fetch_add(1, Relaxed);
            }
            Fault::TwoOperations => {
                let sum = self.current() + 1;
                let (before, word) = self.words.swap(Field::whole(), sum).expect("memory");
                // After eight aborted tries it is a word without an ID. That is found too, but
                // earlier than the fault at an instruction.
                if self.words.id_of(word).is_none() {
                    word.store(before + 1);
                }
                self.expected.fetch_add(1, Relaxed);
            }
            Fault::KeepsItsId | Fault::HalfDone => {
                let words = [1, 1].map(|n| self.words.add(Field::whole(), n).expect("memory"));
                self.expected.fetch_add(2, Relaxed);
                let [first, second] = words.map(|word| self.words.id_of(word));
                let both_have_ids = first.is_some() && second.is_some();
                if self.fault == Fault::KeepsItsId && both_have_ids {
                    assert_eq!(first, second, "another ID");
                }
            }
            Fault::Unregistered => {
                testing::unregister_this_thread();
                self.words.add(Field::whole(), 1).expect("memory");
                self.expected.fetch_add(1, Relaxed);
            }
            Fault::Panic if random.below(1000) == 0 => panic!("an injected panic"),
            _ if random.below(2) == 0 => self.add_by_comparison(),
            _ => {
                // Many in a row: threads are inside sections most of the time.
                for _ in 0..BATCH {
                    self.words.add(Field::whole(), 1).expect("memory");
                }
                self.expected.fetch_add(BATCH, Relaxed);
            }
        }
    }

    fn visit(&self) {
        testing::skip_fence(self.fault == Fault::SkippedFence);
        if self.fault == Fault::DrainWithoutHold {
            for (_, word) in self.words.iter() {
                self.expected.fetch_sub(word.load(), Relaxed);
                word.store(0);
            }
        } else {
            for word in self.words.visit() {
                assert!(self.fault != Fault::HalfDone || word.load() % 2 == 0, "half done");
                self.expected.fetch_sub(word.load(), Relaxed);
                word.store(0);
            }
        }
        testing::skip_fence(false);
    }

    fn audit(&self) -> Result<(), String> {
        let sum: i64 = self.words.iter().map(|(_, word)| word.load()).sum();
        let expected = self.expected.load(Relaxed);
        if sum == expected { Ok(()) } else { Err(format!("{sum} instead of {expected}")) }
    }
}

/// Returns the results of all sources that are available.
fn failures(fault: Fault) -> Vec<(Source, Option<Failure>)> {
    failures_with(Source::ALL, fault)
}

/// Returns the results of those of `sources` that are available. A check ends at its first failure,
/// so many rounds cost nothing.
fn failures_with(sources: &[Source], fault: Fault) -> Vec<(Source, Option<Failure>)> {
    let available = sources.iter().copied().filter(|source| source.prepare().is_ok());
    let check = |source| {
        let check = Check::new(move |source| Sum::with_source(source, fault));
        // The atomic source has no sections, and some systems have no forks: no faults there.
        let of_sections = [Fault::SkippedFence, Fault::Endless, Fault::Unregistered, Fault::Lock];
        let of_forks = [Fault::LostInChild, Fault::DeadChild, Fault::EndlessChild];
        let is_none = source == Source::Atomic && of_sections.contains(&fault)
            || !IS_LINUX && of_forks.contains(&fault);
        check.sources(&[source]).rounds(if is_none { 20 } else { 2000 }).run().err()
    };
    available.map(|source| (source, check(source))).collect()
}

/// Returns `true` if threads of this process do not run at the same time, and reports the skip.
fn has_one_cpu(what: &str) -> bool {
    let has_one = thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
    if has_one {
        percid_skips::not_checked(what, "threads do not run at the same time on one CPU");
    }
    has_one
}

#[test]
fn two_operations_instead_of_one_are_found_at_an_instruction() {
    for (source, failure) in failures(Fault::TwoOperations) {
        let failure = failure.unwrap_or_else(|| panic!("{source} hides the fault"));
        println!("{failure}");
        if source != Source::Atomic {
            assert_eq!(failure.part(), Part::EveryInstruction, "{failure}");
            assert!(failure.to_string().contains("instruction"), "{failure}");
        }
    }
}

/// Checks that the table has a failure at an instruction, by one interruption. The kernel may change
/// the ID of a thread by itself.
fn is_found_at_an_instruction(fault: Fault, interruption: &str) {
    for (_, failure) in failures_with(&[Source::Table], fault) {
        let failure = failure.expect("a failure");
        println!("{failure}");
        assert_eq!(failure.part(), Part::EveryInstruction, "{failure}");
        assert!(failure.to_string().contains(interruption), "{failure}");
    }
}

#[test]
fn an_operation_that_expects_to_keep_its_id_is_found_by_a_move() {
    if !has_one_cpu("a move at an instruction") {
        is_found_at_an_instruction(Fault::KeepsItsId, "by a move to another CPU");
    }
}

#[test]
fn an_operation_that_is_half_done_is_found_by_a_visit() {
    is_found_at_an_instruction(Fault::HalfDone, "by a visit");
}

#[test]
fn an_operation_that_counts_each_try_is_found_at_an_instruction() {
    for (source, failure) in failures(Fault::EveryTryCounts) {
        let failure = failure.unwrap_or_else(|| panic!("{source} hides the fault"));
        println!("{failure}");
        if source != Source::Atomic {
            assert_eq!(failure.part(), Part::EveryInstruction, "{failure}");
        }
    }
}

#[test]
fn a_drain_without_hold_is_found_at_random() {
    if has_one_cpu("a drain without hold") {
        return;
    }
    for (source, failure) in failures(Fault::DrainWithoutHold) {
        let failure = failure.unwrap_or_else(|| panic!("{source} hides the fault"));
        println!("{failure}");
        assert_eq!(failure.part(), Part::AtRandom, "{failure}");
    }
}

#[test]
fn a_drain_without_its_fence_is_found_at_random() {
    if has_one_cpu("a drain without its fence") {
        return;
    }
    for (source, failure) in failures(Fault::SkippedFence) {
        assert_eq!(failure.is_some(), source != Source::Atomic, "{source}: {failure:?}");
        if let Some(failure) = failure {
            println!("{failure}");
            assert_eq!(failure.part(), Part::AtRandom, "{failure}");
        }
    }
}

#[test]
fn an_operation_that_aborts_do_not_end_is_found() {
    for (source, failure) in failures(Fault::Endless) {
        assert_eq!(failure.is_some(), source != Source::Atomic, "{source}: {failure:?}");
        if let Some(failure) = failure {
            println!("{failure}");
            assert!(failure.message().contains("do not end"), "{failure}");
        }
    }
}

#[test]
fn a_section_that_is_not_aborted_is_found() {
    for (source, failure) in failures(Fault::Unregistered) {
        assert_eq!(failure.is_some(), source != Source::Atomic, "{source}: {failure:?}");
        if let Some(failure) = failure {
            println!("{failure}");
            assert!(failure.message().contains("did not abort"), "{failure}");
        }
    }
}

#[test]
fn a_panic_is_a_failure() {
    for (source, failure) in failures(Fault::Panic) {
        let failure = failure.unwrap_or_else(|| panic!("{source} hides the panic"));
        assert_eq!(failure.message(), "panic: an injected panic");
        assert_eq!(failure.source(), source);
    }
}

/// Checks that each source has a failure with `text`, if processes fork.
fn is_found_in_children(sources: &[Source], fault: Fault, text: &str) {
    for (source, failure) in failures_with(sources, fault) {
        assert_eq!(failure.is_some(), IS_LINUX, "{source}: {failure:?}");
        if let Some(failure) = failure {
            println!("{failure}");
            assert!(failure.message().contains(text), "{failure}");
        }
    }
}

#[test]
fn a_child_that_loses_operations_is_found() {
    is_found_in_children(Source::ALL, Fault::LostInChild, "in a child: ");
}

#[test]
fn a_child_that_ends_early_is_found() {
    is_found_in_children(Source::ALL, Fault::DeadChild, "signal 6 has ended a child");
}

#[test]
#[ignore = "long: waits for a minute"]
fn a_child_that_does_not_end_is_found() {
    is_found_in_children(&[Source::Atomic], Fault::EndlessChild, "a child does not end");
}

#[test]
#[ignore = "long: waits for a minute"]
fn an_operation_that_holds_a_lock_is_found() {
    for (source, failure) in failures_with(&[Source::Table], Fault::Lock) {
        assert!(failure.is_some(), "{source}");
        if let Some(failure) = failure {
            println!("{failure}");
            assert!(failure.message().contains("waits for the interrupted one"), "{failure}");
        }
    }
}

#[test]
fn without_a_fault_nothing_is_found() -> Result<(), Failure> {
    let report = Check::new(|source| Sum::with_source(source, Fault::None)).run()?;
    println!("{report}");
    for of_source in &report.sources {
        let work = of_source.work;
        assert!(work.operations > 0 && work.visits > 0, "{report}");
        assert_eq!(work.instructions > 0, of_source.no_instructions.is_none(), "{report}");
    }
    Ok(())
}
