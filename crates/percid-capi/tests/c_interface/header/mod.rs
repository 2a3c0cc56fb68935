//! Checks that the files generated from the declarations are up to date: the header, the table's
//! header, and the list of the shared library's exports.

pub(crate) mod declaration;

use std::path::{Path, PathBuf};

use percid_capi::interface::{
    CAPACITY, COMMON_CASE_INLINE, FIRST_RELEASE_FUNCTIONS, FUNCTIONS, INLINED,
};

use declaration::Declaration;

/// Environment variable to write the files instead of comparing them.
const WRITE: &str = "PERCID_WRITE_HEADER";

/// The text of `percid_interface.h`, without the parts that are generated from the declarations.
const TEMPLATE: &str = include_str!("percid_interface.h");

const MAP: &str = "\
/* What the shared library exports, and the version it was introduced with. A name is never taken back, and its
 * meaning stays: what is new in a later version goes into a node of its own (PERCID_2 { ... } PERCID_1;). Headers
 * refer to percid_interface_1 alone; the rest is for other languages, and for dlsym(). Generated, as percid.h is. */
PERCID_1 {
    global:
        percid_interface_1;
@NAMES@
    local:
        *;
};
";

#[test]
fn the_header_is_what_the_declarations_say() {
    must_be("include/percid.h", &header());
}

#[test]
fn the_tables_header_is_what_the_declarations_say() {
    must_be("include/percid_interface.h", &table(&declarations(), FIRST_RELEASE_FUNCTIONS));
}

#[test]
fn the_list_of_exports_is_what_the_table_says() {
    let mut names = [FUNCTIONS, INLINED].concat();
    names.sort_unstable();
    let lines: Vec<_> = names.iter().map(|name| format!("        {name};")).collect();
    must_be("percid.map", &MAP.replace("@NAMES@", &lines.join("\n")));
}

/// Compares a file of this crate with the generated text, or writes it if requested.
pub(crate) fn must_be(file: &str, generated: &str) {
    let path = root().join(file);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, generated).expect("a writable file");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let same = generated.lines().zip(written.lines()).take_while(|(new, old)| new == old).count();
    assert!(
        generated == written,
        "{file} is out of date from line {} on: run the tests with {WRITE}=1",
        same + 1
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Returns the text of `percid.h`.
fn header() -> String {
    let config =
        cbindgen::Config::from_file(root().join("cbindgen.toml")).expect("the configuration");
    let bindings = cbindgen::generate_with_config(root(), config).expect("declarations for C");
    let mut generated = Vec::new();
    bindings.write(&mut generated);
    let text = without_safety_sections(&String::from_utf8(generated).expect("text"));
    let text = text
        .replace("@MAJOR@", env!("CARGO_PKG_VERSION_MAJOR"))
        .replace("@MINOR@", env!("CARGO_PKG_VERSION_MINOR"))
        .replace("@PATCH@", env!("CARGO_PKG_VERSION_PATCH"));
    declaration::with_promises(&text)
}

/// Returns the declarations of `percid.h`, in the order of the table.
pub(crate) fn declarations() -> Vec<Declaration> {
    let mut declared = declaration::all(&header());
    let place = |one: &Declaration| FUNCTIONS.iter().position(|name| *name == one.name);
    let unknown = declared.iter().find(|one| place(one).is_none());
    assert_eq!(unknown, None, "it has no place in the table (src/interface.rs)");
    declared.sort_by_key(|one| place(one));
    let names: Vec<_> = declared.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, FUNCTIONS, "the table has a function that no header declares");
    declared
}

/// Returns the text of `percid_interface.h` for these functions. Those from `first` on belong to a
/// later release of the interface than its first.
pub(crate) fn table(functions: &[Declaration], first: usize) -> String {
    let members: Vec<_> = functions.iter().map(Declaration::member).collect();
    let (early, late) = functions.split_at(first);
    // The others are in `percid_inline.h`.
    let is_here = |one: &&Declaration| !COMMON_CASE_INLINE.contains(&one.name.as_str());
    let definitions = early.iter().filter(is_here).map(Declaration::definition);
    let definitions = definitions.chain(late.iter().map(Declaration::careful_definition));
    TEMPLATE
        .replace("@MEMBERS@", &members.join("\n"))
        .replace("@LATER@", &(CAPACITY - functions.len()).to_string())
        .replace("@FUNCTIONS@", &definitions.collect::<Vec<_>>().join("\n"))
}

/// Removes the safety sections. They are for Rust: the header's introduction has the same rules for
/// all functions.
fn without_safety_sections(header: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in header.lines() {
        if line == " * # Safety" {
            inside = true;
            // The empty line before it.
            assert_eq!(kept.pop(), Some(" *"));
        }
        inside &= line != " */";
        if !inside {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}
