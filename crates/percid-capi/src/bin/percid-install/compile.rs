//! The Cargo step: the static library of this package, with everything it contains, and the
//! benchmark.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::options::Options;
use crate::product_names::BENCHMARK;

/// The output of Cargo.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The static library.
    pub(crate) archive: PathBuf,
    /// The system's libraries that it needs, as options of the linker.
    pub(crate) native_libraries: Vec<String>,
    /// A static library to include in percid's, because not every compiler has it.
    pub(crate) unwinder: Option<PathBuf>,
}

pub(crate) fn static_library(options: &Options) -> Result<Compiled, Failure> {
    let target_dir = options.target_dir.as_deref();
    let mut cargo = command("rustc", options, target_dir);
    cargo.args(["--lib", "--crate-type=staticlib", "--", "--print=native-static-libs"]);
    let (artifacts, diagnostics) = run(&mut cargo, "the library")?;
    let archive = artifact(&artifacts, "/libpercid_capi.a")
        .ok_or("Cargo does not say where the library is")?;
    let needed = needed(&diagnostics).ok_or("rustc does not say what the library needs")?;
    let unwinder = needed.contains(&"-lunwind").then(|| unwinder(options)).transpose()?;
    let mut native_libraries = not_added_by_compilers(&needed);
    if unwinder.is_some() {
        // The unwinder finds its tables by this header, which musl-gcc does not request from the
        // linker.
        native_libraries.push("-Wl,--eh-frame-hdr".to_owned());
    }
    Ok(Compiled { archive, native_libraries, unwinder })
}

/// Returns the path of LLVM's unwinder, which Rust supplies for musl. The unwinder of gcc may be
/// built for glibc (Debian's musl-gcc), so percid includes its own, which only its own panics use.
fn unwinder(options: &Options) -> Result<PathBuf, Failure> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(env!("CARGO_MANIFEST_DIR")).args(["--print", "target-libdir"]);
    rustc.args(options.target.iter().flat_map(|target| ["--target", target]));
    let output = rustc.output().map_err(|error| format!("cannot run rustc: {error}"))?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let library = folder.join("self-contained/libunwind.a");
    match library.is_file() {
        true => Ok(library),
        false => Err(format!("rustc has no unwinder for this target: no {}", library.display())),
    }
}

/// Builds the benchmark. It contains a copy of the library with pretended NUMA nodes, so Cargo uses
/// a separate folder next to the library: in one folder the two would have the same name.
pub(crate) fn benchmark(options: &Options, compiled: &Compiled) -> Result<PathBuf, Failure> {
    let target_dir = compiled.archive.with_file_name("percid-install-bench");
    let mut cargo = command("build", options, Some(&target_dir));
    cargo.args(["--bin", BENCHMARK, "--features", "bench"]);
    let (artifacts, _) = run(&mut cargo, BENCHMARK)?;
    let path = artifact(&artifacts, &format!("/{BENCHMARK}"));
    path.ok_or_else(|| format!("Cargo does not say where {BENCHMARK} is"))
}

/// Runs Cargo. Returns its standard output and standard error.
fn run(cargo: &mut Command, what: &str) -> Result<(String, String), Failure> {
    let output = cargo.output().map_err(|error| format!("cannot run Cargo: {error}"))?;
    let diagnostics = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => Ok((String::from_utf8_lossy(&output.stdout).into_owned(), diagnostics)),
        false => Err(format!("Cargo could not build {what}:\n{}", diagnostics.trim_end())),
    }
}

fn command(task: &str, options: &Options, target_dir: Option<&Path>) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args([task, "--package", env!("CARGO_PKG_NAME")]);
    cargo.args(["--message-format=json-render-diagnostics", "--quiet"]);
    cargo.env("CARGO_TERM_COLOR", "never");
    cargo.args(["--profile", &options.profile]);
    cargo.args(&options.cargo_flags);
    cargo.args(options.target.iter().flat_map(|target| ["--target", target]));
    if let Some(folder) = target_dir {
        let absolute = std::path::absolute(folder);
        cargo.arg("--target-dir").arg(absolute.as_deref().unwrap_or(folder));
    }
    cargo
}

/// Returns the path of an artifact. Cargo's artifacts are one JSON object per line; the path
/// contains nothing that JSON escapes.
fn artifact(artifacts: &str, end: &str) -> Option<PathBuf> {
    let strings = artifacts.lines().filter(|line| line.contains("\"compiler-artifact\""));
    let mut strings = strings.flat_map(|line| line.split('"'));
    strings.find(|string| string.ends_with(end)).map(PathBuf::from)
}

/// Returns the libraries that the library needs, as rustc reports them.
fn needed(diagnostics: &str) -> Option<Vec<&str>> {
    let (_, rest) = diagnostics.split_once("native-static-libs: ")?;
    Some(rest.lines().next()?.split_whitespace().collect())
}

/// Removes the unwinder and the C library: every C compiler adds its own in the right form (shared
/// or static).
fn not_added_by_compilers(needed: &[&str]) -> Vec<String> {
    let added = ["-lgcc_s", "-lunwind", "-lc"];
    needed.iter().filter(|one| !added.contains(one)).map(|&one| one.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARTIFACTS: &str = r#"{"reason":"compiler-artifact","filenames":["/t/release/deps/libpercid-1.rlib"]}
{"reason":"compiler-artifact","filenames":["/t/release/libpercid_capi.a"],"executable":null}
"#;

    #[test]
    fn cargos_artifacts_are_understood() {
        let archive = PathBuf::from("/t/release/libpercid_capi.a");
        assert_eq!(artifact(ARTIFACTS, "/libpercid_capi.a"), Some(archive));
        assert_eq!(artifact("", "/libpercid_capi.a"), None);
    }

    #[test]
    fn the_unwinder_is_left_to_the_c_compiler() {
        let diagnostics = "warning: x\nnote: native-static-libs: -lgcc_s -lrt -lm -lc\n\n";
        let needed = needed(diagnostics).expect("a list");
        assert_eq!(needed, ["-lgcc_s", "-lrt", "-lm", "-lc"]);
        assert_eq!(not_added_by_compilers(&needed), ["-lrt", "-lm"]);
        assert!(not_added_by_compilers(&["-lunwind", "-lc"]).is_empty());
        assert_eq!(super::needed(""), None);
    }
}
