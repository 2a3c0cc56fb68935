//! Every program by every compiler in every dialect at every level of optimisation, and with common
//! options of projects: without exceptions, with hidden visibility, under each sanitizer and each
//! of valgrind's tools. Also all combinations of the tests in this folder that use a selection by
//! default.
//!
//! Several hundred compilations: only with `PERCID_MATRIX=whole` (`.ci/run c-matrix`).

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::correctness::STRUCTURES;

use crate::installation::{Installation, MUSL, all, musl, only_static, shared};
use crate::sanitizers::{
    HANDING_OVER, RACES, SOURCES, WITH_SYMBOLS, has, has_valgrind, must_find, passes_sanitized,
    race_detector, sanitized,
};
use crate::toolchain::{Build, Compiler, Program, WARNINGS, any_compiler, compilers, try_options};
use crate::wrapper::WRAPPER;

const LEVELS: [&str; 5] = ["-O0", "-O1", "-O2", "-O3", "-O3 -flto"];
/// `-std=c2x` is C23 for the oldest supported compilers.
const C: [&str; 4] = ["-std=gnu99", "-std=gnu11", "-std=gnu17", "-std=gnu2x"];
const CPP: [&str; 3] = ["-std=c++17", "-std=c++20", "-std=c++2b"];
const EVERYWHERE: &str = "-Wconversion -pthread";
/// Common compile options of projects.
const C_WAYS: [&str; 3] = ["-fvisibility=hidden", "-include hidden.h", "-fno-plt -fPIC"];
const CPP_WAYS: [&str; 3] = ["-fvisibility=hidden", "-include hidden.h", "-fno-rtti"];

/// A combination to test: one program in one way, or a test with all combinations.
struct Cell {
    name: String,
    run: Box<dyn FnOnce() + Send>,
}

/// Cells that run together, under a name by which they can be requested.
struct Row {
    name: String,
    cells: Cells,
}

/// A function that adds the cells of a row.
type Cells = Box<dyn Fn(&mut Vec<Cell>)>;

/// The tests that use a selection by default.
macro_rules! tests {
    ($($module:ident::$test:ident)*) => {
        [$((concat!(stringify!($module), "::", stringify!($test)), crate::$module::$test as fn())),*]
    };
}

const TESTS: [(&str, fn()); 30] = tests! {
    copies::three_copies_of_two_versions_count_under_stress
    copies::two_libraries_of_a_program_that_each_contain_percid_count_under_stress
    correctness::the_header_is_valid_in_every_dialect_of_c
    correctness::every_structure_is_right_with_every_source
    correctness::every_kind_of_program_counts
    ends::what_a_function_had_is_given_back_however_it_ends
    ends::it_needs_nothing_of_the_functions_of_c
    ends::what_a_function_throws_comes_out_of_the_call
    examples::examples_in_c
    examples::examples_in_cpp
    examples::allocations_of_any_program_are_counted
    examples::a_program_and_its_plugins_count_whichever_copies_they_use
    inline_add::inline_functions_of_cpp_may_contain_increments
    inline_add::descriptors_are_well_formed_however_a_program_is_built
    misuse::every_function_answers_in_cs_words
    misuse::every_function_answers_in_cs_words_on_several_nodes
    pretended_nodes::balancers_arm_count_and_tell
    pretended_nodes::balancers_under_sanitizers
    pretended_nodes::balancers_under_valgrind
    sanitizers::addresses_behaviour_and_leaks
    sanitizers::races
    sanitizers::valgrind
    promises::the_headers_may_be_included_where_everything_is_hidden
    wrapper::the_wrapper_works_in_every_dialect_of_cpp
    wrapper::newer_dialects_have_spans_and_concepts
    wrapper::programs_without_exceptions_have_all_of_the_wrapper
    wrapper::no_function_of_the_wrapper_leaves_its_module
    other_architectures::the_sections_for_arm_compute_what_they_should
    other_architectures::the_sections_for_riscv_compute_what_they_should
    wrapper::static_objects_are_there_before_main_and_until_the_end
};

