//! The header is what the declarations say.

use std::path::Path;

/// Set to write the header instead of comparing it.
const WRITE: &str = "PERCID_WRITE_HEADER";

#[test]
fn the_header_is_what_the_declarations_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("include/percid.h");
    let config =
        cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("the configuration");
    let bindings = cbindgen::generate_with_config(root, config).expect("declarations for C");
    let mut generated = Vec::new();
    bindings.write(&mut generated);
    let generated = without_safety_sections(&String::from_utf8(generated).expect("text"));
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &generated).expect("a writable header");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let same = generated.lines().zip(written.lines()).take_while(|(new, old)| new == old).count();
    assert!(
        generated == written,
        "include/percid.h is out of date from line {} on: run the tests with {WRITE}=1",
        same + 1
    );
}

/// They are for Rust: what they say the header's introduction says for all functions.
fn without_safety_sections(header: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut inside = false;
    for line in header.lines() {
        if line == " * # Safety" {
            inside = true;
            // The empty line in front of it.
            assert_eq!(kept.pop(), Some(" *"));
        }
        inside &= line != " */";
        if !inside {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}
