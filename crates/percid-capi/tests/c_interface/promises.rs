//! Macros and attributes of the headers, in addition to the functions.

use crate::installation::shared;
use crate::selection::some_compilers;
use crate::toolchain::{Build, WARNINGS, compilers};

/// Returns the version as one number.
fn expected_number() -> u32 {
    let part = |text: &str| text.parse::<u32>().expect("a number");
    let [major, minor, patch] = [
        part(env!("CARGO_PKG_VERSION_MAJOR")),
        part(env!("CARGO_PKG_VERSION_MINOR")),
        part(env!("CARGO_PKG_VERSION_PATCH")),
    ];
    major * 1_000_000 + minor * 1_000 + patch
}

#[test]
pub(crate) fn the_headers_may_be_included_where_everything_is_hidden() {
    let visibilities = ["", "-fvisibility=hidden -fvisibility-inlines-hidden"];
    for (index, visibility) in visibilities.into_iter().enumerate() {
        for compiler in some_compilers(index) {
            let number = format!("-DEXPECTED_NUMBER={}", expected_number());
            let options = format!("-std=c++17 -O0 {WARNINGS} {visibility} {number}");
            let program =
                Build::new(compiler.cpp, &["promises.cpp"], &options).against(shared()).make();
            program.must_pass(&mut program.command());
        }
    }
}

#[test]
fn results_that_must_not_be_ignored_are_not() {
    for compiler in compilers() {
        let build = Build::new(compiler.c, &["ignored.c"], WARNINGS).against(shared());
        let said = build.try_make().expect_err("a warning");
        for name in ["percid_stack_create", "percid_stack_push"] {
            assert!(said.contains(name) && said.contains("unused-result"), "{said}");
        }
        let options = format!("{WARNINGS} -Wno-unused-result");
        Build::new(compiler.c, &["ignored.c"], &options).against(shared()).make();
    }
}

#[test]
fn the_offset_of_what_is_no_word_does_not_compile() {
    for compiler in compilers() {
        let (c, cpp) = ("-std=c11", "-x c++ -std=c++17");
        for (called, dialect) in [(compiler.c, c), (compiler.cpp, cpp)] {
            let build = |fault: &str| {
                let options = format!("{dialect} {WARNINGS} {fault}");
                Build::new(called, &["no_word.c"], &options).against(shared()).try_make()
            };
            let right = build("").expect("a word is right");
            right.must_pass(&mut right.command());
            for fault in ["-DHALF", "-DMISALIGNED", "-DARRAY"] {
                let said = build(fault).expect_err("an error");
                assert!(said.contains("PERCID_FIELD"), "{fault}: {said}");
            }
        }
    }
}

#[test]
fn languages_that_are_too_old_are_told() {
    for compiler in compilers() {
        let c = Build::new(compiler.c, &["strict.c"], "-std=gnu89");
        let cpp = Build::new(compiler.cpp, &["strict.cpp"], "-std=gnu++14");
        for (build, needed) in [(c, "percid.h needs C99"), (cpp, "percid.hpp needs C++17")] {
            let said = build.against(shared()).try_make().expect_err("an error");
            assert!(said.contains(needed), "{said}");
        }
    }
}
