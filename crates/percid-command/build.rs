//! Tells `--version` the target, and the commit where this is percid's own repository: not in a crate's
//! archive or a release's, which so give the same program wherever they are unpacked.

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

/// An archive may lie unpacked inside of some other repository.
fn is_tracked() -> bool {
    git(&["ls-files", "--error-unmatch", "build.rs"]).is_some()
}

/// The log has a line for whatever changed which commit that is. Where none is kept, `HEAD` tells of
/// some. A file that is missing would make Cargo run this each time.
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
