//! Programs for the guest: built statically, because the guest has no libraries, and queried for
//! their list of names.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::platform::Arch;
use crate::protocol::Job;
use crate::tool;

/// A binary of the workspace that can be built for the guest.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its package's manifest.
    pub manifest: PathBuf,
    /// The binary's name.
    pub binary: &'static str,
    /// Cargo's options for its features.
    features: &'static [&'static str],
}

impl Source {
    /// Makes a binary of the package with this manifest.
    pub fn of(manifest: PathBuf, binary: &'static str) -> Self {
        Self { manifest, binary, features: &[] }
    }

    /// Returns the source of the first process of the guest.
    pub fn init() -> Self {
        Self::own("percid-vm-init")
    }

    /// Returns the source of the programs that test the harness.
    pub fn fixtures() -> Self {
        Self::own("percid-vm-fixtures")
    }

    /// Returns the source of a binary of this package, without the harness itself, which is not for
    /// the guest.
    fn own(binary: &'static str) -> Self {
        let features = &["--no-default-features"];
        Self { manifest: own_directory().join("Cargo.toml"), binary, features }
    }

    /// Returns the source of the programs that test percid.
    pub fn programs() -> Self {
        Self::of(own_directory().join("../programs/Cargo.toml"), "percid-programs")
    }

    /// Returns the source of the programs that test recordings.
    pub fn traces() -> Self {
        Self::of(own_directory().join("../traces/Cargo.toml"), "percid-trace-programs")
    }

    /// Builds the binary for machines of `arch`, optimised and without need of any library.
    pub fn build(&self, cache: &Cache, arch: Arch) -> Result<PathBuf> {
        let target = arch.target();
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["build", "--release", "--bin", self.binary])
            .args(self.features)
            .args(["--target", &target])
            .arg("--manifest-path")
            .arg(&self.manifest)
            .arg("--target-dir")
            .arg(cache.guest())
            // Exactly these flags: those of the host's build (measuring coverage, for example) do
            // not apply to the guest.
            .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static");
        if arch.name() != env::consts::ARCH {
            let linker = arch.cross_linker();
            linker.demand()?;
            let target = target.replace('-', "_").to_uppercase();
            command.env(format!("CARGO_TARGET_{target}_LINKER"), linker.name);
        }
        let task = format!("build {} for {}", self.binary, arch.debian());
        tool::output_of(&mut command, &task)?;
        let binary = cache.guest().join(target).join("release").join(self.binary);
        demand_static(&binary)?;
        Ok(binary)
    }
}

fn own_directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the architecture of the program `path`. Returns an error if it is none or needs a
/// dynamic linker, which in the guest would only show as "no such file".
pub fn demand_static(path: &Path) -> Result<Arch> {
    let bytes = fs::read(path).map_err(Error::file("read", path))?;
    let bad = |expected| Error::BadImage { path: path.to_path_buf(), expected };
    match interpreter(&bytes).zip(machine(&bytes)) {
        Some((false, arch)) => Ok(arch),
        Some((true, _)) => {
            Err(bad("a static program (build it with -C target-feature=+crt-static)"))
        }
        None => Err(bad("a 64-bit ELF program of x86-64, Arm or RISC-V")),
    }
}

/// Returns the architecture of an ELF file; `None` if it is not an ELF file, or for another
/// architecture.
fn machine(elf: &[u8]) -> Option<Arch> {
    match elf.get(0x12..0x14)? {
        [62, 0] => Some(Arch::X86_64),
        [183, 0] => Some(Arch::Aarch64),
        [243, 0] => Some(Arch::Riscv64),
        _ => None,
    }
}

