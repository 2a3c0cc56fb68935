//! 64-bit Arm, where a cross compiler and an emulator are installed.

use crate::toolchain::{Build, WARNINGS, has_rust_target, is_installed};

const GCC: &str = "aarch64-linux-gnu-gcc";
const CLANG: &str = "clang";
const EMULATOR: &str = "qemu-aarch64";

/// The compilers that make programs for Arm, with their options. clang uses gcc's libraries and
/// linker.
fn compilers() -> Vec<(&'static str, &'static str)> {
    if !is_installed(GCC) {
        println!("skipped: {GCC} is not installed");
        return Vec::new();
    }
    let clang = (CLANG, "--target=aarch64-linux-gnu");
    [(GCC, ""), clang].into_iter().filter(|&(name, _)| is_installed(name)).collect()
}

fn has_emulator() -> bool {
    let there = cfg!(target_arch = "aarch64") || is_installed(EMULATOR);
    if !there {
        println!("skipped: {EMULATOR} is not installed");
    }
    there
}

/// The emulator has no rseq, so the sections are given an area of their own.
#[test]
fn the_sections_for_arm_compute_what_they_should() {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    for (compiler, target) in compilers() {
        for optimised in ["-O0", "-O2", "-O3 -fPIC", "-Os"] {
            let options = format!("{target} -static -std=gnu11 {optimised} {WARNINGS} {include}");
            let program = Build::new(compiler, &["sections.c"], &options).make();
            if has_emulator() {
                program.must_pass(&mut program.command_under(&[EMULATOR]));
            }
        }
    }
}

#[test]
fn the_increment_is_inline_on_arm() {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    for (compiler, target) in compilers() {
        for kind in ["-O2", "-O2 -DPERCID_NO_INLINE"] {
            let options = format!("{target} {kind} -S {include}");
            let assembly = Build::new(compiler, &["hot_loop.c"], &options).make();
            let text = std::fs::read_to_string(&assembly.path).expect("assembly");
            let inline = text.contains("__rseq_cs") && text.to_lowercase().contains("tpidr_el0");
            assert_eq!(inline, !kind.contains("NO_INLINE"), "{compiler} {kind}");
            // A thread that sees an object's mark must see what the sections of that source read.
            let acquires = text.contains("ldar") || text.contains("ldapr");
            assert_eq!(acquires, inline, "{compiler} {kind}");
        }
    }
}

/// The library itself, cross-compiled and installed, with the source that needs no kernel.
#[test]
fn programs_for_arm_count() {
    use crate::installation::{Installation, installer};
    use crate::toolchain::scratch;
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    if compilers().is_empty() || !has_emulator() || !has_rust_target(TARGET) {
        return;
    }
    let installation = Installation { prefix: scratch("arm") };
    let output = installer()
        .args(["--target", TARGET, "--prefix"])
        .arg(&installation.prefix)
        .env("CC", GCC)
        .output()
        .expect("the installer starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (compiler, target) in compilers() {
        let options = format!("{target} -static -std=gnu11 -O2 {WARNINGS} -pthread");
        let build = Build::new(compiler, &["counters.c"], &options);
        let program = build.entirely_static(&installation).make();
        program.must_pass(&mut program.command_under(&[EMULATOR]));
        let build = Build::new(compiler, &["counters.c"], &options.replace("-static", ""));
        let program = build.against(&installation).make();
        let runner = [EMULATOR, "-L", "/usr/aarch64-linux-gnu"];
        let path = format!("LD_LIBRARY_PATH={}", installation.libraries().display());
        program.must_pass(&mut program.command_under(&[&runner[..], &["-E", &path]].concat()));
    }
}
