//! The increment that programs have inline: its machine code, and its results.

#[cfg(target_arch = "x86_64")]
use percid_aborts::{elf, image::Image};

use crate::installation::{all, only_static, shared};
use crate::selection::some_compilers;
use crate::toolchain::{Build, Program, WARNINGS, any_compiler, compilers, output_of};

/// The disassembled functions, with an upper bound of their instructions for all tested compilers.
/// The library's own increment has 18 to 20, including the loop.
#[cfg(target_arch = "x86_64")]
const HOT: [(&str, usize); 2] = [("hot_adds", 28), ("hot_records", 42)];

/// The two sources with critical sections.
const SOURCES: [&str; 2] = ["kernel", "table"];

#[test]
fn the_sections_compute_what_they_should() {
    for compiler in compilers() {
        for optimised in ["-O0", "-O1", "-O2", "-O3 -fPIC", "-Os -fno-pie -no-pie"] {
            let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
            let options = format!("-std=gnu11 {optimised} {WARNINGS} {include}");
            let program = Build::new(compiler.c, &["sections.c"], &options).make();
            program.must_pass(&mut program.command());
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_hot_loop_calls_nothing() {
    use crate::machine_code::{function, repeated};
    for compiler in compilers() {
        for (library, installation) in all() {
            for optimised in ["-O2", "-O3"] {
                let options = format!("{optimised} {WARNINGS}");
                let build = Build::new(compiler.c, &["hot_loop.c"], &options).against(installation);
                let program = build.make();
                for (name, most) in HOT {
                    let code = function(&program.path, name);
                    for mark in [2, 1] {
                        let body = repeated(&code, mark);
                        let length = body.len();
                        println!("{} {library} {options} {name} {mark}: {length}", compiler.c);
                        let costly: Vec<_> = body.iter().filter(|one| one.is_costly()).collect();
                        assert!(costly.is_empty(), "{options} {name}: {costly:?}");
                        assert!((16..=most).contains(&length), "{options} {name}: {body:?}");
                    }
                }
            }
        }
    }
}

/// The control of the test above: it detects a call.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_call_in_a_hot_loop_is_seen() {
    use crate::machine_code::{function, repeated};
    let options = format!("-O2 {WARNINGS} -DPERCID_NO_INLINE");
    let program = Build::new(any_compiler().c, &["hot_loop.c"], &options).against(shared()).make();
    for (name, _) in HOT {
        let body = repeated(&function(&program.path, name), 2);
        assert!(body.iter().any(|one| one.is_costly()), "{name}: {body:?}");
    }
}

#[test]
fn the_slow_path_is_rare() {
    for compiler in compilers() {
        let options = format!("-std=gnu11 -O2 {WARNINGS} -Wl,--wrap=percid_interface_1");
        let build = Build::new(compiler.c, &["slow_calls.c"], &options).against(only_static());
        let program = build.make();
        for source in SOURCES {
            match slow_calls(&program, source) {
                Some(calls) => assert!((1..100_000).contains(&calls), "{source}: {calls}"),
                None => percid_skips::not_checked(
                    "how rare the slow path is",
                    &format!("no source {source} here"),
                ),
            }
        }
        // The control: all increments are slow.
        assert_eq!(slow_calls(&program, "atomic"), Some(10_000_000));
    }
}

/// Returns the number of calls in ten million increments; `None` if the source is unavailable.
fn slow_calls(program: &Program, source: &str) -> Option<u64> {
    let (output, text) = program.outcome(program.command().env("PERCID_SOURCE", source));
    assert!(output.status.success(), "{text}");
    let line = text.lines().find(|line| line.starts_with("slow_calls="))?;
    let (calls, used) = line.strip_prefix("slow_calls=")?.split_once(" source=")?;
    (used == source).then(|| calls.parse().expect("a number"))
}

/// Each file that includes an inline function has a copy of it with its critical sections. The
/// linker keeps one copy, and must remove the descriptors of the others.
#[test]
pub(crate) fn inline_functions_of_cpp_may_contain_increments() {
    let sources = ["comdat_main.cpp", "comdat_elsewhere.cpp"];
    let kinds = ["-O0", "-O2", "-O2 -ffunction-sections -Wl,--gc-sections", "-O2 -flto"];
    for (index, kind) in kinds.into_iter().enumerate() {
        for compiler in some_compilers(index / 2) {
            let options = format!("-std=c++17 {kind} {WARNINGS}");
            let program = Build::new(compiler.cpp, &sources, &options).against(shared()).make();
            program.must_pass(&mut program.command());
            #[cfg(target_arch = "x86_64")]
            check_descriptors(&program, 2..=4);
        }
    }
}

/// The library's own descriptors are tested in `verify/aborts`.
#[test]
#[cfg(target_arch = "x86_64")]
pub(crate) fn descriptors_are_well_formed_however_a_program_is_built() {
    let kinds = ["-O0", "-O2", "-O2 -fno-pie -no-pie", "-O3 -flto", "-Os -Wl,--gc-sections"];
    let library = descriptors(&shared().library("libpercid.so"));
    for (index, kind) in kinds.into_iter().enumerate() {
        for compiler in some_compilers(index) {
            let build = || Build::new(compiler.c, &["hot_loop.c"], kind);
            check_descriptors(&build().against(shared()).make(), 4..=4);
            let with_library = build().against(only_static()).make();
            with_library.must_pass(&mut with_library.command());
            assert_eq!(descriptors(&with_library.path), library + 4, "{} {kind}", compiler.c);
        }
    }
}

/// Returns the number of critical sections in a file.
#[cfg(target_arch = "x86_64")]
fn descriptors(path: &std::path::Path) -> usize {
    Image::read(path).expect("an ELF file").descriptors().len()
}

/// Checks that the descriptors of a program are valid, and that their number is expected.
#[cfg(target_arch = "x86_64")]
fn check_descriptors(program: &Program, expected: std::ops::RangeInclusive<usize>) {
    let image = Image::read(&program.path).expect("a program");
    assert_eq!(elf::faults(&image), Vec::<String>::new());
    let found = image.descriptors().len();
    assert!(expected.contains(&found), "{found} descriptors instead of {expected:?}");
    // The control: the check detects damage.
    for damage in elf::Damage::ALL {
        let spoiled = damage.inflict(&image).expect("a spoiled copy");
        assert!(!elf::faults(&spoiled).is_empty(), "{damage:?} was not noticed");
    }
}

/// A program must not copy the table, because the table's size would become part of its binary
/// interface.
#[test]
fn no_program_copies_the_table() {
    for compiler in compilers() {
        for kind in ["-fPIE -pie", "-fno-pie -no-pie"] {
            let options = format!("-O2 {kind}");
            let program =
                Build::new(compiler.c, &["hot_loop.c"], &options).against(shared()).make();
            program.must_pass(&mut program.command());
            let path = program.path.to_str().expect("a path in UTF-8");
            let relocations = output_of("readelf", &["-W", "-r", path]);
            let ours: Vec<_> =
                relocations.lines().filter(|line| line.contains("percid_interface_1")).collect();
            assert!(
                !ours.is_empty() && ours.iter().all(|line| line.contains("GLOB_DAT")),
                "{ours:?}"
            );
        }
    }
}
