//! Says how Cargo's own shared library is linked, and compiles the C and C++ parts of `percid-bench-c`,
//! if that is wanted.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // It is made of its own functions, whichever are visible in the process, and stays loaded for
    // the life of the process, as threads keep pointers into it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    #[cfg(feature = "bench")]
    compile_loops();
}

/// For the benchmark alone: the library must not contain these objects.
#[cfg(feature = "bench")]
fn compile_loops() {
    const LOOPS: &str = "src/bin/percid-bench-c/loops.c";
    println!("cargo:rerun-if-changed={LOOPS}");
    println!("cargo:rerun-if-changed=include");
    for (way, cpp, definition) in
        [("c", false, "REFERENCES"), ("cpp", true, "INLINE"), ("called", false, "PERCID_NO_INLINE")]
    {
        let mut compiler = cc::Build::new();
        compiler.file(LOOPS).include("include").opt_level(2).debug(false).cpp(cpp);
        compiler.define("WAY", way).define(definition, None).warnings_into_errors(true);
        compiler.std(if cpp { "c++17" } else { "c11" }).cpp_link_stdlib(None);
        // A program without the C++ library.
        compiler.flag_if_supported("-fno-exceptions");
        let folder = std::env::var_os("OUT_DIR").map(std::path::PathBuf::from).unwrap_or_default();
        for object in compiler.out_dir(folder.join(way)).compile_intermediates() {
            println!("cargo:rustc-link-arg-bin=percid-bench-c={}", object.display());
        }
    }
}
