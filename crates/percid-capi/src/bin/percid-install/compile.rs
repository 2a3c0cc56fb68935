//! Cargo's part: the static library of this package, with everything it contains.

use std::path::PathBuf;
use std::process::Command;

use crate::Failure;
use crate::options::Options;

/// What Cargo has made.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The static library.
    pub(crate) archive: PathBuf,
    /// The system's libraries that it needs, as options of the linker.
    pub(crate) native_libraries: Vec<String>,
    /// A static library to be put into percid's, as no compiler can be relied on to have it.
    pub(crate) unwinder: Option<PathBuf>,
}

pub(crate) fn static_library(options: &Options) -> Result<Compiled, Failure> {
    let output = command(options).output().map_err(|error| format!("cannot run Cargo: {error}"))?;
    let diagnostics = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("Cargo could not build the library:\n{}", diagnostics.trim_end()));
    }
    let artifacts = String::from_utf8_lossy(&output.stdout);
    let archive = archive(&artifacts).ok_or("Cargo does not say where the library is")?;
    let needed = needed(&diagnostics).ok_or("rustc does not say what the library needs")?;
    let unwinder = needed.contains(&"-lunwind").then(|| unwinder(options)).transpose()?;
    let mut native_libraries = not_added_by_compilers(&needed);
    if unwinder.is_some() {
        // It finds what it unwinds by this table, which musl-gcc does not ask the linker for.
        native_libraries.push("-Wl,--eh-frame-hdr".to_owned());
    }
    Ok(Compiled { archive, native_libraries, unwinder })
}

/// For musl, Rust brings an unwinder, LLVM's. That of gcc may be one for glibc (Debian's musl-gcc),
/// so percid has its own, which only its own panics ever use.
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

fn command(options: &Options) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args(["rustc", "--package", env!("CARGO_PKG_NAME"), "--lib", "--crate-type=staticlib"]);
    cargo.args(["--message-format=json-render-diagnostics", "--quiet"]);
    cargo.env("CARGO_TERM_COLOR", "never");
    cargo.args(["--profile", &options.profile]);
    cargo.args(&options.cargo_flags);
    cargo.args(options.target.iter().flat_map(|target| ["--target", target]));
    if let Some(folder) = &options.target_dir {
        cargo.arg("--target-dir").arg(std::path::absolute(folder).as_ref().unwrap_or(folder));
    }
    cargo.args(["--", "--print=native-static-libs"]);
    cargo
}

/// Cargo's artifacts are one JSON object per line; what is looked for contains nothing that JSON
/// escapes.
fn archive(artifacts: &str) -> Option<PathBuf> {
    let strings = artifacts.lines().filter(|line| line.contains("\"compiler-artifact\""));
    let mut strings = strings.flat_map(|line| line.split('"'));
    strings.find(|string| string.ends_with("/libpercid_capi.a")).map(PathBuf::from)
}

/// What rustc says that the library needs.
fn needed(diagnostics: &str) -> Option<Vec<&str>> {
    let (_, rest) = diagnostics.split_once("native-static-libs: ")?;
    Some(rest.lines().next()?.split_whitespace().collect())
}

/// Without the library of the unwinder and the C library: every C compiler adds its own in the form
/// (shared or static) that fits.
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
        assert_eq!(archive(ARTIFACTS), Some(PathBuf::from("/t/release/libpercid_capi.a")));
        assert_eq!(archive(""), None);
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
