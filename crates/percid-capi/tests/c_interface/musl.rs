//! Programs that musl-gcc makes, with a library for them.

use crate::installation::{Installation, installer};
use crate::toolchain::{Build, WARNINGS, has_rust_target, has_tools, scratch};

const TARGET: &str = "x86_64-unknown-linux-musl";

/// percid for musl, if the tools for it are there.
fn installation(name: &str, options: &[&str]) -> Option<Installation> {
    if !cfg!(target_arch = "x86_64") || !has_tools(&["musl-gcc"]) || !has_rust_target(TARGET) {
        return None;
    }
    let prefix = scratch(name);
    let mut command = installer();
    command.args(["--target", TARGET, "--prefix"]).arg(&prefix).args(options).env("CC", "musl-gcc");
    let output = command.output().expect("the installer starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(Installation { prefix })
}

const SOURCES: [&str; 5] = ["counters.c", "histogram.c", "local.c", "pool.c", "signals_and_fork.c"];

#[test]
fn static_programs() {
    let options = ["--library-type=staticlib"];
    let Some(installation) = installation("musl-static", &options) else { return };
    assert!(!installation.library("libpercid.so").exists());
    for source in SOURCES {
        let options = format!("-static -std=gnu11 -O2 {WARNINGS} -pthread");
        let build = Build::new("musl-gcc", &[source], &options);
        build.entirely_static(&installation).make().must_pass_with_every_source();
    }
}

#[test]
fn a_shared_library() {
    let Some(installation) = installation("musl-shared", &[]) else { return };
    for source in SOURCES {
        let options = format!("-std=gnu11 -O2 {WARNINGS} -pthread");
        let build = Build::new("musl-gcc", &[source], &options).against(&installation);
        build.make().must_pass_with_every_source();
    }
}
