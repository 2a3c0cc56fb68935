//! Functions of C and C++ that do not return to the library that has called them.
//!
//! The programs end themselves after a minute, so a thread that hangs is a failure.

use crate::installation::{MUSL, all, musl, only_static};
use crate::toolchain::{Build, WARNINGS, compilers};

const THREADED: &str = "-pthread";

#[test]
fn what_a_function_had_is_given_back_however_it_ends() {
    for compiler in compilers() {
        for ((_, installation), optimised) in all().into_iter().zip(["-O2", "-O0"]) {
            let options = format!("-std=gnu11 {optimised} {WARNINGS} {THREADED}");
            let build = Build::new(compiler.c, &["ends.c"], &options).against(installation);
            build.make().must_pass_with_every_source();
        }
    }
}

/// Frames that nothing can unwind, and frames whose handlers are run.
#[test]
fn it_needs_nothing_of_the_functions_of_c() {
    let ways = ["-fexceptions", "-fno-asynchronous-unwind-tables -fno-unwind-tables"];
    for (compiler, way) in compilers().iter().flat_map(|one| ways.map(|way| (one, way))) {
        let options = format!("-std=gnu11 -O2 {way} {WARNINGS} {THREADED}");
        let program = Build::new(compiler.c, &["ends.c"], &options).against(only_static()).make();
        program.must_pass(&mut program.command());
    }
}

#[test]
fn what_a_function_throws_comes_out_of_the_call() {
    for compiler in compilers() {
        for ((_, installation), optimised) in all().into_iter().zip(["-O2", "-O0"]) {
            let options = format!("-std=c++17 {optimised} {WARNINGS} {THREADED}");
            let build = Build::new(compiler.cpp, &["ends.cpp"], &options).against(installation);
            build.make().must_pass_with_every_source();
        }
    }
}

/// musl unwinds nothing: it calls the handlers of a thread that ends.
#[test]
fn with_musl_a_thread_gives_back_what_it_had() {
    let Some(installation) = musl() else { return };
    let options = format!("-std=gnu11 -O2 -static {WARNINGS}");
    let build = Build::new(MUSL, &["ends.c"], &options).entirely_static(installation);
    build.make().must_pass_with_every_source();
}
