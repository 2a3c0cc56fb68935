//! Programs under sanitizers and valgrind: no invalid access, no undefined behaviour, no leak, no
//! race.

use std::process::Command;

use crate::correctness::STRUCTURES;
use crate::installation::{Installation, only_static, shared};
use crate::selection::{alternately, is_whole};
use crate::toolchain::{Build, Compiler, Program, any_compiler, compilers, is_installed};
use crate::wrapper::WRAPPER;

/// The exit status of the checkers for an error.
const FOUND: i32 = 99;

/// The structures that pass objects between threads, by their names in `race_in_callback.c`.
pub(crate) const HANDING_OVER: [&str; 5] = ["local", "stack", "pool", "ring", "mask"];

/// The options for detecting races.
pub(crate) const RACES: &str = "-g -O1 -fsanitize=thread -pthread";

/// The options for valgrind, which reads this version of debug information from every compiler.
pub(crate) const WITH_SYMBOLS: &str = "-g -gdwarf-4 -O1 -pthread";

pub(crate) const SOURCES: [&str; 3] = ["kernel", "table", "atomic"];

/// The options for all errors except races.
pub(crate) const SANITIZED: &str =
    "-g -fsanitize=address,undefined -fno-sanitize-recover=all -pthread";

/// The programs that always run under valgrind. The sanitizers run all.
const VALGRINDS: [&str; 3] = ["stack.c", "local.c", "memory.c"];

/// Makes valgrind schedule threads in turn: otherwise a spinning thread would block the others.
const FAIR: &str = "--fair-sched=try";

/// Runs a program under valgrind, which reports errors by the same status.
pub(crate) const VALGRIND: [&str; 5] =
    ["valgrind", "--quiet", FAIR, "--leak-check=full", "--error-exitcode=99"];

pub(crate) fn sanitized(command: &mut Command) -> &mut Command {
    command
        .env("ASAN_OPTIONS", format!("detect_leaks=1:exitcode={FOUND}"))
        .env("LSAN_OPTIONS", format!("exitcode={FOUND}"))
        .env("TSAN_OPTIONS", format!("exitcode={FOUND}"))
        .env("UBSAN_OPTIONS", "print_stacktrace=1")
}

/// Returns `true` if the compiler has the sanitizers' libraries; otherwise reports it.
pub(crate) fn has(compiler: Compiler, sanitizer: &str) -> bool {
    let there = Build::new(compiler.c, &["leak.c"], sanitizer).try_make().is_ok();
    if !there {
        percid_skips::not_checked(
            &format!("C programs with {sanitizer}"),
            &format!("{} has none", compiler.c),
        );
    }
    there
}

/// Returns the compilers that have the sanitizers' libraries.
pub(crate) fn having(sanitizer: &str) -> Vec<Compiler> {
    compilers().iter().copied().filter(|&compiler| has(compiler, sanitizer)).collect()
}

pub(crate) fn must_find(program: &Program, command: &mut Command) {
    let (output, text) = program.outcome(command);
    assert_eq!(output.status.code(), Some(FOUND), "the planted fault was not found: {text}");
}

#[test]
#[ignore = "slow: every structure, by both compilers"]
pub(crate) fn addresses_behaviour_and_leaks() {
    let compilers = having(SANITIZED);
    for compiler in &compilers {
        let leak = Build::new(compiler.c, &["leak.c"], SANITIZED).make();
        must_find(&leak, sanitized(&mut leak.command()));
        let build = Build::new(compiler.c, &["counters.c"], SANITIZED);
        passes_sanitized(build, only_static(), &SOURCES);
    }
    let levels = if is_whole() { &["-O0", "-O1"][..] } else { &["-O0"] };
    let wrappers = if is_whole() { &WRAPPER[..] } else { &WRAPPER[..3] };
    for level in levels {
        // If there are two compilers, use the one that is not used elsewhere.
        let options = format!("{level} {SANITIZED}");
        for (index, source) in STRUCTURES.iter().enumerate() {
            for compiler in alternately(&compilers, index + 1) {
                let build = Build::new(compiler.c, &[source], &options);
                passes_sanitized(build, shared(), alternately(&SOURCES, index));
            }
        }
        let options = format!("-std=c++17 {options}");
        for (index, source) in wrappers.iter().enumerate() {
            for compiler in alternately(&compilers, index + 1) {
                let build = Build::new(compiler.cpp, &[source], &options);
                passes_sanitized(build, shared(), alternately(&SOURCES, index));
            }
        }
    }
}

