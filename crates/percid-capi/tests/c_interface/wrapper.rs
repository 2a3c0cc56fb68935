//! The C++ wrapper: programs built in every way, the exported symbols of a module, and the lifetime
//! of its objects.

use crate::installation::{all, only_static, shared};
use crate::selection::{is_whole, some_compilers, ways};
use crate::toolchain::{Build, Compiler, WARNINGS, output_of};

/// The programs for the C++ wrapper.
pub(crate) const WRAPPER: [&str; 8] = [
    "wrapper.cpp",
    "structures.cpp",
    "exceptions.cpp",
    "balancers.cpp",
    "machine.cpp",
    "metrics.cpp",
    "per_id.cpp",
    "sync.cpp",
];

/// Strict options for headers and programs.
const STRICT: &str = "-Wconversion -Wshadow -pthread";

#[test]
#[ignore = "slow: eight large programs"]
pub(crate) fn the_wrapper_works_in_every_dialect_of_cpp() {
    let ways = [
        ("-std=c++17 -O2", shared()),
        ("-std=c++20 -O0", only_static()),
        ("-std=c++2b -O0", shared()),
    ];
    // Eight programs, each in one of three dialects by one of two compilers: all pairs.
    for (index, source) in WRAPPER.iter().enumerate() {
        for (number, (dialect, installation)) in ways.into_iter().enumerate() {
            if !is_whole() && number != index % ways.len() {
                continue;
            }
            for compiler in some_compilers(index) {
                let options = format!("{dialect} {WARNINGS} {STRICT}");
                let build = Build::new(compiler.cpp, &[source], &options).against(installation);
                let program = build.make();
                program.must_pass(&mut program.command());
            }
        }
    }
}

#[test]
pub(crate) fn newer_dialects_have_spans_and_concepts() {
    for (index, dialect) in ["-std=c++20", "-std=c++2b"].into_iter().enumerate() {
        for compiler in some_compilers(index) {
            let options = format!("{dialect} -O0 {WARNINGS} {STRICT}");
            let build = Build::new(compiler.cpp, &["cpp20.cpp"], &options).against(shared());
            let program = build.make();
            program.must_pass(&mut program.command());
        }
    }
}

#[test]
pub(crate) fn programs_without_exceptions_have_all_of_the_wrapper() {
    for (index, dialect) in ["-std=c++17 -O0", "-std=c++20 -O2"].into_iter().enumerate() {
        for compiler in some_compilers(index) {
            let options = format!("{dialect} -fno-exceptions -fno-rtti {WARNINGS} {STRICT}");
            let build = Build::new(compiler.cpp, &["no_exceptions.cpp"], &options);
            let program = build.against(shared()).make();
            program.must_pass_with_every_source();
        }
    }
}

/// Otherwise the function of one module could replace that of another, which contains a different
/// percid.
#[test]
pub(crate) fn no_function_of_the_wrapper_leaves_its_module() {
    let dialects = ["-std=c++17", "-std=c++17 -fno-exceptions -fno-rtti", "-std=c++20"];
    let tried = if is_whole() { &dialects[..] } else { &dialects[..2] };
    for (index, dialect) in tried.iter().enumerate() {
        for compiler in some_compilers(index) {
            for (_, installation) in all() {
                let options = format!("{dialect} -O0 -fPIC -shared {WARNINGS} {STRICT}");
                let build = Build::new(compiler.cpp, &["whole.cpp"], &options);
                let library = build.against(installation).make();
                let path = library.path.to_str().expect("a path in UTF-8");
                let text = output_of("nm", &["-D", "--defined-only", path]);
                let names = text.lines().filter_map(|line| line.split_whitespace().last());
                let (ours, others): (Vec<_>, Vec<_>) = names.partition(|name| is_percids(name));
                assert!(ours.is_empty(), "{} {options}: {ours:?}", compiler.cpp);
                // The control: inline functions are exported unless they are hidden.
                assert!(others.iter().any(|name| name.contains("shown_by_default")), "{others:?}");
            }
        }
    }
}

/// Returns `true` if a mangled name belongs to a function of percid.hpp, or to a part of one.
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

/// Threads run to the last instruction of the process, and other static objects are initialised
/// before and destroyed after.
#[test]
pub(crate) fn static_objects_are_there_before_main_and_until_the_end() {
    for way in ways(0) {
        let program = lifetime(way.compiler, "").against(way.installation).make();
        for _ in 0..if is_whole() { 50 } else { 3 } {
            program.must_pass(&mut program.command());
        }
    }
    // The controls: dynamically initialised objects that are used before, and destroyed objects
    // that are used later.
    let controls = if is_whole() { &["-DOWNED", "-DOWNED -DLATE"][..] } else { &["-DOWNED"] };
    for (index, control) in controls.iter().enumerate() {
        for &compiler in some_compilers(index) {
            let program = lifetime(compiler, control).against(shared()).make();
            let (output, text) = program.outcome(&mut program.command());
            assert!(!output.status.success(), "{} {control}: {text}", compiler.cpp);
        }
    }
}

/// Returns the build of `lifetime.cpp`. With C++20 the compiler checks that the objects are
/// constant-initialised.
fn lifetime(compiler: Compiler, control: &str) -> Build {
    let options = format!("-std=c++20 -O2 {control} {WARNINGS} {STRICT}");
    Build::new(compiler.cpp, &["lifetime.cpp"], &options)
}