#[cfg(target_arch = "x86_64")]
const INTERRUPTIONS: [(&str, fn()); 2] = tests! {
    interruption::every_instruction_of_an_increment_may_be_interrupted
    interruption::every_instruction_of_other_structures_may_be_interrupted
};
#[cfg(not(target_arch = "x86_64"))]
const INTERRUPTIONS: [(&str, fn()); 0] = [];

/// `PERCID_MATRIX=list` prints the rows with the names for `PERCID_MATRIX=row:NAME`.
#[test]
fn the_whole_matrix() {
    let asked = std::env::var("PERCID_MATRIX").unwrap_or_default();
    let rows = rows();
    match asked.strip_prefix("row:") {
        Some(name) => {
            let row = rows.into_iter().find(|row| row.name == name);
            report(run(vec![row.unwrap_or_else(|| panic!("there is no row {name}"))]));
        }
        None if asked == "whole" => report(run(rows)),
        None if asked == "list" => rows.iter().for_each(|row| println!("row:{}", row.name)),
        None => percid_skips::not_checked(
            "every way to build a C program",
            "PERCID_MATRIX is neither whole, list nor row:NAME",
        ),
    }
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, test) in TESTS.into_iter().chain(INTERRUPTIONS) {
        rows.push(Row::new(name, move |cells| add(name.to_owned(), test, cells)));
    }
    for &compiler in compilers() {
        let mut row = |group: &str, cells: fn(Compiler, &mut Vec<Cell>)| {
            let name = format!("{group}:{}", compiler.c);
            rows.push(Row::new(&name, move |all| cells(compiler, all)));
        };
        row("dialects-of-c", dialects_of_c);
        row("dialects-of-cpp", dialects_of_cpp);
        row("ways", ways);
        row("threads", threads);
    }
    rows.push(Row::new("musl", without_glibc));
    rows.push(Row::new("race-detectors-of-valgrind", valgrind));
    rows
}

impl Row {
    fn new(name: &str, cells: impl Fn(&mut Vec<Cell>) + 'static) -> Row {
        Row { name: name.to_owned(), cells: Box::new(cells) }
    }
}

fn dialects_of_c(compiler: Compiler, cells: &mut Vec<Cell>) {
    for (level, dialect) in LEVELS.iter().flat_map(|level| C.map(|dialect| (level, dialect))) {
        let options = format!("{dialect} {level} {WARNINGS} {EVERYWHERE}");
        plain(compiler.c, &STRUCTURES, &options, cells);
    }
}

fn dialects_of_cpp(compiler: Compiler, cells: &mut Vec<Cell>) {
    for (level, dialect) in LEVELS.iter().flat_map(|level| CPP.map(|dialect| (level, dialect))) {
        let options = format!("{dialect} {level} {WARNINGS} {EVERYWHERE}");
        plain(compiler.cpp, &WRAPPER, &options, cells);
    }
}

fn ways(compiler: Compiler, cells: &mut Vec<Cell>) {
    for way in C_WAYS {
        let options = format!("-std=gnu11 -O2 {WARNINGS} {EVERYWHERE} {way}");
        plain(compiler.c, &STRUCTURES, &options, cells);
    }
    for way in CPP_WAYS {
        let options = format!("-std=c++17 -O2 {WARNINGS} {EVERYWHERE} {way}");
        plain(compiler.cpp, &WRAPPER, &options, cells);
    }
    for dialect in CPP {
        let options = format!("{dialect} -O2 {WARNINGS} {EVERYWHERE} -fno-exceptions -fno-rtti");
        plain(compiler.cpp, &["no_exceptions.cpp"], &options, cells);
    }
}

/// Adds programs that are simply run, alternately with the shared and the static library.
fn plain(compiler: &str, sources: &[&str], options: &str, cells: &mut Vec<Cell>) {
    if !try_options(compiler, options) {
        return;
    }
    for source in sources {
        let installation = if cells.len().is_multiple_of(2) { shared() } else { only_static() };
        let build = Build::new(compiler, &[source], options).against(installation);
        must_pass(format!("{compiler} {options} {source}"), build, cells);
    }
}

