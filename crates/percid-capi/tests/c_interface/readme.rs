//! The programs of README.md, each exactly as it is printed there.

use crate::installation::{only_static, shared};
use crate::sanitizers::{SANITIZED, having, sanitized};
use crate::selection::alternately;
use crate::toolchain::{Build, Compiler, WARNINGS, compilers, scratch};

/// Returns the programs in one language, which is the name of their fence.
fn printed(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let pieces = include_str!("../../README.md").split(&fence).skip(1);
    pieces.map(|piece| piece.split_once("```").expect("an end of the program").0).collect()
}

/// Returns the file of each program, and its number among all.
fn files() -> impl Iterator<Item = (usize, &'static str, String)> {
    let languages = [("c", 4), ("cpp", 2)].into_iter().flat_map(|(language, number)| {
        let found = printed(language);
        assert_eq!(found.len(), number, "programs in {language}");
        found.into_iter().map(move |program| (language, program))
    });
    languages.enumerate().map(|(index, (language, program))| {
        let file = scratch("readme").join(format!("{index}.{language}"));
        std::fs::write(&file, program).expect("a writable folder");
        (index, language, file.to_str().expect("a path in UTF-8").to_owned())
    })
}

/// Returns the build of a program in the oldest dialect of its language that it supports.
fn build(language: &str, compiler: Compiler, file: &str, options: &str) -> Build {
    match language {
        "c" => Build::new(compiler.c, &[file], &format!("-std=gnu99 {options}")),
        _ => Build::new(compiler.cpp, &[file], &format!("-std=c++17 {options}")),
    }
}

#[test]
fn each_program_is_compiled_as_it_is_printed() {
    for (index, language, file) in files() {
        for compiler in alternately(compilers(), index) {
            let options = format!("-O2 {WARNINGS}");
            let program = build(language, *compiler, &file, &options).against(shared()).make();
            let (output, text) = program.outcome(&mut program.command());
            assert!(output.status.success(), "{file}: {text}");
        }
    }
}

/// percid's memory points to objects that are in use: nothing is reported as lost.
#[test]
fn no_program_has_an_error_by_the_sanitizers() {
    let compilers = having(SANITIZED);
    for (index, language, file) in files() {
        for compiler in alternately(&compilers, index + 1) {
            for installation in alternately(&[shared(), only_static()], index / 2) {
                let build = build(language, *compiler, &file, SANITIZED);
                let program = build.against(installation).make();
                let (output, text) = program.outcome(sanitized(&mut program.command()));
                assert!(output.status.success(), "{file}: {text}");
            }
        }
    }
}
