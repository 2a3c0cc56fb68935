//! The C++ wrapper: what is built from it in every way, what a module shows of it, and how long its
//! objects live.

use crate::installation::{all, only_static, shared};
use crate::toolchain::{Build, Compiler, Program, WARNINGS, compilers, output_of};

/// The programs for the C++ wrapper.
pub(crate) const WRAPPER: [&str; 6] = [
    "wrapper.cpp",
    "structures.cpp",
    "exceptions.cpp",
    "balancers.cpp",
    "machine.cpp",
    "metrics.cpp",
];

/// Of headers and programs.
const STRICT: &str = "-Wconversion -Wshadow -pthread";

/// How often a program ends, to see how it ends.
const ENDS: usize = 50;

#[test]
fn the_wrapper_works_in_every_dialect_of_cpp() {
    let ways = [
        ("-std=c++17 -O0", shared()),
        ("-std=c++20 -O2", only_static()),
        ("-std=c++2b -O2", shared()),
    ];
    for compiler in compilers() {
        for (dialect, installation) in ways {
            for source in WRAPPER {
                let options = format!("{dialect} {WARNINGS} {STRICT}");
                let build = Build::new(compiler.cpp, &[source], &options).against(installation);
                let program = build.make();
                program.must_pass(&mut program.command());
            }
        }
    }
}

#[test]
fn newer_dialects_have_spans_and_concepts() {
    for compiler in compilers() {
        for dialect in ["-std=c++20", "-std=c++2b"] {
            let options = format!("{dialect} -O1 {WARNINGS} {STRICT}");
            let build = Build::new(compiler.cpp, &["cpp20.cpp"], &options).against(shared());
            let program = build.make();
            program.must_pass(&mut program.command());
        }
    }
}

#[test]
fn programs_without_exceptions_have_all_of_the_wrapper() {
    for compiler in compilers() {
        for dialect in ["-std=c++17 -O0", "-std=c++20 -O2"] {
            let options = format!("{dialect} -fno-exceptions -fno-rtti {WARNINGS} {STRICT}");
            let build = Build::new(compiler.cpp, &["no_exceptions.cpp"], &options);
            let program = build.against(shared()).make();
            program.must_pass_with_every_source();
        }
    }
}

#[test]
fn older_dialects_are_refused_in_words() {
    for compiler in compilers() {
        let build = Build::new(compiler.cpp, &["strict.cpp"], "-std=c++14").against(shared());
        let failure = build.try_make().expect_err("percid.hpp is not for C++14");
        assert!(failure.contains("percid.hpp needs C++17 or later"), "{failure}");
    }
}

/// Else the function of one module could stand in for that of another, which has a percid of its
/// own inside.
#[test]
fn no_function_of_the_wrapper_leaves_its_module() {
    for compiler in compilers() {
        for dialect in ["-std=c++17", "-std=c++20", "-std=c++17 -fno-exceptions -fno-rtti"] {
            for (_, installation) in all() {
                let options = format!("{dialect} -O0 -fPIC -shared {WARNINGS} {STRICT}");
                let build = Build::new(compiler.cpp, &["whole.cpp"], &options);
                let library = build.against(installation).make();
                let path = library.path.to_str().expect("a path in UTF-8");
                let text = output_of("nm", &["-D", "--defined-only", path]);
                let names = text.lines().filter_map(|line| line.split_whitespace().last());
                let (ours, others): (Vec<_>, Vec<_>) = names.partition(|name| is_percids(name));
                assert!(ours.is_empty(), "{} {options}: {ours:?}", compiler.cpp);
                // The control: inline functions are shown unless they are hidden.
                assert!(others.iter().any(|name| name.contains("shown_by_default")), "{others:?}");
            }
        }
    }
}

/// Whether a mangled name is that of a function of percid.hpp, or of what belongs to one.
fn is_percids(name: &str) -> bool {
    let Some(encoding) = name.strip_prefix("_Z") else { return false };
    let kinds = |c: char| "TVISHWGZNK".contains(c);
    encoding.trim_start_matches(kinds).starts_with("6percid")
}

#[test]
fn functions_of_the_wrapper_are_known_by_their_names() {
    for name in ["_ZN6percid4ringC1Ev", "_ZNK6percid5stackIPiE3popEv", "_ZZN6percid4initEvE1x"] {
        assert!(is_percids(name), "{name}");
    }
    for name in ["_ZN7control5shownEv", "_ZSt4moveIRN6percid4ringEEvv", "percid_ring_append"] {
        assert!(!is_percids(name), "{name}");
    }
}

/// Threads run to the last instruction of the process, and other objects of static storage come
/// first and last.
#[test]
fn static_objects_are_there_before_main_and_until_the_end() {
    for &compiler in compilers() {
        for (_, installation) in all() {
            let build = lifetime(compiler, "").against(installation).make();
            assert_eq!(failures(&build), 0, "{} of {ENDS}", compiler.cpp);
        }
        // The controls: objects that are destroyed, used by threads that are still there; and
        // objects that are made, used before.
        assert!(failures(&lifetime(compiler, "-DOWNED -DLATE").against(shared()).make()) > 0);
        assert!(failures(&lifetime(compiler, "-DOWNED").against(shared()).make()) > 0);
    }
}

/// Under C++20 the compiler is asked whether the objects are constant-initialised.
fn lifetime(compiler: Compiler, control: &str) -> Build<'static> {
    let options = format!("-std=c++20 -O2 {control} {WARNINGS} {STRICT}");
    Build::new(compiler.cpp, &["lifetime.cpp"], &options)
}

/// How many of the program's ends are not what they should be.
fn failures(program: &Program) -> usize {
    let fails = || {
        let (output, text) = program.outcome(&mut program.command());
        !output.status.success() || !text.trim_end().ends_with("ok")
    };
    (0..ENDS).filter(|_| fails()).count()
}
