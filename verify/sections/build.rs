//! Compiles the sections that C programs have inline.

fn main() {
    const HEADERS: &str = "../../crates/percid-capi/include";
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/inline.c");
    println!("cargo:rerun-if-changed={HEADERS}");
    let mut compiler = cc::Build::new();
    compiler.file("src/inline.c").include(HEADERS).std("gnu11").opt_level(2).debug(false);
    compiler.compile("percid_sections_inline");
}
