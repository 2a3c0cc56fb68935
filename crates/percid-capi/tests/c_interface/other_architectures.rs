//! 64-bit Arm and RISC-V, if a cross compiler and an emulator are installed.

use crate::selection::alternately;
use crate::toolchain::{Build, WARNINGS, has_rust_target, is_installed};

const CLANG: &str = "clang";

/// An architecture, and the tools that build programs for it and run them.
struct Cross {
    gcc: &'static str,
    /// clang's option for it. clang uses gcc's libraries and linker.
    clang: &'static str,
    rust: &'static str,
    emulator: &'static str,
    libraries: &'static str,
    is_here: bool,
    /// Assembly of a read of the thread pointer, and of an acquire load.
    thread_pointer: &'static str,
    acquires: &'static [&'static str],
}

const ARM: Cross = Cross {
    gcc: "aarch64-linux-gnu-gcc",
    clang: "--target=aarch64-linux-gnu",
    rust: "aarch64-unknown-linux-gnu",
    emulator: "qemu-aarch64",
    libraries: "/usr/aarch64-linux-gnu",
    is_here: cfg!(target_arch = "aarch64"),
    thread_pointer: "tpidr_el0",
    acquires: &["ldar", "ldapr"],
};

const RISCV: Cross = Cross {
    gcc: "riscv64-linux-gnu-gcc",
    clang: "--target=riscv64-linux-gnu",
    rust: "riscv64gc-unknown-linux-gnu",
    emulator: "qemu-riscv64",
    libraries: "/usr/riscv64-linux-gnu",
    is_here: cfg!(target_arch = "riscv64"),
    thread_pointer: ", tp",
    acquires: &["fence\t"],
};

impl Cross {
    /// Returns the compilers for it, with their options.
    fn compilers(&self) -> Vec<(&'static str, &'static str)> {
        if !is_installed(self.gcc) {
            percid_skips::not_checked(
                &format!("the C interface by {}", self.gcc),
                "it is not installed",
            );
            return Vec::new();
        }
        let all = [(self.gcc, ""), (CLANG, self.clang)];
        all.into_iter().filter(|&(name, _)| is_installed(name)).collect()
    }

    fn has_emulator(&self) -> bool {
        let there = self.is_here || is_installed(self.emulator);
        if !there {
            percid_skips::not_checked(
                &format!("the C interface in {}", self.emulator),
                "it is not installed",
            );
        }
        there
    }

    /// Runs programs. The emulator has no rseq, so the critical sections get a separate area.
    fn computes(&self) {
        let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
        let compilers = self.compilers();
        for (index, optimised) in ["-O0", "-O2", "-O3 -fPIC", "-Os"].into_iter().enumerate() {
            for (compiler, target) in alternately(&compilers, index) {
                let options =
                    format!("{target} -static -std=gnu11 {optimised} {WARNINGS} {include}");
                let program = Build::new(compiler, &["sections.c"], &options).make();
                if self.has_emulator() {
                    program.must_pass(&mut program.command_under(&[self.emulator]));
                }
            }
        }
    }

    fn is_inline(&self) {
        let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
        for (compiler, target) in self.compilers() {
            for kind in ["-O2", "-O2 -DPERCID_NO_INLINE"] {
                let options = format!("{target} {kind} {include}");
                let text = Build::new(compiler, &["hot_loop.c"], &options).assembly();
                let text = text.to_lowercase();
                let inline = text.contains("__rseq_cs") && text.contains(self.thread_pointer);
                assert_eq!(inline, !kind.contains("NO_INLINE"), "{compiler} {kind}");
                // A thread that reads an object's mark must see the data that the critical sections
                // of that source read.
                let acquires = self.acquires.iter().any(|load| text.contains(load));
                assert_eq!(acquires, inline, "{compiler} {kind}");
            }
        }
    }

    /// Tests the library itself, cross-compiled and installed, with the source that needs no kernel
    /// support.
    fn counts(&self) {
        use crate::installation::{Installation, installer};
        use crate::toolchain::scratch;
        if self.compilers().is_empty() || !self.has_emulator() || !has_rust_target(self.rust) {
            return;
        }
        let installation = Installation::at(scratch(self.rust));
        let output = installer()
            .args(["--target", self.rust, "--prefix"])
            .arg(&installation.prefix)
            .env("CC", self.gcc)
            .output()
            .expect("the installer starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        installation.can_be_unwound();
        for (compiler, target) in self.compilers() {
            let options = format!("{target} -static -std=gnu11 -O2 {WARNINGS} -pthread");
            let build = Build::new(compiler, &["counters.c"], &options);
            let program = build.entirely_static(&installation).make();
            program.must_pass(&mut program.command_under(&[self.emulator]));
            let build = Build::new(compiler, &["counters.c"], &options.replace("-static", ""));
            let program = build.against(&installation).make();
            let runner = [self.emulator, "-L", self.libraries];
            let path = format!("LD_LIBRARY_PATH={}", installation.libraries().display());
            program.must_pass(&mut program.command_under(&[&runner[..], &["-E", &path]].concat()));
        }
    }
}

#[test]
pub(crate) fn the_sections_for_arm_compute_what_they_should() {
    ARM.computes();
}

#[test]
pub(crate) fn the_sections_for_riscv_compute_what_they_should() {
    RISCV.computes();
}

#[test]
fn the_increment_is_inline_on_arm() {
    ARM.is_inline();
}

#[test]
fn the_increment_is_inline_on_riscv() {
    RISCV.is_inline();
}

#[test]
#[ignore = "long: Cargo builds the library for another architecture"]
fn programs_for_arm_count() {
    ARM.counts();
}

#[test]
#[ignore = "long: Cargo builds the library for another architecture"]
fn programs_for_riscv_count() {
    RISCV.counts();
}
