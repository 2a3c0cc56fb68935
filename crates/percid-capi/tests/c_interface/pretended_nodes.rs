//! Programs on a machine with several pretended NUMA nodes, with a library built for that.

use crate::copies::cargos_folder;
use crate::sanitizers::{SANITIZED, VALGRIND, having, sanitized};
use crate::selection::{alternately, is_whole, some_compilers};
use crate::toolchain::{Build, Compiler, Program, WARNINGS, any_compiler, is_installed};

const SOURCES: [&str; 4] = ["numa_nodes.c", "numa_stacks.c", "numa.c", "balancers.cpp"];

/// Links a program with the library that Cargo has built for this one: it has the hooks for tests.
pub(crate) fn linked(build: Build) -> Program {
    let library = cargos_folder().join("libpercid_capi.a");
    let library = library.to_str().expect("a path in UTF-8");
    build.arguments(&[library, "-ldl", "-lm"]).make()
}

fn program(compiler: Compiler, source: &str, options: &str) -> Program {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    let (compiler, dialect) = match source.ends_with(".cpp") {
        true => (compiler.cpp, "-std=c++17"),
        false => (compiler.c, "-std=gnu11"),
    };
    let options = format!("{dialect} {options} -DPRETENDED_NODES=2 {include} -pthread");
    linked(Build::new(compiler, &[source], &options))
}

#[test]
pub(crate) fn balancers_arm_count_and_tell() {
    for (index, source) in SOURCES.into_iter().enumerate() {
        for &compiler in some_compilers(index) {
            let program = program(compiler, source, &format!("-O2 {WARNINGS}"));
            program.must_pass(&mut program.command());
        }
    }
}

#[test]
#[ignore = "slow: four large programs"]
pub(crate) fn balancers_under_sanitizers() {
    // If there are two compilers, use the one that was not used in the test above.
    let compilers = having(SANITIZED);
    for (index, source) in SOURCES.into_iter().enumerate() {
        for &compiler in alternately(&compilers, index + 1) {
            let program = program(compiler, source, SANITIZED);
            program.must_pass(sanitized(&mut program.command()));
        }
    }
}

/// valgrind checks the library itself, unlike the sanitizers: references to a region must be
/// removed before it.
#[test]
#[ignore = "slow: under valgrind"]
pub(crate) fn balancers_under_valgrind() {
    if !is_installed("valgrind") {
        return percid_skips::not_checked("balancers under valgrind", "it is not installed");
    }
    let sources = if is_whole() { &SOURCES[..] } else { &["numa_nodes.c", "numa.c"] };
    for source in sources {
        let program = program(any_compiler(), source, "-g -gdwarf-4 -O1");
        program.must_pass(&mut program.command_under(&VALGRIND));
    }
}
