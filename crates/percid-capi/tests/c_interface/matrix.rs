//! Every program by every compiler in every dialect at every level of optimisation, and in the ways
//! that projects compile: without exceptions, with everything hidden, under each of the sanitizers
//! and each of valgrind's tools.
//!
//! Some hundred compilations: with `PERCID_MATRIX=whole` only (`.ci/run c-matrix`). The other tests
//! of this folder are the selection that always runs.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::correctness::STRUCTURES;

use crate::installation::{Installation, MUSL, musl, only_static, shared};
use crate::sanitizers::{
    HANDING_OVER, RACES, SANITIZED, SOURCES, VALGRIND, WITH_SYMBOLS, has, has_valgrind, must_find,
    race_detector, sanitized,
};
use crate::toolchain::{Build, Compiler, Program, WARNINGS, any_compiler, compilers, try_options};
use crate::wrapper::WRAPPER;

const LEVELS: [&str; 5] = ["-O0", "-O1", "-O2", "-O3", "-O3 -flto"];
/// `-std=c2x` is C23 to the oldest compilers here.
const C: [&str; 4] = ["-std=gnu99", "-std=gnu11", "-std=gnu17", "-std=gnu2x"];
const CPP: [&str; 3] = ["-std=c++17", "-std=c++20", "-std=c++2b"];
const EVERYWHERE: &str = "-Wconversion -pthread";
/// How projects compile what they have.
const C_WAYS: [&str; 3] = ["-fvisibility=hidden", "-include hidden.h", "-fno-plt -fPIC"];
const CPP_WAYS: [&str; 3] = ["-fvisibility=hidden", "-include hidden.h", "-fno-rtti"];

/// One program in one way.
struct Cell {
    /// What it is counted as.
    group: &'static str,
    name: String,
    build: Build<'static>,
    run: Box<dyn Fn(&Program) + Send>,
}

#[test]
fn the_whole_matrix() {
    if std::env::var("PERCID_MATRIX").is_ok_and(|asked| asked == "whole") {
        report(run(cells()));
    } else {
        percid_skips::not_checked(
            "every way to build a C program",
            "PERCID_MATRIX=whole is not set",
        );
    }
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for &compiler in compilers() {
        dialects(compiler, &mut cells);
        ways(compiler, &mut cells);
        sanitizers(compiler, &mut cells);
    }
    without_glibc(&mut cells);
    if has_valgrind() {
        valgrind(&mut cells);
    }
    cells
}

fn dialects(compiler: Compiler, cells: &mut Vec<Cell>) {
    for level in LEVELS {
        for dialect in C {
            let options = format!("{dialect} {level} {WARNINGS} {EVERYWHERE}");
            plain("dialects of C", compiler.c, &STRUCTURES, &options, cells);
        }
        for dialect in CPP {
            let options = format!("{dialect} {level} {WARNINGS} {EVERYWHERE}");
            plain("dialects of C++", compiler.cpp, &WRAPPER, &options, cells);
        }
    }
}

fn ways(compiler: Compiler, cells: &mut Vec<Cell>) {
    for way in C_WAYS {
        let options = format!("-std=gnu11 -O2 {WARNINGS} {EVERYWHERE} {way}");
        plain("ways of C", compiler.c, &STRUCTURES, &options, cells);
    }
    for way in CPP_WAYS {
        let options = format!("-std=c++17 -O2 {WARNINGS} {EVERYWHERE} {way}");
        plain("ways of C++", compiler.cpp, &WRAPPER, &options, cells);
    }
    for dialect in CPP {
        let options = format!("{dialect} -O2 {WARNINGS} {EVERYWHERE} -fno-exceptions -fno-rtti");
        plain("ways of C++", compiler.cpp, &["no_exceptions.cpp"], &options, cells);
    }
}

/// Programs that are just run, one with the shared library, the next with the static one.
fn plain(
    group: &'static str,
    compiler: &str,
    sources: &[&str],
    options: &str,
    cells: &mut Vec<Cell>,
) {
    if !try_options(compiler, options) {
        return;
    }
    for source in sources {
        let installation = if cells.len().is_multiple_of(2) { shared() } else { only_static() };
        let build = Build::new(compiler, &[source], options).against(installation);
        let run = |program: &Program| program.must_pass(&mut program.command());
        add(group, format!("{compiler} {options} {source}"), build, run, cells);
    }
}

