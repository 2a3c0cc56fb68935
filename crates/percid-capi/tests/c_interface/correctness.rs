//! Programs in every dialect, by every compiler, linked in every way, must compute correct results.

use crate::installation::{all, only_static, shared};
use crate::selection::{linked_twice, one_way, some_compilers};
use crate::toolchain::{Build, WARNINGS, any_compiler, compilers};

const C_DIALECTS: [&str; 3] = ["-std=c99 -D_DEFAULT_SOURCE", "-std=c11", "-std=c17"];
const THREADED: &str = "-pthread";

/// A program for each structure. The first ones are valid C99.
pub(crate) const STRUCTURES: [&str; 14] = [
    "counters.c",
    "histogram.c",
    "machine.c",
    "each_source.c",
    "stack.c",
    "pool.c",
    "local.c",
    "ring.c",
    "mask.c",
    "memory.c",
    "static_objects.c",
    "numa.c",
    "metrics.c",
    "sync.c",
];

#[test]
pub(crate) fn the_header_is_valid_in_every_dialect_of_c() {
    let dialects = C_DIALECTS.iter().zip(["-O0", "-O2", "-O3"]);
    let programs =
        dialects.flat_map(|dialect| STRUCTURES[..2].iter().map(move |one| (dialect, one)));
    for (index, ((dialect, optimised), source)) in programs.enumerate() {
        for way in linked_twice(index) {
            let options = format!("{dialect} {optimised} {WARNINGS} {THREADED}");
            let build = Build::new(way.compiler.c, &[source], &options);
            let program = build.against(way.installation).make();
            println!("{} {} {dialect} {optimised} {source}", way.compiler.c, way.library);
            program.must_pass(&mut program.command());
        }
    }
}

#[test]
fn the_header_is_valid_cpp() {
    for compiler in compilers() {
        for source in &STRUCTURES[..2] {
            let options = format!("-x c++ -std=c++17 -O2 {WARNINGS} {THREADED}");
            let build = Build::new(compiler.cpp, &[source], &options);
            let program = build.against(shared()).make();
            program.must_pass(&mut program.command());
        }
    }
}

/// Compiles the headers with strict warnings.
#[test]
fn the_headers_are_silent() {
    const STRICT: &str =
        "-Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wundef -Wfloat-equal -Wformat=2";
    for compiler in compilers() {
        let c = format!("-std=c11 {WARNINGS} {STRICT} -Wstrict-prototypes -Wmissing-prototypes");
        let cpp = format!("-std=c++17 {WARNINGS} {STRICT} -Wold-style-cast -Wnon-virtual-dtor");
        let c = Build::new(compiler.c, &["strict.c"], &c);
        let cpp = Build::new(compiler.cpp, &["strict.cpp"], &cpp);
        for build in [c, cpp] {
            let program = build.against(shared()).make();
            let (output, text) = program.outcome(&mut program.command());
            assert!(output.status.success(), "{text}");
        }
    }
}

#[test]
pub(crate) fn every_structure_is_right_with_every_source() {
    let options = format!("-std=c11 -O2 {WARNINGS} {THREADED}");
    for (index, source) in STRUCTURES.iter().enumerate() {
        for way in linked_twice(index) {
            let build = Build::new(way.compiler.c, &[source], &options).against(way.installation);
            build.make().must_pass_with(way.sources);
        }
    }
}

/// The control of `memory.c`: an addition of two steps, which other threads interrupt, is noticed.
#[test]
fn additions_that_are_no_sections_lose_some() {
    let options = format!("-std=c11 -O2 {WARNINGS} {THREADED} -DCONTROL");
    let program = Build::new(any_compiler().c, &["memory.c"], &options).against(shared()).make();
    let (output, text) = program.outcome(&mut program.command());
    assert!(!output.status.success() && text.contains("not so: sum =="), "{text}");
}

/// The controls of `sync.c`: data that a lock does not guard, memory that is freed without a grace
/// period, and a limit that is compared before it is charged, are noticed.
#[test]
fn locks_domains_and_budgets_that_are_misused_fail() {
    let options = format!("-std=c11 -O2 {WARNINGS} {THREADED}");
    let index = STRUCTURES.iter().position(|source| *source == "sync.c").expect("a structure");
    let way = linked_twice(index).swap_remove(0);
    let build = Build::new(way.compiler.c, &["sync.c"], &options).against(way.installation);
    let program = build.make();
    for (fault, found) in [("lock", "first == "), ("domain", "node, "), ("budget", "<= LIMIT")] {
        // On a busy machine the threads may run one after the other, and nothing happens.
        let is_noticed = (0..100).any(|_| {
            let (output, text) = program.outcome(program.command().arg(fault));
            assert_eq!(output.status.success(), !text.contains("not so: "), "{fault}: {text}");
            text.contains(found)
        });
        assert!(is_noticed, "{fault}");
    }
}

