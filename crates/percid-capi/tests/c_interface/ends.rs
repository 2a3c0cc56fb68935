//! Functions of C and C++ that do not return to the library that called them.
//!
//! The programs end themselves after five minutes, so a hanging thread is a failure.

use crate::installation::{MUSL, musl, only_static};
use crate::selection::{some_compilers, ways};
use crate::toolchain::{Build, Compiler, WARNINGS};

const THREADED: &str = "-pthread";

#[test]
pub(crate) fn what_a_function_had_is_given_back_however_it_ends() {
    in_every_way("-std=gnu11", |compiler| compiler.c, "ends.c");
}

/// Frames without unwind tables, and frames whose handlers are run.
#[test]
#[ignore = "slow: the same program in two more ways"]
pub(crate) fn it_needs_nothing_of_the_functions_of_c() {
    let ways = ["-fexceptions", "-fno-asynchronous-unwind-tables -fno-unwind-tables"];
    std::thread::scope(|scope| {
        for (index, way) in ways.into_iter().enumerate() {
            for compiler in some_compilers(index) {
                let options = format!("-std=gnu11 -O2 {way} {WARNINGS} {THREADED}");
                scope.spawn(move || {
                    let build = Build::new(compiler.c, &["ends.c"], &options);
                    build.against(only_static()).make().must_pass_with(&[None]);
                });
            }
        }
    });
}

#[test]
pub(crate) fn what_a_function_throws_comes_out_of_the_call() {
    in_every_way("-std=c++17", |compiler| compiler.cpp, "ends.cpp");
}

/// Runs all ways at the same time: they mostly wait.
fn in_every_way(dialect: &str, called: fn(Compiler) -> &'static str, source: &str) {
    std::thread::scope(|scope| {
        for way in ways(0) {
            let optimised = if way.library == "shared" { "-O2" } else { "-O0" };
            let options = format!("{dialect} {optimised} {WARNINGS} {THREADED}");
            for wish in way.sources {
                let build = Build::new(called(way.compiler), &[source], &options);
                let build = build.against(way.installation);
                scope.spawn(move || build.make().must_pass_with(&[*wish]));
            }
        }
    });
}

/// musl does not unwind: it calls the handlers of a thread that ends.
#[test]
#[ignore = "long: Cargo builds the library for musl"]
fn with_musl_a_thread_gives_back_what_it_had() {
    let Some(installation) = musl() else { return };
    let options = format!("-std=gnu11 -O2 -static {WARNINGS}");
    let build = Build::new(MUSL, &["ends.c"], &options).entirely_static(installation);
    build.make().must_pass_with_every_source();
}
