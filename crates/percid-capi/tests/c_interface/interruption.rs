//! Interrupts a C program once at every instruction of its critical sections.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use percid::Source;
use percid_aborts::image::Image;
use percid_aborts::process::{Event, Process};
use percid_aborts::section::Section;
use percid_aborts::text::Patch;

use crate::installation::shared;
use crate::selection::some_compilers;
use crate::toolchain::{Build, Compiler};

/// Result of an interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The program did not execute the instruction: the critical section belongs to another source.
    NotVisited,
    /// The kernel moved the thread to the abort pad.
    Aborted,
    /// The thread continued at the instruction.
    WentOn,
}

/// Two functions, and two sources for each.
#[test]
pub(crate) fn every_instruction_of_an_increment_may_be_interrupted() {
    every_instruction_may_be_interrupted("hot_loop.c", 4, some_compilers(0));
}

/// Pushing, popping, getting, putting, acquiring and appending.
#[test]
pub(crate) fn every_instruction_of_other_structures_may_be_interrupted() {
    every_instruction_may_be_interrupted("hot_structures.c", 12, some_compilers(1));
}

/// The eight operations on words of memory.
#[test]
pub(crate) fn every_instruction_of_operations_on_words_may_be_interrupted() {
    every_instruction_may_be_interrupted("hot_words.c", 18, some_compilers(0));
}

fn every_instruction_may_be_interrupted(source: &str, expected: usize, compilers: &[Compiler]) {
    for compiler in compilers {
        let program = program(compiler.c, source);
        let image = Image::read(&program).expect("a program");
        let sections = Section::all(&image).expect("sections");
        assert_eq!(sections.len(), expected);
        let mut aborts = 0;
        let sources = [Source::Kernel, Source::Table].into_iter();
        for source in sources.filter(|source| source.prepare().is_ok()) {
            let visited: usize =
                sections.iter().map(|section| interrupt_all(&program, source, section)).sum();
            assert!(visited > 12, "{source}: only {visited} instructions were visited");
            aborts += visited;
        }
        println!("{}: {aborts} aborts", compiler.c);
    }
}

/// Interrupts every instruction of a critical section, if the source executes it. Returns the
/// number of instructions.
fn interrupt_all(program: &Path, source: Source, section: &Section) -> usize {
    let at = |address| interrupt(program, source, section, address);
    let outcomes: Vec<_> = section.instructions.iter().map(|&address| at(address)).collect();
    if outcomes.iter().all(|&outcome| outcome == Outcome::NotVisited) {
        return 0;
    }
    let place = section.describe(section.descriptor.start);
    assert!(outcomes.iter().all(|&outcome| outcome == Outcome::Aborted), "{place}: {outcomes:?}");
    // The control: after the commit nothing is aborted.
    assert_eq!(at(section.descriptor.end()), Outcome::WentOn, "{place}");
    outcomes.len()
}

/// Runs the program and interrupts it the first time it reaches an address in or after a critical
/// section. It checks its own sums, and must end successfully.
fn interrupt(program: &Path, source: Source, section: &Section, address: u64) -> Outcome {
    let nothing = File::open("/dev/null").expect("/dev/null");
    let start = Process::start(program, &source.to_string(), nothing.as_raw_fd());
    let mut process = start.expect("a process that may be traced");
    let base = process.base(program).expect("the program's place");
    if !runs_to(&mut process, base + address) {
        return Outcome::NotVisited;
    }
    // The kernel moves a thread to the abort pad before it continues.
    step(&mut process);
    let now = process.registers().expect("registers").rip;
    process.go_on(0).expect("it runs on");
    assert_eq!(process.wait().expect("an event"), Event::Gone(0));
    if now == base + section.pad_target { Outcome::Aborted } else { Outcome::WentOn }
}

/// Executes one instruction.
fn step(process: &mut Process) {
    // SAFETY: the process is traced by this thread and is stopped.
    let result = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, process.number(), 0, 0) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    assert_eq!(process.wait().expect("an event"), Event::Stopped(libc::SIGTRAP));
}

/// Runs the process until it reaches this instruction, without executing it. Returns `false` if the
/// process has ended successfully before.
fn runs_to(process: &mut Process, address: u64) -> bool {
    let trap = Patch::trap(process, address).expect("writable text");
    process.go_on(0).expect("it runs on");
    match process.wait().expect("an event") {
        Event::Stopped(libc::SIGTRAP) => {}
        event => {
            assert_eq!(event, Event::Gone(0));
            return false;
        }
    }
    let mut registers = process.registers().expect("registers");
    assert_eq!(registers.rip, address + 1, "behind the trap");
    registers.rip = address;
    process.set_registers(&registers).expect("writable registers");
    trap.remove(process).expect("writable text");
    true
}

fn program(compiler: &str, source: &str) -> PathBuf {
    let libraries = format!("-Wl,-rpath,{}", shared().libraries().display());
    let build = Build::new(compiler, &[source], "-O2 -fPIE -pie").against(shared());
    let path = build.arguments(&[&libraries]).make().path;
    path.canonicalize().expect("the program")
}
