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
    let generated = String::from_utf8(generated).expect("text");
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
