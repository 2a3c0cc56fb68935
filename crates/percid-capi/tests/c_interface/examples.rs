//! The examples are built as their pages say, and run.

use std::path::{Path, PathBuf};

use crate::installation::all;
use crate::toolchain::{Build, WARNINGS, compilers};

/// The example programs of a language, by the end of their names.
fn examples(folder: &str, end: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder);
    let entries = std::fs::read_dir(&folder).expect("the examples");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|found| found == end)).collect();
    found.sort();
    assert!(!found.is_empty(), "no examples in {}", folder.display());
    found
}

/// Compiles and runs examples, each of which checks its own figures.
fn must_run(paths: &[PathBuf], compiler: &str, dialect: &str) {
    for path in paths {
        for (_, installation) in all() {
            let options = format!("{dialect} -O2 {WARNINGS} -pthread");
            let source = path.to_str().expect("a path in UTF-8");
            let program = Build::new(compiler, &[source], &options).against(installation).make();
            let (output, text) = program.outcome(&mut program.command());
            assert!(
                output.status.success() && !text.is_empty(),
                "{source}: {}\n{text}",
                output.status
            );
            println!("{source}:\n{text}");
        }
    }
}

#[test]
fn examples_in_c() {
    for compiler in compilers() {
        must_run(&examples("c", "c"), compiler.c, "-std=c11");
    }
}

#[test]
fn examples_in_cpp() {
    for compiler in compilers() {
        must_run(&examples("cpp", "cpp"), compiler.cpp, "-std=c++17");
    }
}