fn sanitizers(compiler: Compiler, cells: &mut Vec<Cell>) {
    for (group, options, more) in [
        ("address and behaviour", SANITIZED, [].as_slice()),
        ("threads", RACES, ["handover.c"].as_slice()),
    ] {
        if !has(compiler, options) {
            continue;
        }
        let cpp_options = format!("-std=c++17 {options}");
        let c = STRUCTURES.iter().chain(more).map(|source| (compiler.c, source, options));
        let cpp = WRAPPER.iter().map(|source| (compiler.cpp, source, cpp_options.as_str()));
        for (compiler, source, options) in c.chain(cpp) {
            let build = Build::new(compiler, &[source], options).against(shared());
            let run = |program: &Program| {
                for source in SOURCES {
                    let mut command = program.command();
                    program.must_pass(sanitized(&mut command).env("PERCID_SOURCE", source));
                }
            };
            add(group, format!("{compiler} {options} {source}"), build, run, cells);
        }
    }
    if has(compiler, RACES) {
        for installation in [shared(), only_static()] {
            let build =
                Build::new(compiler.c, &["race_in_callback.c"], RACES).against(installation);
            let run = |program: &Program| {
                for structure in HANDING_OVER {
                    for source in SOURCES {
                        let mut command = program.command();
                        command.arg(structure).env("PERCID_SOURCE", source);
                        must_find(program, sanitized(&mut command));
                    }
                }
            };
            add("races that are found", format!("{} {RACES}", compiler.c), build, run, cells);
        }
    }
}

fn without_glibc(cells: &mut Vec<Cell>) {
    let Some(installation) = musl() else { return };
    for level in LEVELS {
        for source in STRUCTURES {
            let options = format!("-static -std=gnu11 {level} {WARNINGS} {EVERYWHERE}");
            let build = Build::new(MUSL, &[source], &options).entirely_static(installation);
            let run = |program: &Program| program.must_pass(&mut program.command());
            add("musl", format!("{MUSL} {options} {source}"), build, run, cells);
        }
    }
}

fn valgrind(cells: &mut Vec<Cell>) {
    let compiler = any_compiler().c;
    for source in STRUCTURES {
        let build = Build::new(compiler, &[source], WITH_SYMBOLS).against(shared());
        let run = |program: &Program| program.must_pass(&mut program.command_under(&VALGRIND));
        add("memcheck", source.to_owned(), build, run, cells);
    }
    for (tool, installation) in [
        ("helgrind", shared()),
        ("helgrind", only_static()),
        ("drd", shared()),
        ("drd", only_static()),
    ] {
        let build = Build::new(compiler, &["handover.c"], WITH_SYMBOLS);
        let build = build.arguments(&["-DROUNDS=100"]).against(installation);
        let run = move |program: &Program| {
            let runner = race_detector(tool, installation);
            let runner = runner.each_ref().map(String::as_str);
            program.must_pass(&mut program.command_under(&runner));
        };
        add("helgrind and drd", format!("{tool} handover.c"), build, run, cells);
        let build = Build::new(compiler, &["race_in_callback.c"], WITH_SYMBOLS);
        let build = build.against(installation);
        let run = move |program: &Program| must_find_each(program, tool, installation);
        add("races that are found", format!("{tool} race_in_callback.c"), build, run, cells);
    }
}

fn must_find_each(program: &Program, tool: &str, installation: &Installation) {
    let runner = race_detector(tool, installation);
    let runner = runner.each_ref().map(String::as_str);
    for structure in HANDING_OVER {
        must_find(program, program.command_under(&runner).arg(structure));
    }
}

fn add(
    group: &'static str,
    name: String,
    build: Build<'static>,
    run: impl Fn(&Program) + Send + 'static,
    cells: &mut Vec<Cell>,
) {
    cells.push(Cell { group, name, build, run: Box::new(run) });
}

/// How many of each group there were, and what failed.
type Outcome = (BTreeMap<&'static str, usize>, Vec<String>);

/// Two at a time.
fn run(cells: Vec<Cell>) -> Outcome {
    let mut counts = BTreeMap::new();
    cells.iter().for_each(|cell| *counts.entry(cell.group).or_default() += 1);
    let all = cells.len();
    let (cells, failures, done) = (Mutex::new(cells), Mutex::new(Vec::new()), AtomicUsize::new(0));
    let work = || {
        while let Some(Cell { name, build, run, .. }) = take(&cells) {
            let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                run(&build.make());
            }));
            if tried.is_err() {
                failures.lock().expect("no panic in between").push(name);
            }
            let done = done.fetch_add(1, Relaxed) + 1;
            if done % 50 == 0 {
                println!("{done} of {all}");
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| _ = scope.spawn(work)));
    (counts, failures.into_inner().expect("no panic in between"))
}

fn take(cells: &Mutex<Vec<Cell>>) -> Option<Cell> {
    cells.lock().expect("no panic in between").pop()
}

fn report((counts, failures): Outcome) {
    for (group, count) in &counts {
        println!("{count:5}  {group}");
    }
    println!("{:5}  in all, {} failed", counts.values().sum::<usize>(), failures.len());
    assert!(failures.is_empty(), "failed:\n{}", failures.join("\n"));
}
