//! Says how Cargo's own shared library is linked, and compiles the C half of `percid-inline-bench`,
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

/// For the benchmark alone: the library must not contain this object.
#[cfg(feature = "bench")]
fn compile_loops() {
    const LOOPS: &str = "src/bin/percid-inline-bench/loops.c";
    println!("cargo:rerun-if-changed={LOOPS}");
    println!("cargo:rerun-if-changed=include");
    let mut compiler = cc::Build::new();
    compiler.file(LOOPS).include("include").std("c11").opt_level(2).debug(false);
    for object in compiler.warnings_into_errors(true).compile_intermediates() {
        println!("cargo:rustc-link-arg-bin=percid-inline-bench={}", object.display());
    }
}
