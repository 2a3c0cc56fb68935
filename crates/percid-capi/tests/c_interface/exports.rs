//! The symbols of the libraries.

use std::collections::BTreeSet;
use std::path::Path;

use crate::installation::{Installation, all, musl, musl_shared, only_static, shared};
use crate::toolchain::{Build, any_compiler, output_of, scratch};

/// Returns the names in the version script.
fn listed() -> BTreeSet<String> {
    let map = include_str!("../../percid.map");
    let names = map.lines().filter_map(|line| line.trim().strip_suffix(';'));
    names.filter(|name| name.starts_with("percid_")).map(str::to_owned).collect()
}

/// Returns the visible symbols, with binding and visibility.
fn symbols(library: &Path, table: &str) -> BTreeSet<(String, String, String)> {
    let path = library.to_str().expect("a path in UTF-8");
    let text = output_of("readelf", &["-W", table, path]);
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let ours = lines.filter(|words| {
        matches!(words.get(4), Some(&("GLOBAL" | "WEAK" | "UNIQUE")))
            && words.get(6) != Some(&"UND")
    });
    ours.map(|words| (words[4].to_owned(), words[5].to_owned(), words[7].to_owned())).collect()
}

/// Returns the expected symbols of the table and of the functions.
fn expected(version: &str, visibility: &str) -> BTreeSet<(String, String, String)> {
    let all = listed().into_iter().map(|name| {
        let (binding, visibility) = match name.as_str() {
            "percid_interface_1" => ("UNIQUE", "DEFAULT"),
            _ => ("GLOBAL", visibility),
        };
        (binding.to_owned(), visibility.to_owned(), name + version)
    });
    all.collect()
}

#[test]
fn the_shared_library_exports_percids_names_and_no_other() {
    let mut expected = expected("@@PERCID_1", "DEFAULT");
    // The version itself.
    expected.insert(["GLOBAL", "DEFAULT", "PERCID_1"].map(str::to_owned).into());
    assert_eq!(symbols(&shared().library("libpercid.so"), "--dyn-syms"), expected);
}

/// The dynamic linker gives all modules the table that was looked up first: no copy may look it up
/// itself.
#[test]
fn no_copy_looks_for_its_own_table() {
    for library in [shared().library("libpercid.so"), only_static().library("libpercid.a")] {
        let path = library.to_str().expect("a path in UTF-8");
        let text = output_of("readelf", &["-W", "-r", path]);
        // A section that is never loaded is not bound with the library.
        let sections =
            text.split("Relocation section ").filter(|of| !of.starts_with("'.rela.percid.keep'"));
        let found: Vec<_> = sections
            .flat_map(str::lines)
            .filter(|line| line.contains("percid_interface_") && line.contains(" R_"))
            .collect();
        assert!(text.contains("R_") && found.is_empty(), "{path}: {found:?}");
    }
}

/// A program must export either all functions or none for libraries that it is linked with.
#[test]
fn the_static_library_has_the_same_names_but_shows_the_table_alone() {
    for installation in [shared(), only_static()] {
        let library = installation.library("libpercid.a");
        assert_eq!(symbols(&library, "--symbols"), expected("", "HIDDEN"));
    }
}

/// The symbols that keep copies apart remain, and so does everything that programs need.
#[test]
fn the_static_library_may_be_stripped() {
    for how in ["--strip-debug", "--strip-unneeded"] {
        let library = scratch("stripped").join(format!("libpercid{how}.a"));
        let path = library.to_str().expect("a path in UTF-8");
        std::fs::copy(only_static().library("libpercid.a"), path).expect("a copy");
        output_of("strip", &[how, path]);
        let table = ["UNIQUE", "DEFAULT", "percid_interface_1"].map(str::to_owned).into();
        assert!(symbols(&library, "--symbols").contains(&table), "{how}");
        let options = only_static().compile_options().join(" ");
        let build = Build::new(any_compiler().c, &["counters.c"], &format!("{options} -pthread"));
        let program = build.arguments(&[path, "-ldl", "-lm", "-lgcc_s"]).make();
        program.must_pass(&mut program.command());
    }
}

#[test]
fn the_shared_library_is_as_packagers_want_it() {
    let library = shared().library("libpercid.so");
    let path = library.to_str().expect("a path in UTF-8");
    let text = output_of("readelf", &["-W", "-d", "-S", path]);
    assert!(text.contains("Library soname: [libpercid.so.1]"), "{text}");
    for needed in ["NODELETE", "NOW"] {
        assert!(text.contains(needed), "{needed}: {text}");
    }
    for unwanted in ["TEXTREL", "RUNPATH", "RPATH", ".llvmbc", ".debug_info"] {
        assert!(!text.contains(unwanted), "{unwanted}: {text}");
    }
    assert_eq!(std::fs::read_link(&library).expect("a link"), Path::new("libpercid.so.1"));
    let bytes = std::fs::metadata(&library).expect("a library").len();
    assert!(bytes < 6 << 18, "the shared library has {bytes} bytes: was garbage collected?");
}

#[test]
fn what_is_installed_can_be_unwound() {
    for (_, installation) in all() {
        installation.can_be_unwound();
    }
}

#[test]
#[ignore = "long: Cargo builds the library for musl"]
fn what_is_installed_for_musl_can_be_unwound() {
    [musl(), musl_shared()].into_iter().flatten().for_each(Installation::can_be_unwound);
}
