//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use crate::error::Error;
use percid_race_guest::{Ids, Way};
use percid_vm::platform::{Arch, Platform, Series};

/// Shown by `--help`.
pub const HELP: &str = "\
Shows on stock kernels under QEMU's software emulation that Linux 6.4 to 6.18
can give one mm_cid to two running threads, and that percid's table loses
nothing where the kernel's IDs lose increments.

usage: percid-kernel-race [options]

  --kernel SERIES,… stock kernels, of those in verify/vm/kernels.txt (6.12,6.18)
  --image FILE,…    kernels of your own instead: bzImage or vmlinux
  --way WAY,…       held: a virtual CPU is held inside a migration;
                    preempted: a timer interrupt inside a scan lets a
                    real-time thread preempt it there (held,preempted)
  --ids IDS,…       what percid uses: kernel, table, chosen (all three);
                    chosen is its own choice, with PERCID_SOURCE not set
  --runs N          rounds of each kind (10)
  --controls N      rounds of each kind in which no CPU is stopped (2)
  --unaided SECONDS instead of all that: look for a duplicate without any help,
                    by scheduling, affinity and real-time threads only
  --json            one JSON document on standard output
  --verbose         every line of the guest, on standard error
  --help            this text

With --unaided each of --ids has one round, and --runs and --controls mean nothing.

Exit status: 0 if every row is as it should be (the kernel's IDs lose, the
others lose nothing though there were duplicates, controls show nothing), 1 if
one is not, 2 if there is no result.
";

/// The options of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Kernels by name.
    pub kernels: Vec<Platform>,
    /// Kernels by file, instead of those.
    pub images: Vec<PathBuf>,
    /// The ways to the race.
    pub ways: Vec<Way>,
    /// The IDs that percid uses.
    pub ids: Vec<Ids>,
    /// Rounds of each kind.
    pub runs: u32,
    /// Controls of each kind.
    pub controls: u32,
    /// Seconds to try without help, instead.
    pub unaided: Option<u32>,
    /// JSON instead of a table.
    pub json: bool,
    /// Show the guest's output.
    pub verbose: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kernels: vec![Platform::x86_64(Series::V6_12), Platform::x86_64(Series::V6_18)],
            images: Vec::new(),
            ways: vec![Way::Held, Way::Preempted],
            ids: Ids::ALL.to_vec(),
            runs: 10,
            controls: 2,
            unaided: None,
            json: false,
            verbose: false,
        }
    }
}

impl Options {
    /// Reads the arguments after the program's name; `None` if help is requested.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Self>, Error> {
        let mut options = Self::default();
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("kernel") => options.kernels = list(&parser.value()?.string()?, kernel)?,
                Long("image") => {
                    options.images = list(&parser.value()?.string()?, |path| Ok(path.into()))?
                }
                Long("way") => options.ways = list(&parser.value()?.string()?, way)?,
                Long("ids") => options.ids = list(&parser.value()?.string()?, ids)?,
                Long("runs") => options.runs = parser.value()?.parse()?,
                Long("controls") => options.controls = parser.value()?.parse()?,
                Long("unaided") => options.unaided = Some(parser.value()?.parse()?),
                Long("json") => options.json = true,
                Long("verbose") => options.verbose = true,
                Long("help") | Short('h') => return Ok(None),
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(Some(options))
    }
}

fn list<T>(text: &str, each: impl Fn(&str) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    text.split(',').map(|item| each(item.trim())).collect()
}

fn kernel(text: &str) -> Result<Platform, Error> {
    let platform: Platform = text.parse()?;
    match platform.arch {
        Arch::X86_64 => Ok(platform),
        Arch::Aarch64 | Arch::Riscv64 => {
            Err(Error::Usage(format!("--kernel {text}: the code is read of x86-64 only")))
        }
    }
}

fn way(text: &str) -> Result<Way, Error> {
    match text.parse() {
        Ok(way @ (Way::Held | Way::Preempted)) => Ok(way),
        _ => Err(Error::Usage(format!("--way `{text}`: expected held or preempted"))),
    }
}

fn ids(text: &str) -> Result<Ids, Error> {
    text.parse().map_err(|error| Error::Usage(format!("--ids {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Options>, Error> {
        Options::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_are_understood() {
        assert_eq!(parse("").expect("good"), Some(Options::default()));
        let line = "--kernel 6.18 --way held --ids kernel,table --runs 1 --controls 0 --json";
        let options = parse(line).expect("good").expect("no help");
        assert_eq!(options.kernels, [Platform::x86_64(Series::V6_18)]);
        assert_eq!(options.ways, [Way::Held]);
        assert_eq!(options.ids, [Ids::Kernel, Ids::Table]);
        assert_eq!((options.runs, options.controls, options.json), (1, 0, true));
        assert_eq!(parse("--unaided 60").expect("good").expect("no help").unaided, Some(60));
        assert_eq!(parse("--json --help --nonsense").expect("help"), None);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, expected) in [
            ("--nonsense", "--nonsense"),
            ("--kernel 6.18-arm64", "x86-64 only"),
            ("--way unaided-3", "expected held or preempted"),
            ("--ids atomic", "expected kernel, table or chosen"),
            ("--runs many", "many"),
            ("--kernel", "--kernel"),
        ] {
            let error = parse(line).expect_err(line).to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
