//! `percid-install`: where it puts things, and what it says about wrong wishes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::installation::{installer, only_static, shared};
use crate::toolchain::scratch;

/// All files and links below a folder, relative to it.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).expect("below").to_owned());
            }
        }
    }
    found
}

fn set(names: &[&str]) -> BTreeSet<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

const HEADERS: [&str; 5] = [
    "include/percid.h",
    "include/percid.hpp",
    "include/percid_inline.h",
    "include/percid_interface.h",
    "include/percid_sections.h",
];

#[test]
fn both_libraries_are_installed_unless_one_is_asked_for() {
    let with_static = [&HEADERS[..], &["lib/libpercid.a", "lib/pkgconfig/percid.pc"]].concat();
    let shared_files = ["lib/libpercid.so", "lib/libpercid.so.1", "lib/libpercid.so.1.0.0"];
    assert_eq!(files(&only_static().prefix), set(&with_static));
    assert_eq!(files(&shared().prefix), set(&[&with_static[..], &shared_files].concat()));
}

#[test]
fn a_package_is_staged_below_destdir_and_does_not_know_it() {
    let stage = scratch("stage");
    let mut command = installer();
    command.args(["--prefix=/usr", "--libdir=lib64", "--includedir=/opt/headers"]);
    command.args(["--pkgconfigdir", "share/pkgconfig", "--library-type", "cdylib", "--quiet"]);
    let output = command.arg("--destdir").arg(&stage).output().expect("the installer starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b""[..], &b""[..]));
    let expected = [
        "opt/headers/percid.h",
        "opt/headers/percid.hpp",
        "opt/headers/percid_inline.h",
        "opt/headers/percid_interface.h",
        "opt/headers/percid_sections.h",
        "usr/lib64/libpercid.so",
        "usr/lib64/libpercid.so.1",
        "usr/lib64/libpercid.so.1.0.0",
        "usr/share/pkgconfig/percid.pc",
    ];
    assert_eq!(files(&stage), set(&expected));
    let text = std::fs::read_to_string(stage.join("usr/share/pkgconfig/percid.pc"));
    let text = text.expect("the description");
    assert!(text.starts_with("prefix=/usr\nlibdir=${prefix}/lib64\nincludedir=/opt/headers\n"));
    assert!(!text.contains("stage"), "{text}");
}

#[test]
fn wrong_wishes_are_refused_in_one_line() {
    let refused = |arguments: &[&str]| {
        let output = installer().args(arguments).output().expect("the installer starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), message)
    };
    let (code, message) = refused(&["--bindir", "x"]);
    assert_eq!(code, Some(2));
    assert_eq!(message, "percid-install: unknown option --bindir; --help lists the options\n");
    let (code, message) = refused(&["--prefix=/proc/percid", "--quiet"]);
    assert_eq!(code, Some(1));
    assert!(message.starts_with("percid-install: cannot write /proc/percid/include/"), "{message}");
    let (code, message) = refused(&["--profile=there-is-none", "--quiet"]);
    assert_eq!(code, Some(1));
    assert!(message.contains("there-is-none"), "{message}");
}