fn threads(compiler: Compiler, cells: &mut Vec<Cell>) {
    if !has(compiler, RACES) {
        return;
    }
    let cpp_options = format!("-std=c++17 {RACES}");
    let c = STRUCTURES.iter().chain(&["handover.c"]).map(|source| (compiler.c, source, RACES));
    let cpp = WRAPPER.iter().map(|source| (compiler.cpp, source, cpp_options.as_str()));
    for (compiler, source, options) in c.chain(cpp) {
        let build = Build::new(compiler, &[source], options);
        let run = move || passes_sanitized(build, shared(), &SOURCES);
        add(format!("{compiler} {options} {source}"), run, cells);
    }
    for (word, installation) in all() {
        let build = Build::new(compiler.c, &["race_in_callback.c"], RACES).against(installation);
        let run = move || {
            let program = build.make();
            for (structure, source) in
                HANDING_OVER.iter().flat_map(|one| SOURCES.map(|source| (one, source)))
            {
                let mut command = program.command();
                command.arg(structure).env("PERCID_SOURCE", source);
                must_find(&program, sanitized(&mut command));
            }
        };
        add(format!("{} {RACES} race_in_callback.c {word}", compiler.c), run, cells);
    }
}

fn without_glibc(cells: &mut Vec<Cell>) {
    let Some(installation) = musl() else { return };
    for (level, source) in LEVELS.iter().flat_map(|level| STRUCTURES.map(|source| (level, source)))
    {
        let options = format!("-static -std=gnu11 {level} {WARNINGS} {EVERYWHERE}");
        let build = Build::new(MUSL, &[source], &options).entirely_static(installation);
        must_pass(format!("{MUSL} {options} {source}"), build, cells);
    }
}

fn valgrind(cells: &mut Vec<Cell>) {
    if !has_valgrind() {
        return;
    }
    let compiler = any_compiler().c;
    for (tool, (word, installation)) in
        ["helgrind", "drd"].iter().flat_map(|tool| all().map(|one| (tool, one)))
    {
        let options = format!("{WITH_SYMBOLS} -DROUNDS=100");
        let build = Build::new(compiler, &["handover.c"], &options).against(installation);
        let right = move || {
            let program = build.make();
            let runner = race_detector(tool, installation);
            let runner = runner.each_ref().map(String::as_str);
            program.must_pass(&mut program.command_under(&runner));
        };
        add(format!("{tool} handover.c {word}"), right, cells);
        let build = Build::new(compiler, &["race_in_callback.c"], WITH_SYMBOLS);
        let build = build.against(installation);
        let wrong = move || must_find_each(&build.make(), tool, installation);
        add(format!("{tool} race_in_callback.c {word}"), wrong, cells);
    }
}

fn must_find_each(program: &Program, tool: &str, installation: &Installation) {
    let runner = race_detector(tool, installation);
    let runner = runner.each_ref().map(String::as_str);
    for structure in HANDING_OVER {
        must_find(program, program.command_under(&runner).arg(structure));
    }
}

fn must_pass(name: String, build: Build, cells: &mut Vec<Cell>) {
    let run = move || {
        let program = build.make();
        program.must_pass(&mut program.command());
    };
    add(name, run, cells);
}

fn add(name: String, run: impl FnOnce() + Send + 'static, cells: &mut Vec<Cell>) {
    cells.push(Cell { name, run: Box::new(run) });
}

/// The number of cells of each row, and the failures.
type Outcome = (BTreeMap<String, usize>, Vec<String>);

/// Runs two cells at a time.
fn run(rows: Vec<Row>) -> Outcome {
    let (mut counts, mut cells) = (BTreeMap::new(), Vec::new());
    for row in rows {
        let before = cells.len();
        (row.cells)(&mut cells);
        counts.insert(row.name, cells.len() - before);
    }
    let all = cells.len();
    let (cells, failures, done) = (Mutex::new(cells), Mutex::new(Vec::new()), AtomicUsize::new(0));
    let work = || {
        while let Some(Cell { name, run }) = take(&cells) {
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
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
    for (row, count) in &counts {
        println!("{count:5}  {row}");
    }
    println!("{:5}  in all, {} failed", counts.values().sum::<usize>(), failures.len());
    assert!(failures.is_empty(), "failed:\n{}", failures.join("\n"));
}
