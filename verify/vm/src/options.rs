//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::pins;
use crate::platform::Platform;
use crate::qemu::Threads;
use crate::shape::Shape;
use crate::{Error, Result};

/// Shown by `--help`.
pub const HELP: &str = "\
Boots stock Debian kernels with many CPUs and nodes under QEMU's software
emulation and runs percid's test programs inside.

usage: percid-vm [options]

  --kernel KERNEL,…     series as 6.12, on 64-bit Arm as 6.12-arm64, or all
  --shape SHAPE,…       CPUS/NODES as in 8/2, or CPUS+SPARE/NODES as in 8+56/2
                        for CPUs that are possible but not up
  --long                all kernels and larger machines instead of the four of the quick
                        plan; no result where a kernel is no longer to be had, instead
                        of leaving it out
  --threads HOW         single: one thread emulates the CPUs in turns; multi: each has
                        its own, so that they race (without: as --list shows)
  --program COMMAND,…   programs to run instead of all; a command is
                        [NAME=VALUE …] program [argument …]
  --limit SECONDS       time for each program that names none itself (60)
  --boot-limit SECONDS  time for a whole machine (the programs' and a minute)
  --jobs N              machines at a time; each takes one core (1)
  --list                show kernels, machines and programs, boot nothing
  --json                one JSON document on standard output
  --verbose             show the output of all programs, not only of failed ones
  --keep-logs DIR       keep each machine's console, report and QEMU's messages
  --again               boot machines with failures once more, for what failed
                        there; what fails counts if it fails twice
  --refresh             fetch kernels again instead of using the cached ones
  --binary PATH         run the programs of this static binary, do not build any
  --traces              run the programs that record and check traces instead
  --self-check          run the harness's own programs instead of percid's
  --help                this text

Exit status: 0 if everything passed, 1 if a program or a machine failed,
2 if there is no result, for example because QEMU is missing.
";

/// Where the programs come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Programs {
    /// Percid's, built from the workspace.
    Percid,
    /// Those that record the kernel, built from the workspace.
    Traces,
    /// The harness's own.
    SelfCheck,
    /// A binary that is there already.
    Binary(PathBuf),
}

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Kernels; empty for all.
    pub kernels: Vec<Platform>,
    /// Machines; empty for the default plan.
    pub shapes: Vec<Shape>,
    /// Commands; empty for all programs.
    pub commands: Vec<String>,
    /// Time for a program that names none itself.
    pub limit: Duration,
    /// Time for a machine.
    pub boot_limit: Option<Duration>,
    /// Machines at a time.
    pub jobs: usize,
    /// Show what there is and stop.
    pub list: bool,
    /// JSON instead of a table.
    pub json: bool,
    /// Show all output.
    pub verbose: bool,
    /// Where to keep logs.
    pub keep_logs: Option<PathBuf>,
    /// Give what failed another try.
    pub again: bool,
    /// Fetch kernels again.
    pub refresh: bool,
    /// All kernels, and no result where one is no longer to be had.
    pub long: bool,
    /// What emulates the CPUs, if not what the plan says.
    pub threads: Option<Threads>,
    /// Where the programs come from.
    pub programs: Programs,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kernels: Vec::new(),
            shapes: Vec::new(),
            commands: Vec::new(),
            limit: Duration::from_secs(60),
            boot_limit: None,
            jobs: 1,
            list: false,
            json: false,
            verbose: false,
            keep_logs: None,
            again: false,
            refresh: false,
            long: false,
            threads: None,
            programs: Programs::Percid,
        }
    }
}

