//! What the libraries show to the linker.

use std::collections::BTreeSet;
use std::path::Path;

use crate::installation::{only_static, shared};
use crate::toolchain::output_of;

/// The names that the version script lists.
fn listed() -> BTreeSet<String> {
    let map = include_str!("../../percid.map");
    let names = map.lines().filter_map(|line| line.trim().strip_suffix(';'));
    names.filter(|name| name.starts_with("percid_")).map(str::to_owned).collect()
}

fn dynamic_symbols(library: &Path) -> Vec<String> {
    let path = library.to_str().expect("a path in UTF-8");
    let text = output_of("readelf", &["-W", "--dyn-syms", path]);
    let defined = text.lines().filter(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        matches!(words.get(4), Some(&("GLOBAL" | "WEAK"))) && words.get(6) != Some(&"UND")
    });
    defined.filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

#[test]
fn the_shared_library_exports_percids_names_and_no_other() {
    let found: BTreeSet<_> =
        dynamic_symbols(&shared().library("libpercid.so")).into_iter().collect();
    let mut expected: BTreeSet<_> =
        listed().into_iter().map(|name| format!("{name}@@PERCID_1")).collect();
    // The version itself.
    expected.insert("PERCID_1".to_owned());
    assert_eq!(found, expected);
}

#[test]
fn the_static_library_exports_the_same() {
    for installation in [shared(), only_static()] {
        let path = installation.library("libpercid.a");
        let path = path.to_str().expect("a path in UTF-8");
        let text = output_of("nm", &["--defined-only", "--extern-only", path]);
        let names = text.lines().filter(|line| line.split_whitespace().count() == 3);
        let found = names.filter_map(|line| line.split_whitespace().last()).map(str::to_owned);
        assert_eq!(found.collect::<BTreeSet<_>>(), listed());
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
    assert!(bytes < 1 << 20, "the shared library has {bytes} bytes: was garbage collected?");
}
