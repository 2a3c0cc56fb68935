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
}

pub(crate) fn static_library(options: &Options) -> Result<Compiled, Failure> {
    let output = command(options).output().map_err(|error| format!("cannot run Cargo: {error}"))?;
    let diagnostics = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("Cargo could not build the library:\n{}", diagnostics.trim_end()));
    }
    let artifacts = String::from_utf8_lossy(&output.stdout);
    let archive = archive(&artifacts).ok_or("Cargo does not say where the library is")?;
    let native_libraries =
        native_libraries(&diagnostics).ok_or("rustc does not say what the library needs")?;
    Ok(Compiled { archive, native_libraries })
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

/// The library of the unwinder and the C library are left out: every C compiler adds them in the
/// form (shared or static) that fits.
fn native_libraries(diagnostics: &str) -> Option<Vec<String>> {
    let (_, rest) = diagnostics.split_once("native-static-libs: ")?;
    let list = rest.lines().next()?;
    let needed = list.split_whitespace().filter(|&one| one != "-lgcc_s" && one != "-lc");
    Some(needed.map(str::to_owned).collect())
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
        let expected = ["-lrt", "-lm"].map(str::to_owned).to_vec();
        let diagnostics = "warning: x\nnote: native-static-libs: -lgcc_s -lrt -lm -lc\n\n";
        assert_eq!(native_libraries(diagnostics), Some(expected));
        assert_eq!(native_libraries(""), None);
    }
}
