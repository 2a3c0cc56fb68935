//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::Parser;
use lexopt::prelude::*;

use crate::error::{Error, Result};
use crate::pins;
use crate::platform::Platform;
use crate::qemu::Threads;
use crate::shape::Shape;

/// Shown by `--help`.
pub const HELP: &str = "\
Boots stock Debian kernels with many CPUs and nodes under QEMU's software
emulation and runs percid's test programs inside.

usage: percid-vm [options]

  --kernel KERNEL,…     series as 6.12, on other architectures as 6.12-arm64
                        and 6.12-riscv64, or all
  --shape SHAPE,…       CPUS/NODES as in 8/2, CPUS+SPARE/NODES as in 8+56/2
                        for CPUs that are possible but not up, or
                        CPUS/NODES+MEMORY as in 4/2+1 for nodes without CPUs
  --long                all kernels and larger machines instead of the four of the quick
                        plan; no result where a kernel is no longer to be had, instead
                        of leaving it out
  --threads HOW         single: one thread emulates the CPUs in turns; multi: each has
                        its own, so that they race (without: as --list shows)
  --program COMMAND,…   programs to run instead of all; a command is
                        [NAME=VALUE …] program [argument …]. This option,
                        --kernel, --shape and --with can be repeated
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
  --with PATH,…         put these static binaries into the machines too, below /percid
  --traces              run the programs that record and check traces instead
  --self-check          run the harness's own programs instead of percid's
  --help                this text

Exit status: 0 if everything passed, 1 if a program or a machine failed,
2 if there is no result, for example because QEMU is missing.
";

/// The origin of the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Programs {
    /// Percid's, built from the workspace.
    Percid,
    /// The programs that record the kernel, built from the workspace.
    Traces,
    /// The harness's own programs.
    SelfCheck,
    /// A binary that is there already.
    Binary(PathBuf),
}

/// The options of the command line.
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
    /// The folder for logs.
    pub keep_logs: Option<PathBuf>,
    /// Repeat failed jobs once.
    pub again: bool,
    /// Fetch kernels again.
    pub refresh: bool,
    /// All kernels, and no result if one is no longer available.
    pub long: bool,
    /// The kind of emulation of the CPUs, if it differs from the plan.
    pub threads: Option<Threads>,
    /// The origin of the programs.
    pub programs: Programs,
    /// Further binaries for the machines.
    pub companions: Vec<PathBuf>,
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
            companions: Vec::new(),
        }
    }
}

impl Options {
    /// Reads the arguments after the program's name; `None` if help is requested.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Self>> {
        let mut parser = Parser::from_args(arguments);
        let mut options = Self::default();
        let mut kernels = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('h') | Long("help") => return Ok(None),
                Long("list") => options.list = true,
                Long("json") => options.json = true,
                Long("verbose") => options.verbose = true,
                Long("again") => options.again = true,
                Long("long") => options.long = true,
                Long("refresh") => options.refresh = true,
                Long("traces") => options.programs = Programs::Traces,
                Long("self-check") => options.programs = Programs::SelfCheck,
                Long("kernel") => kernels.push(parser.value()?.string()?),
                Long("shape") => {
                    options.shapes.extend(list::<Shape>(&parser.value()?.string()?, str::parse)?);
                }
                Long("program") => {
                    let commands = list(&parser.value()?.string()?, |s| Ok(s.to_owned()))?;
                    options.commands.extend(commands);
                }
                Long("limit") => options.limit = seconds(parser.value()?)?,
                Long("boot-limit") => options.boot_limit = Some(seconds(parser.value()?)?),
                Long("threads") => options.threads = Some(parser.value()?.parse_with(threads)?),
                Long("jobs") => options.jobs = number(parser.value()?)? as usize,
                Long("keep-logs") => options.keep_logs = Some(parser.value()?.into()),
                Long("binary") => options.programs = Programs::Binary(parser.value()?.into()),
                Long("with") => {
                    options.companions.extend(list(&parser.value()?.string()?, |s| Ok(s.into()))?);
                }
                other => return Err(other.unexpected().into()),
            }
        }
        options.kernels = platforms(&kernels)?;
        if options.again && options.json {
            return Err(Error::Usage("--again shows two reports, --json one document".to_owned()));
        }
        Ok(Some(options))
    }
}

impl From<lexopt::Error> for Error {
    fn from(error: lexopt::Error) -> Self {
        Error::Usage(error.to_string())
    }
}

/// Returns the platforms of all lists; none if one of them contains `all`.
fn platforms(lists: &[String]) -> Result<Vec<Platform>> {
    if lists.iter().any(|list| list == "all") {
        return Ok(Vec::new());
    }
    let named = lists.iter().map(|text| list(text, |name| Ok(pins::of(name.parse()?)?.platform)));
    named.collect::<Result<Vec<_>>>().map(|lists| lists.concat())
}

fn threads(text: &str) -> std::result::Result<Threads, &'static str> {
    let found =
        [Threads::Single, Threads::Multi].into_iter().find(|threads| threads.name() == text);
    found.ok_or("expected single or multi")
}

fn list<T>(text: &str, each: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    text.split(',').map(|item| each(item.trim())).collect()
}

fn seconds(value: OsString) -> Result<Duration> {
    number(value).map(Duration::from_secs)
}

/// Parses a number, which must be positive and not large.
fn number(value: OsString) -> Result<u64> {
    let number = value.parse_with(|text| {
        let number = text.parse().ok().filter(|number| (1..=1_000_000).contains(number));
        number.ok_or("expected a positive number")
    })?;
    Ok(number)
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
    fn lists_that_are_given_twice_are_joined() {
        let once = "--kernel=6.12,7.3|--shape=8/2,16/4|--program=sums,density|--with=a,b";
        let twice = "--kernel=6.12|--kernel=7.3|--shape=8/2|--shape=16/4\
                     |--program=sums|--program=density|--with=a|--with=b";
        assert_eq!(good(twice), good(once));
        assert_eq!(good("--kernel=6.12|--kernel=all").kernels, []);
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
        assert_eq!(good("--with|/a/b,c").companions, ["/a/b", "c"].map(PathBuf::from));
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
            ("--nonsense", "invalid option '--nonsense'"),
            ("sums", "unexpected argument \"sums\""),
            ("--shape", "missing argument for option '--shape'"),
            ("--shape|8", "CPUS/NODES"),
            ("--kernel|5.11", "expected 5.10, 6.1, 6.12"),
            ("--limit|0", "expected a positive number"),
            ("--jobs|two", "expected a positive number"),
            ("--threads|two", "expected single or multi"),
            ("--json=yes", "unexpected argument for option '--json'"),
        ] {
            let error = parse(line).expect_err(line).to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