impl Options {
    /// Reads the arguments after the program's name; `None` asks for help.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Self>> {
        let mut options = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let argument = into_text(argument)?;
            let (name, attached) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (argument.as_str(), None),
            };
            if name == "--help" || name == "-h" {
                return Ok(None);
            }
            if options.set_flag(name) {
                if attached.is_some() {
                    return Err(Error::Usage(format!("{name} takes no value")));
                }
                continue;
            }
            let value = || {
                let value = attached.or_else(|| arguments.next());
                value.ok_or_else(|| Error::Usage(format!("{name} expects a value")))
            };
            options.set_value(name, value)?;
        }
        if options.again && options.json {
            return Err(Error::Usage("--again shows two reports, --json one document".to_owned()));
        }
        Ok(Some(options))
    }

    fn set_flag(&mut self, name: &str) -> bool {
        match name {
            "--list" => self.list = true,
            "--json" => self.json = true,
            "--verbose" => self.verbose = true,
            "--again" => self.again = true,
            "--long" => self.long = true,
            "--refresh" => self.refresh = true,
            "--traces" => self.programs = Programs::Traces,
            "--self-check" => self.programs = Programs::SelfCheck,
            _ => return false,
        }
        true
    }

    fn set_value(&mut self, name: &str, value: impl FnOnce() -> Result<OsString>) -> Result<()> {
        match name {
            "--kernel" => self.kernels = kernels(&into_text(value()?)?)?,
            "--shape" => self.shapes = list(&into_text(value()?)?, str::parse)?,
            "--program" => self.commands = list(&into_text(value()?)?, |s| Ok(s.to_owned()))?,
            "--limit" => self.limit = seconds(name, value()?)?,
            "--boot-limit" => self.boot_limit = Some(seconds(name, value()?)?),
            "--threads" => self.threads = Some(threads(&into_text(value()?)?)?),
            "--jobs" => self.jobs = number(name, value()?)? as usize,
            "--keep-logs" => self.keep_logs = Some(value()?.into()),
            "--binary" => self.programs = Programs::Binary(value()?.into()),
            _ => return Err(Error::Usage(format!("unknown argument `{name}`"))),
        }
        Ok(())
    }
}

fn kernels(text: &str) -> Result<Vec<Platform>> {
    match text {
        "all" => Ok(Vec::new()),
        some => list(some, |name| Ok(pins::of(name.parse()?)?.platform)),
    }
}

fn threads(text: &str) -> Result<Threads> {
    let found =
        [Threads::Single, Threads::Multi].into_iter().find(|threads| threads.name() == text);
    found.ok_or_else(|| Error::Usage(format!("--threads {text}: expected single or multi")))
}

fn list<T>(text: &str, each: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    text.split(',').map(|item| each(item.trim())).collect()
}

fn seconds(name: &str, value: OsString) -> Result<Duration> {
    number(name, value).map(Duration::from_secs)
}

/// Every number here is a positive one, and none is large.
fn number(name: &str, value: OsString) -> Result<u64> {
    let text = into_text(value)?;
    let number = text.parse().ok().filter(|n| (1..=1_000_000).contains(n));
    number.ok_or_else(|| Error::Usage(format!("{name} {text}: expected a positive number")))
}

fn into_text(value: OsString) -> Result<String> {
    value
        .into_string()
        .map_err(|value| Error::Usage(format!("`{}` is not UTF-8", value.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Series;

    fn parse(line: &str) -> Result<Option<Options>> {
        Options::parse(line.split('|').filter(|s| !s.is_empty()).map(OsString::from))
    }

    fn good(line: &str) -> Options {
        parse(line).expect(line).expect("not --help")
    }

    #[test]
    fn nothing_is_the_default() {
        assert_eq!(good(""), Options::default());
        assert_eq!(good("--kernel|all"), Options::default());
    }

    #[test]
    fn options_are_understood_in_both_forms() {
        let options = good("--kernel=6.12|--shape|8/2,8+56/2|--program|A=1 sums 3,density|--json");
        assert_eq!(options.kernels, [Platform::x86_64(Series::V6_12)]);
        assert_eq!(options.shapes.len(), 2);
        assert_eq!(options.commands, ["A=1 sums 3", "density"]);
        assert!(options.json && !options.list);
        let options = good("--limit|5|--boot-limit=7|--jobs|2|--keep-logs|logs|--binary=/x=y");
        assert_eq!(options.limit, Duration::from_secs(5));
        assert_eq!(options.boot_limit, Some(Duration::from_secs(7)));
        assert_eq!(options.programs, Programs::Binary("/x=y".into()));
        assert_eq!(good("--self-check").programs, Programs::SelfCheck);
        assert!(good("--again").again);
        assert_eq!(good("--threads|multi|--long").threads, Some(Threads::Multi));
        assert_eq!(good("--traces").programs, Programs::Traces);
    }

    #[test]
    fn help_wins() {
        assert_eq!(parse("--json|--help|--nonsense").expect("help"), None);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, expected) in [
            ("--nonsense", "unknown argument `--nonsense`"),
            ("sums", "unknown argument `sums`"),
            ("--shape", "--shape expects a value"),
            ("--shape|8", "CPUS/NODES"),
            ("--kernel|5.11", "expected 5.10, 6.1, 6.12"),
            ("--limit|0", "expected a positive number"),
            ("--jobs|two", "expected a positive number"),
            ("--threads|two", "expected single or multi"),
            ("--json=yes", "--json takes no value"),
        ] {
            let error = parse(line).expect_err(line).to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
