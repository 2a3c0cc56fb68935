//! `percid.cppm`, the wrapper as a module of C++20.

use std::collections::BTreeSet;
use std::process::Command;

use crate::installation::shared;
use crate::toolchain::{Build, WARNINGS, output_of, scratch};

/// First version of clang that finds the names that a module exports by `using`. gcc does from 15
/// on (which builds modules in another way).
const FIRST: u32 = 16;

/// Internal names of the header.
const INSIDES: [&str; 6] =
    ["basic_stack", "basic_pool", "basic_local", "basic_ring", "basic_mask", "basic_per_id"];

#[test]
fn the_module_exports_what_the_header_declares() {
    let header = include_str!("../../include/percid.hpp");
    let module = include_str!("../../include/percid.cppm");
    let exported = module.lines().filter_map(|line| line.strip_prefix("using ")?.strip_suffix(';'));
    let exported: BTreeSet<_> = exported.map(str::to_owned).collect();
    let declared = declared(header);
    assert!(declared.contains("percid::numa::balancer") && declared.contains("percid::unbounded"));
    assert_eq!(exported, declared);
}

/// Returns the names that are declared in the public namespaces.
fn declared(header: &str) -> BTreeSet<String> {
    let mut space = None;
    let mut names = BTreeSet::new();
    for line in header.lines() {
        if let Some(opened) = line.strip_prefix("namespace ") {
            space = match opened {
                "percid {" => Some("percid"),
                "numa {" => Some("percid::numa"),
                _ => None,
            };
        } else if line.starts_with("} // namespace") {
            space = Some("percid");
        } else if let (Some(space), Some(name)) = (space, name(line)) {
            if !INSIDES.contains(&name) {
                names.insert(format!("{space}::{name}"));
            }
        }
    }
    names
}

/// Returns the name that a line declares.
fn name(line: &str) -> Option<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let first = |text: &'static str| line.strip_prefix(text)?.split(|c| !is_name(c)).next();
    let kinds = ["enum class ", "class ", "struct ", "using "];
    kinds.into_iter().find_map(first).or_else(|| {
        let (_, declaration) = line.split_once("PERCID_HIDDEN inline ")?;
        let end = declaration.find(" =").or_else(|| declaration.find('('))?;
        declaration[..end].rsplit(|c| !is_name(c)).next()
    })
}

#[test]
fn programs_may_import_it() {
    let Some(compiler) = compiler() else {
        let why = format!("clang {FIRST} or later is not installed");
        return percid_skips::not_checked("the module of C++", &why);
    };
    let source = shared().prefix.join("include/percid.cppm");
    let [compiled, object] = ["percid.pcm", "percid.o"].map(|name| scratch("module").join(name));
    let [source, compiled, object] =
        [&source, &compiled, &object].map(|path| path.to_str().expect("in UTF-8"));
    let dialect = "-std=c++20";
    output_of(&compiler, &[dialect, "--precompile", source, "-o", compiled]);
    let options = format!("{dialect} -O2 {WARNINGS} -fmodule-file=percid={compiled}");
    output_of(&compiler, &[dialect, "-O2", "-c", compiled, "-o", object]);
    let build = Build::new(&compiler, &["module.cpp"], &options).arguments(&[object]);
    build.against(shared()).make().must_pass_with_every_source();
}

/// Returns a recent clang, with or without the version in its name.
fn compiler() -> Option<String> {
    let plain = std::iter::once("clang++".to_owned());
    let names = plain.chain((FIRST..FIRST + 16).map(|version| format!("clang++-{version}")));
    names.into_iter().find(|name| version(name).is_some_and(|version| version >= FIRST))
}

fn version(compiler: &str) -> Option<u32> {
    let output = Command::new(compiler).arg("-dumpversion").output().ok()?;
    String::from_utf8_lossy(&output.stdout).split('.').next()?.trim().parse().ok()
}
