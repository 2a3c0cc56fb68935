//! Passes the linker options of Cargo's own shared library, and compiles the C and C++ parts of
//! `percid-bench-c` if the feature is enabled.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The library binds its own functions to itself, whichever others are visible in the process.
    // It stays loaded for the life of the process, because threads keep pointers into it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    #[cfg(feature = "bench")]
    compile_loops();
}

/// Compiles the loops for the benchmark only: the library must not contain these objects.
#[cfg(feature = "bench")]
fn compile_loops() {
    compile_librseq();
    compile_liburcu();
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
        // A program that is not linked with the C++ library.
        compiler.flag_if_supported("-fno-exceptions");
        let folder = std::env::var_os("OUT_DIR").map(std::path::PathBuf::from).unwrap_or_default();
        for object in compiler.out_dir(folder.join(way)).compile_intermediates() {
            println!("cargo:rustc-link-arg-bin=percid-bench-c={}", object.display());
        }
    }
}

/// Compiles librseq and its loops, if `PERCID_LIBRSEQ` names a folder with its sources.
#[cfg(feature = "bench")]
fn compile_librseq() {
    const LOOPS: &str = "src/bin/percid-bench-c/librseq.c";
    println!("cargo:rerun-if-changed={LOOPS}");
    println!("cargo:rerun-if-env-changed=PERCID_LIBRSEQ");
    println!("cargo:rustc-check-cfg=cfg(librseq)");
    let Some(folder) = std::env::var_os("PERCID_LIBRSEQ").map(std::path::PathBuf::from) else {
        return;
    };
    println!("cargo:rustc-cfg=librseq");
    let mut compiler = cc::Build::new();
    compiler.std("gnu11").opt_level(2).debug(false).define("_GNU_SOURCE", None).warnings(false);
    compiler.include(folder.join("include")).include(folder.join("src"));
    compiler.file(LOOPS);
    for source in ["rseq.c", "rseq-mempool.c", "smp.c"] {
        compiler.file(folder.join("src").join(source));
    }
    for object in compiler.compile_intermediates() {
        println!("cargo:rustc-link-arg-bin=percid-bench-c={}", object.display());
    }
}

/// Compiles the loops of liburcu, if `PERCID_LIBURCU` is set. The system has its headers and libraries.
#[cfg(feature = "bench")]
fn compile_liburcu() {
    const LOOPS: &str = "src/bin/percid-bench-c/liburcu.c";
    println!("cargo:rerun-if-changed={LOOPS}");
    println!("cargo:rerun-if-env-changed=PERCID_LIBURCU");
    println!("cargo:rustc-check-cfg=cfg(liburcu)");
    if std::env::var_os("PERCID_LIBURCU").is_none() {
        return;
    }
    println!("cargo:rustc-cfg=liburcu");
    let mut compiler = cc::Build::new();
    compiler.std("gnu11").opt_level(2).debug(false).file(LOOPS);
    let objects = compiler.compile_intermediates();
    let objects = objects.iter().map(|object| object.display().to_string());
    for argument in objects.chain(["-lurcu-memb", "-lurcu-bp"].map(str::to_owned)) {
        println!("cargo:rustc-link-arg-bin=percid-bench-c={argument}");
    }
}