/// Returns `true` if an ELF file requests an interpreter; `None` if it is not an ELF file.
fn interpreter(elf: &[u8]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let half = |at: usize| Some(u16::from_le_bytes(elf.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(elf.get(at..at + 4)?.try_into().ok()?));
    let table = word(0x20)? as usize;
    let size = usize::from(half(0x36)?);
    let count = usize::from(half(0x38)?);
    for index in 0..count {
        if word(table.checked_add(index * size)?)? == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}

/// One entry of the list of programs that the guest's binary prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The command to run, in the form of [`Job`].
    pub command: String,
    /// The time limit, if the entry has one.
    pub limit: Option<Duration>,
    /// Traits that a machine must have to run it.
    pub on: Vec<String>,
    /// A description, for people.
    pub about: String,
}

impl Entry {
    /// Requests the list of programs from `binary`: with the single argument `--list` it prints a
    /// line for each one that is run by default, `[limit=SECONDS] [on=TRAIT]… [NAME=VALUE …]
    /// program [argument …] [# about]`.
    pub fn list(binary: &Path) -> Result<Vec<Self>> {
        let mut command = Command::new(binary);
        let output = tool::output_of(command.arg("--list"), "list the guest's programs")?;
        let text = String::from_utf8_lossy(&output);
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(Self::parse).collect()
    }

    /// Makes an entry for `command`, which no list contains.
    pub fn of(command: &str, limit: Duration) -> Result<Self> {
        let entry = Self::parse(command)?;
        Ok(Self { limit: entry.limit.or(Some(limit)), ..entry })
    }

    /// Returns the job of this entry, with the limit `default` if it has none itself.
    pub fn job(&self, default: Duration) -> Result<Job> {
        let job = Job::new(&self.command, self.limit.unwrap_or(default));
        job.ok_or_else(|| self.bad("a program's name"))
    }

    fn parse(line: &str) -> Result<Self> {
        let (words, about) = line.split_once('#').unwrap_or((line, ""));
        let words = words.trim();
        let mut entry = Self {
            command: words.to_owned(),
            limit: None,
            on: Vec::new(),
            about: about.trim().to_owned(),
        };
        loop {
            let (first, rest) = entry.command.split_once(' ').unwrap_or((&entry.command, ""));
            if let Some(seconds) = first.strip_prefix("limit=") {
                let seconds = seconds.parse().map_err(|_| entry.bad("limit=SECONDS"))?;
                entry.limit = Some(Duration::from_secs(seconds));
            } else if let Some(wanted) = first.strip_prefix("on=") {
                entry.on.push(wanted.to_owned());
            } else {
                break;
            }
            entry.command = rest.trim().to_owned();
        }
        // Report an invalid command now, not when it is needed.
        entry.job(Duration::ZERO)?;
        Ok(entry)
    }

    fn bad(&self, expected: &'static str) -> Error {
        Error::BadProgramList { line: self.command.clone(), expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_list_has_a_limit_a_command_and_a_text() {
        let entry = Entry::parse("limit=90 on=multi A=1 sums --threads 3  # exact sums");
        let entry = entry.expect("good");
        assert_eq!(entry.on, ["multi"]);
        assert_eq!(entry.command, "A=1 sums --threads 3");
        assert_eq!(entry.limit, Some(Duration::from_secs(90)));
        assert_eq!(entry.about, "exact sums");
        let entry = Entry::parse("density").expect("good");
        assert_eq!((entry.limit, entry.about.as_str()), (None, ""));
        let job = entry.job(Duration::from_secs(5)).expect("good");
        assert_eq!((job.program(), job.limit()), ("density", Duration::from_secs(5)));
    }

    #[test]
    fn bad_lines_are_refused() {
        for line in ["limit=soon sums", "limit=3", "A=1", "# sums"] {
            let error = Entry::parse(line).expect_err(line).to_string();
            assert!(error.contains("expected"), "{error}");
        }
    }

    #[test]
    fn a_dynamic_program_is_refused() {
        let shell = Path::new("/bin/sh");
        let error = demand_static(shell).expect_err("the shell is dynamic");
        assert!(error.to_string().contains("expected a static program"));
        let text = own_directory().join("Cargo.toml");
        let error = demand_static(&text).expect_err("a text is no program");
        assert!(error.to_string().contains("64-bit ELF"));
    }

    #[test]
    fn a_truncated_program_is_no_reason_to_panic() {
        let shell = fs::read("/bin/sh").expect("there is a shell");
        for len in 0..200 {
            let _ = interpreter(&shell[..len]);
        }
    }
}
