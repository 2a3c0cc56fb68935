//! Checks what `docs/contributing/architecture.md` says of the arrows in the project: files of a
//! crate form no circles, and only tests use the suites of `verify`.

#![cfg(test)]

mod circles;
mod modules;
mod roots;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use circles::circles;
use modules::Modules;
use roots::{entries, project, roots};

/// Returns a text with the circles of a crate, and the paths that tie each.
fn told(root: &Path) -> String {
    let modules = Modules::read(root);
    let arrows = modules.arrows();
    let name = |file: &Path| file.strip_prefix(project()).unwrap_or(file).display().to_string();
    let mut text = String::new();
    for circle in circles(&arrows) {
        writeln!(text, "{} files use each other:", circle.len()).expect("a text");
        for &file in &circle {
            for (used, path) in arrows[file].iter().filter(|(used, _)| circle.contains(*used)) {
                writeln!(text, "  {} uses {}: {path}", name(file), name(used)).expect("a text");
            }
        }
    }
    text
}

#[test]
fn no_files_of_a_crate_use_each_other() {
    let roots = roots(&["crates"]);
    assert!(roots.len() > 15, "{roots:?}");
    let circles: String = roots.iter().map(|root| told(root)).collect();
    assert!(circles.is_empty(), "{circles}");
}

/// Sources of a small crate in which `a` uses `c` by a re-export of `b`, and `c` uses `a` as given.
/// Another file stands for `c` on another system.
fn small_crate(c: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [
        ("lib.rs", "mod a; mod b; #[cfg_attr(windows, path = \"other.rs\")] mod c;"),
        ("other.rs", "pub const C: i32 = 2;"),
        ("a.rs", "pub struct A; fn f() { println!(\"{}\", super::b::C); }"),
        ("b.rs", "pub use super::c::C;"),
        ("c.rs", c),
    ];
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

#[test]
fn a_circle_through_a_re_export_and_a_macro_is_found() {
    let folder = small_crate("use crate::a::A; pub const C: i32 = 1;");
    let told = told(&folder.path().join("lib.rs"));
    assert!(told.starts_with("2 files use each other"), "{told}");
    assert!(told.contains("super::b::C") && told.contains("crate::a::A"), "{told}");
}

#[test]
fn what_only_tests_use_is_no_arrow() {
    let folder = small_crate("pub const C: i32 = 1; #[cfg(test)] mod tests { use crate::a::A; }");
    assert_eq!(told(&folder.path().join("lib.rs")), "");
}

/// Returns the suites that the manifest of a crate names outside `[dev-dependencies]`.
fn suites_used(manifest: &str) -> Vec<String> {
    let manifest: toml::Table = manifest.parse().expect("a manifest");
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let tables = targets.into_iter().flatten().filter_map(|(_, target)| target.as_table());
    let tables = tables.chain([&manifest]);
    let named =
        tables.flat_map(|table| ["dependencies", "build-dependencies"].map(|name| table.get(name)));
    let names = named.flatten().filter_map(toml::Value::as_table).flat_map(toml::Table::keys);
    names.filter(|name| suites().contains(*name)).cloned().collect()
}

/// Returns the names of the packages in `verify`.
fn suites() -> Vec<String> {
    let name = |folder: &PathBuf| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
        let manifest: toml::Table = manifest.parse().expect("a manifest");
        Some(manifest["package"]["name"].as_str()?.to_owned())
    };
    entries(&project().join("verify")).iter().filter_map(name).collect()
}

#[test]
fn only_tests_use_the_suites_of_verify() {
    for folder in entries(&project().join("crates")) {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        assert_eq!(suites_used(&manifest), [""; 0], "{}", folder.display());
    }
    let wrong = "[target.'cfg(unix)'.dependencies]\npercid-skips = \"1\"";
    assert_eq!(suites_used(wrong), ["percid-skips"]);
    assert_eq!(suites_used("[dev-dependencies]\npercid-skips = \"1\""), [""; 0]);
}