/// Checks that the program passes with each of these sources, without a report.
pub(crate) fn passes_sanitized(build: Build, installation: &Installation, sources: &[&str]) {
    let program = build.against(installation).make();
    for source in sources {
        program.must_pass(sanitized(&mut program.command()).env("PERCID_SOURCE", source));
    }
}

/// The library announces exactly the objects that each structure passes between threads. A correct
/// program has no report, and a race in a callback, or on a passed object, is reported.
#[test]
pub(crate) fn races() {
    let compilers = having(RACES);
    for (index, compiler) in compilers.iter().enumerate() {
        let race = Build::new(compiler.c, &["race.c"], RACES).make();
        must_find(&race, sanitized(&mut race.command()));
        let build = Build::new(compiler.c, &["race_in_callback.c"], RACES);
        let program = build.against(only_static()).make();
        for (structure, source) in HANDING_OVER.iter().zip(SOURCES.iter().cycle().skip(index)) {
            let mut command = program.command();
            command.arg(structure).env("PERCID_SOURCE", source);
            must_find(&program, sanitized(&mut command));
        }
    }
    let right = ["handover.c", "local.c", "pool.c", "machine.c", "memory.c", "sync.c"];
    for (index, program) in right.into_iter().enumerate() {
        for compiler in alternately(&compilers, index) {
            passes_sanitized(Build::new(compiler.c, &[program], RACES), shared(), &SOURCES);
        }
    }
    // Control: what a lock does not guard.
    for compiler in alternately(&compilers, right.len() - 1) {
        let program = Build::new(compiler.c, &["sync.c"], RACES).against(shared()).make();
        let is_found = || {
            let (_, text) = program.outcome(sanitized(program.command().arg("race")));
            text.contains("data race")
        };
        assert!((0..100).any(|_| is_found()), "{}", compiler.c);
    }
}

/// The same as under the sanitizer: percid annotates for valgrind too, and its suppressions cover
/// percid's own accesses.
#[test]
#[ignore = "slow: under valgrind"]
fn races_under_valgrind() {
    if !has_valgrind() {
        return;
    }
    let compiler = any_compiler();
    let helgrind = ("helgrind", shared(), &["local", "ring"][..]);
    for (tool, installation, structures) in [helgrind, ("drd", only_static(), &["stack"])] {
        let runner = race_detector(tool, installation);
        let runner: Vec<&str> = runner.iter().map(String::as_str).collect();
        let options = format!("{WITH_SYMBOLS} -DROUNDS=50");
        let build = Build::new(compiler.c, &["handover.c"], &options);
        let program = build.against(installation).make();
        program.must_pass(&mut program.command_under(&runner));
        let build = Build::new(compiler.c, &["race_in_callback.c"], WITH_SYMBOLS);
        let program = build.against(installation).make();
        for structure in structures {
            must_find(&program, program.command_under(&runner).arg(structure));
        }
    }
}

/// Returns the command of one of valgrind's race detectors.
pub(crate) fn race_detector(tool: &str, installation: &Installation) -> [String; 6] {
    let suppressions = installation.library("percid/valgrind.supp");
    [
        "valgrind".to_owned(),
        "--quiet".to_owned(),
        FAIR.to_owned(),
        format!("--tool={tool}"),
        format!("--suppressions={}", suppressions.display()),
        format!("--error-exitcode={FOUND}"),
    ]
}

/// Returns `true` if valgrind is installed; otherwise reports it. With `PERCID_VALGRIND=require` it
/// must be.
pub(crate) fn has_valgrind() -> bool {
    let there = is_installed("valgrind");
    if !there {
        let required = std::env::var("PERCID_VALGRIND").is_ok_and(|asked| asked == "require");
        assert!(!required, "valgrind is not installed");
        percid_skips::not_checked("C programs under valgrind", "it is not installed");
    }
    there
}

#[test]
pub(crate) fn valgrind() {
    if !has_valgrind() {
        return;
    }
    let options = WITH_SYMBOLS;
    let compiler = any_compiler();
    let leak = Build::new(compiler.c, &["leak.c"], options).make();
    must_find(&leak, &mut leak.command_under(&VALGRIND));
    let sources = if is_whole() { &STRUCTURES[..] } else { &VALGRINDS };
    for source in sources {
        let program = Build::new(compiler.c, &[source], options).against(shared()).make();
        // valgrind does not support critical sections; the library detects that by itself.
        program.must_pass(&mut program.command_under(&VALGRIND));
    }
}
