//! Programs under sanitizers and valgrind: no invalid access, no undefined behaviour, no leak, no
//! race.

use std::process::Command;

use crate::correctness::STRUCTURES;
use crate::installation::{only_static, shared};
use crate::toolchain::{Build, Compiler, Program, any_compiler, compilers, is_installed};
use crate::wrapper::WRAPPER;

/// The exit status by which the checkers report.
const FOUND: i32 = 99;

/// The options for all that the checkers find but races.
pub(crate) const SANITIZED: &str =
    "-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -pthread";

/// Runs a program under valgrind, which reports by the same status.
pub(crate) const VALGRIND: [&str; 4] =
    ["valgrind", "--quiet", "--leak-check=full", "--error-exitcode=99"];

pub(crate) fn sanitized(command: &mut Command) -> &mut Command {
    command
        .env("ASAN_OPTIONS", format!("detect_leaks=1:exitcode={FOUND}"))
        .env("LSAN_OPTIONS", format!("exitcode={FOUND}"))
        .env("TSAN_OPTIONS", format!("exitcode={FOUND}"))
        .env("UBSAN_OPTIONS", "print_stacktrace=1")
}

/// Whether the compiler has the sanitizers' libraries; says so if not.
pub(crate) fn has(compiler: Compiler, sanitizer: &str) -> bool {
    let there = Build::new(compiler.c, &["leak.c"], sanitizer).try_make().is_ok();
    if !there {
        println!("skipped: {} has no {sanitizer}", compiler.c);
    }
    there
}

fn must_find(program: &Program, command: &mut Command) {
    let (output, text) = program.outcome(command);
    assert_eq!(output.status.code(), Some(FOUND), "the planted fault was not found: {text}");
}

#[test]
fn addresses_behaviour_and_leaks() {
    let options = SANITIZED;
    for &compiler in compilers().iter().filter(|&&compiler| has(compiler, options)) {
        let leak = Build::new(compiler.c, &["leak.c"], options).make();
        must_find(&leak, sanitized(&mut leak.command()));
        let c = STRUCTURES.map(|source| Build::new(compiler.c, &[source], options));
        let cpp_options = format!("-std=c++17 {options}");
        let cpp = WRAPPER.map(|source| Build::new(compiler.cpp, &[source], &cpp_options));
        for build in c.into_iter().chain(cpp) {
            let program = build.against(shared()).make();
            for source in ["kernel", "table", "atomic"] {
                program.must_pass(sanitized(&mut program.command()).env("PERCID_SOURCE", source));
            }
        }
        let program =
            Build::new(compiler.c, &["counters.c"], options).against(only_static()).make();
        program.must_pass(sanitized(&mut program.command()));
    }
}

/// Of counters and histograms only: the detector does not see how the library hands memory from
/// thread to thread, as it does not know what the library is compiled with.
#[test]
fn races() {
    let options = "-g -O1 -fsanitize=thread -pthread";
    for &compiler in compilers().iter().filter(|&&compiler| has(compiler, options)) {
        let race = Build::new(compiler.c, &["race.c"], options).make();
        must_find(&race, sanitized(&mut race.command()));
        for source in &STRUCTURES[..2] {
            let program = Build::new(compiler.c, &[source], options).against(shared()).make();
            program.must_pass(sanitized(&mut program.command()));
        }
    }
}

#[test]
fn valgrind() {
    if !is_installed("valgrind") {
        println!("skipped: valgrind is not installed");
        return;
    }
    let options = "-g -gdwarf-4 -O1 -pthread";
    let compiler = any_compiler();
    let leak = Build::new(compiler.c, &["leak.c"], options).make();
    must_find(&leak, &mut leak.command_under(&VALGRIND));
    for source in STRUCTURES {
        let program = Build::new(compiler.c, &[source], options).against(shared()).make();
        // It knows no critical sections; the library finds that out by itself.
        program.must_pass(&mut program.command_under(&VALGRIND));
    }
}
