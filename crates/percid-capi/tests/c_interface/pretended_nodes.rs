//! Programs on a machine that is believed to have several NUMA nodes, with a library that is built
//! for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::installation::target_folder;
use crate::sanitizers::{SANITIZED, VALGRIND, has, sanitized};
use crate::toolchain::{Build, Compiler, Program, WARNINGS, any_compiler, compilers, is_installed};

const SOURCES: [&str; 4] = ["numa_nodes.c", "numa_stacks.c", "numa.c", "balancers.cpp"];

/// The static library with the hooks for tests, as Cargo makes it.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // Not where the library without the hooks is made.
        let folder = target_folder().join("testing");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        cargo.args(["rustc", "--quiet", "--lib", "--crate-type=staticlib", "--features=testing"]);
        let output = cargo.arg("--target-dir").arg(&folder).output().expect("Cargo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder.join("debug/libpercid_capi.a")
    })
}

fn program(compiler: Compiler, source: &str, options: &str) -> Program {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    let (compiler, dialect) = match source.ends_with(".cpp") {
        true => (compiler.cpp, "-std=c++17"),
        false => (compiler.c, "-std=gnu11"),
    };
    let options = format!("{dialect} {options} -DPRETENDED_NODES=2 {include} -pthread");
    let library = library().to_str().expect("a path in UTF-8");
    Build::new(compiler, &[source], &options).arguments(&[library, "-ldl", "-lm"]).make()
}

#[test]
fn balancers_arm_count_and_tell() {
    for &compiler in compilers() {
        for source in SOURCES {
            let program = program(compiler, source, &format!("-O2 {WARNINGS}"));
            program.must_pass(&mut program.command());
        }
    }
}

#[test]
fn balancers_under_sanitizers() {
    for &compiler in compilers().iter().filter(|&&compiler| has(compiler, SANITIZED)) {
        for source in SOURCES {
            let program = program(compiler, source, SANITIZED);
            program.must_pass(sanitized(&mut program.command()));
        }
    }
}

/// It looks into the library, which no sanitizer does: what refers to a region must go before it.
#[test]
fn balancers_under_valgrind() {
    if !is_installed("valgrind") {
        println!("skipped: valgrind is not installed");
        return;
    }
    for source in SOURCES {
        let program = program(any_compiler(), source, "-g -gdwarf-4 -O1");
        program.must_pass(&mut program.command_under(&VALGRIND));
    }
}
