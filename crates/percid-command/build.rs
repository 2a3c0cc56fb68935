//! Passes the target to `--version`, and the commit if this is percid's own repository. In a
//! crate's or a release's archive there is no commit, so these yield the same program wherever they
//! are unpacked.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").expect("Cargo names the target");
    println!("cargo::rustc-env=PERCID_TARGET={target}");
    if is_tracked() {
        rerun_at_the_next_commit();
        if let Some(commit) = git(&["rev-parse", "HEAD"]) {
            println!("cargo::rustc-env=PERCID_COMMIT={commit}");
        }
    }
}

/// Returns `true` if git tracks this file. An archive may be unpacked inside another repository.
fn is_tracked() -> bool {
    git(&["ls-files", "--error-unmatch", "build.rs"]).is_some()
}

/// Reruns this script when the commit changes. The log has a line for every such change; if no log
/// is kept, `HEAD` covers some changes. Cargo would run the script each time for a missing file.
fn rerun_at_the_next_commit() {
    for name in ["logs/HEAD", "HEAD"] {
        let Some(path) = git(&["rev-parse", "--git-path", name]) else { continue };
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}
