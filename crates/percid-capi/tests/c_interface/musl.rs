//! Programs that musl-gcc builds.

use std::path::Path;

use crate::installation::{MUSL, musl, musl_shared};
use crate::toolchain::{Build, WARNINGS, output_of};

const SOURCES: [&str; 5] = ["counters.c", "histogram.c", "local.c", "pool.c", "signals_and_fork.c"];

#[test]
#[ignore = "long: Cargo builds the library for musl"]
fn static_programs() {
    let Some(installation) = musl() else { return };
    assert!(!installation.library("libpercid.so").exists());
    for source in SOURCES {
        let options = format!("-static -std=gnu11 -O2 {WARNINGS} -pthread");
        let build = Build::new(MUSL, &[source], &options);
        let program = build.entirely_static(installation).make();
        program.must_pass_with_every_source();
        has_table_of_unwinding(&program.path);
    }
}

/// Checks for the table by which the library's unwinder finds the handlers of the library's own
/// panics. musl-gcc creates it only with an option.
fn has_table_of_unwinding(path: &Path) {
    let headers = output_of("readelf", &["-lW", path.to_str().expect("a path in UTF-8")]);
    assert!(headers.contains("GNU_EH_FRAME"), "{}: {headers}", path.display());
}

#[test]
#[ignore = "long: Cargo builds the library for musl"]
fn a_shared_library() {
    let Some(installation) = musl_shared() else { return };
    for source in SOURCES {
        let options = format!("-std=gnu11 -O2 {WARNINGS} -pthread");
        let build = Build::new(MUSL, &[source], &options).against(installation);
        build.make().must_pass_with_every_source();
    }
    has_table_of_unwinding(&installation.library("libpercid.so.1"));
}
