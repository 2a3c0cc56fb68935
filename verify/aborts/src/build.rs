//! Building the subject and the probes, in the ways in which programs are built.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kind of program that is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// The program that is interrupted.
    Subject,
    /// A program that uses every structure.
    Probe,
    /// A shared library that uses every structure.
    Library,
}

/// One way of building.
#[derive(Debug, Clone, Copy)]
pub struct Build {
    /// Name for output, and of the folder that it is built in.
    pub name: &'static str,
    /// The kind of program that is built.
    pub product: Product,
    /// `true` if it is optimised.
    release: bool,
    /// Configuration of this build alone, as Cargo's `--config` takes it.
    config: &'static [&'static str],
    target: Option<&'static str>,
    flags: &'static str,
}

const GNU: &str = "x86_64-unknown-linux-gnu";
const MUSL: &str = "x86_64-unknown-linux-musl";

/// The program that is interrupted: optimised, as users get percid.
pub const SUBJECT: Build =
    Build { product: Product::Subject, ..Build::release("subject", &[], None, "") };

/// The same as on an architecture without critical sections. It is only looked at.
pub const PORTABLE: Build = Build { name: "portable", flags: "--cfg percid_portable", ..SUBJECT };

/// The builds whose descriptors are checked.
pub const PROBES: [Build; 7] = [
    // The workspace optimises percid even in debug builds; here nothing may be optimised.
    Build {
        release: false,
        ..Build::release("debug", &["profile.dev.package.percid.opt-level=0"], None, "")
    },
    Build::release("release", &[], None, ""),
    Build::release(
        "fat-lto",
        &["profile.release.lto='fat'", "profile.release.codegen-units=1"],
        None,
        "",
    ),
    Build::release("static-pie", &[], Some(GNU), "-Ctarget-feature=+crt-static"),
    Build::release(
        "static",
        &[],
        Some(GNU),
        "-Ctarget-feature=+crt-static -Crelocation-model=static",
    ),
    Build::release("musl", &[], Some(MUSL), ""),
    Build { product: Product::Library, ..Build::release("cdylib", &[], None, "") },
];

impl Build {
    const fn release(
        name: &'static str,
        config: &'static [&'static str],
        target: Option<&'static str>,
        flags: &'static str,
    ) -> Build {
        Build { name, product: Product::Probe, release: true, config, target, flags }
    }

    /// Returns `true` if the toolchain has the target's standard library.
    pub fn is_possible(&self) -> bool {
        let Some(target) = self.target else { return true };
        let print = ["--print", "target-libdir", "--target", target];
        let output = Command::new(tool("RUSTC", "rustc")).args(print).output();
        let path = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        path.is_ok_and(|path| !path.is_empty() && Path::new(&path).is_dir())
    }

    /// Builds it and returns the path of the result.
    ///
    /// # Errors
    ///
    /// Returns the output of Cargo if it fails.
    pub fn make(&self) -> Result<PathBuf, String> {
        let folder = target_folder()?.join("aborts").join(self.name);
        let output = self
            .command(&folder)
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| format!("cargo: {error}"))?;
        if !output.status.success() {
            let messages = String::from_utf8_lossy(&output.stderr);
            return Err(format!("the build {:?} failed:\n{messages}", self.name));
        }
        let profile = if self.release { "release" } else { "debug" };
        let folder = folder.join(self.target.unwrap_or("")).join(profile);
        Ok(folder.join(match self.product {
            Product::Subject => "percid-subject",
            Product::Probe => "percid-probe",
            Product::Library => "examples/libpercid_probe.so",
        }))
    }

    fn command(&self, folder: &Path) -> Command {
        let mut cargo = Command::new(tool("CARGO", "cargo"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        cargo.args(["build", "--quiet", "--package", "percid-subject"]);
        cargo.args(match self.product {
            Product::Subject => ["--bin=percid-subject", "--features=subject"].as_slice(),
            Product::Probe => &["--bin=percid-probe"],
            Product::Library => &["--example=percid_probe"],
        });
        cargo.args(self.release.then_some("--release"));
        cargo.args(self.target.map(|target| format!("--target={target}")));
        cargo.args(self.config.iter().flat_map(|line| ["--config", line]));
        cargo.arg("--target-dir").arg(folder);
        // The caller's flags must not mix with those that make the difference here.
        cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", self.flags);
        cargo
    }
}

fn tool(variable: &str, name: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| name.to_owned())
}

/// Returns Cargo's folder that contains the running program: the one with Cargo's notes about the
/// compiler. (Its other mark, the tag of a cache, is missing if another program made the folder.)
fn target_folder() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = program.ancestors().find(|folder| folder.join(".rustc_info.json").exists());
    folder.map(Path::to_owned).ok_or_else(|| "not run from Cargo's target folder".to_owned())
}

/// Returns the compiler's version, and the major version of its LLVM.
///
/// # Errors
///
/// Returns an error if the compiler's output does not contain them.
pub fn toolchain() -> Result<(String, u32), String> {
    let output = Command::new(tool("RUSTC", "rustc")).arg("-vV").output();
    let output = output.map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let llvm = value("LLVM version:").and_then(|version| version.split('.').next()?.parse().ok());
    let release = value("release:").map(str::to_owned);
    release.zip(llvm).ok_or_else(|| format!("rustc -vV says {text:?}"))
}