/// Objects of static storage are initialised by constants in C++ too, and their macros cause no
/// warnings in strict compilers.
#[test]
fn static_objects_are_valid_in_every_dialect() {
    const STRICT: &str = "-Wconversion -Wsign-conversion -Wshadow";
    for compiler in compilers() {
        let c = format!("-std=gnu99 -O0 {WARNINGS} {STRICT} {THREADED}");
        let c = Build::new(compiler.c, &["static_objects.c"], &c).against(shared());
        let cpp = format!("-x c++ -std=c++17 -O2 {WARNINGS} {STRICT} {THREADED}");
        let cpp = Build::new(compiler.cpp, &["static_objects.c"], &cpp);
        let cpp = cpp.against(shared());
        for program in [c.make(), cpp.make()] {
            program.must_pass(&mut program.command());
        }
    }
}

#[test]
fn nothing_ends_the_program_where_no_memory_can_be_had() {
    for (_, installation) in all() {
        let options = format!("-std=gnu11 -O2 {WARNINGS}");
        for source in ["out_of_memory.c", "metrics_out_of_memory.c"] {
            let build = Build::new(any_compiler().c, &[source], &options);
            build.against(installation).make().must_pass_with_every_source();
        }
    }
}

#[test]
fn every_source_counts_in_handlers_and_children() {
    for (_, installation) in all() {
        let options = format!("-std=gnu11 -O2 {WARNINGS}");
        let build = Build::new(any_compiler().c, &["signals_and_fork.c"], &options);
        build.against(installation).make().must_pass_with_every_source();
    }
}

#[test]
fn memory_of_copied_objects_goes_back_once() {
    const TOLD: &str = "percid: the memory of a counter or histogram was given back before";
    for (_, installation) in all() {
        let options = format!("-std=c99 -D_DEFAULT_SOURCE -O2 {WARNINGS} {THREADED}");
        let build = Build::new(any_compiler().c, &["copied.c"], &options);
        let program = build.against(installation).make();
        for source in ["kernel", "table", "atomic"] {
            for (conduct, lines) in [("lawful", 0), ("unlawful", 1)] {
                let mut command = program.command();
                command.arg(conduct).env("PERCID_SOURCE", source);
                let (output, text) = program.outcome(&mut command);
                let right = output.status.success() && text.ends_with("ok\n");
                assert!(right, "{source}, {conduct}: {text}");
                assert_eq!(text.matches(TOLD).count(), lines, "{source}, {conduct}: {text}");
            }
        }
    }
}

/// Position-dependent, position-independent and static programs, optimised across files or by
/// another linker: the critical sections must work in all of them.
#[test]
pub(crate) fn every_kind_of_program_counts() {
    let kinds = [
        "-fno-pie -no-pie",
        "-fPIE -pie",
        "-flto",
        "-ffunction-sections -Wl,--gc-sections",
        "-fcf-protection=full",
        "-fuse-ld=gold",
        "-fuse-ld=lld",
    ];
    for (index, kind) in kinds.into_iter().enumerate() {
        for (compiler, installation) in one_way(index) {
            let options = format!("-O2 {THREADED} {kind}");
            let build = Build::new(compiler.c, &["counters.c"], &options);
            match build.against(installation).try_make() {
                Ok(program) => program.must_pass(&mut program.command()),
                Err(failure) => must_be_a_missing_linker(kind, &failure),
            }
        }
    }
    for (index, kind) in ["-static", "-static-pie -fPIE"].into_iter().enumerate() {
        for compiler in some_compilers(index) {
            let options = format!("-O2 {WARNINGS} {THREADED} {kind}");
            let build = Build::new(compiler.c, &["counters.c"], &options);
            let program = build.entirely_static(only_static()).make();
            program.must_pass_with_every_source();
        }
    }
}

fn must_be_a_missing_linker(kind: &str, failure: &str) {
    let missing = ["invalid linker name", "cannot find 'ld'", "unrecognized command-line option"];
    assert!(
        kind.contains("-fuse-ld") && missing.iter().any(|words| failure.contains(words)),
        "{failure}"
    );
    percid_skips::not_checked(
        &format!("the C interface with {kind}"),
        "its linker is not installed",
    );
}

/// A library that is loaded after threads were started still finds their rseq areas.
#[test]
fn a_library_that_is_loaded_late_counts() {
    for compiler in compilers() {
        for (_, installation) in all() {
            let options = format!("-O2 -shared -fPIC {WARNINGS} -Wl,-z,nodelete");
            let plugin =
                Build::new(compiler.c, &["plugin.c"], &options).against(installation).make();
            let options = format!("-O2 {WARNINGS} {THREADED}");
            let program =
                Build::new(compiler.c, &["loads_late.c"], &options).arguments(&["-ldl"]).make();
            for source in ["kernel", "table", "atomic"] {
                let mut command = program.command();
                command.arg(&plugin.path).env("PERCID_SOURCE", source);
                program.must_pass(command.env("LD_LIBRARY_PATH", installation.libraries()));
            }
        }
    }
}

/// Objects with and without the inline increment, in one program.
#[test]
fn inline_and_called_increments_add_up() {
    let options = format!("-O2 {WARNINGS} {THREADED} -DPERCID_NO_INLINE");
    let program = Build::new(any_compiler().c, &["counters.c"], &options).against(shared()).make();
    program.must_pass_with_every_source();
}
