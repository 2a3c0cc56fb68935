//! The language between host and guest.
//!
//! The host puts a list of [`Job`]s into the initramfs. The guest's first
//! process runs them in turn and writes [`Line`]s to the second serial port,
//! between which the programs' own output appears. The first port is the
//! kernel's console: on separate ports no kernel message can cut a line in two.
//!
//! ```text
//! PERCID-VM machine release=6.12.1 online=8 possible=8 nodes=2 ms=812
//! PERCID-VM begin sums
//! 8 threads, 4000000 increments, sum 4000000
//! PERCID-VM end sums exit=0 ms=340
//! PERCID-VM summary programs=1 passed=1 failed=0 skipped=0
//! ```

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The beginning of every line of the guest's first process.
pub const PREFIX: &str = "PERCID-VM ";
/// The list of jobs in the initramfs.
pub const JOBS_PATH: &str = "/percid/jobs";
/// The programs in the initramfs.
pub const PROGRAMS_PATH: &str = "/percid/programs";
/// The serial port of the report, as the guest sees it: on x86-64 the second one, on the others,
/// whose only one is the kernel's console, one on the PCI bus. Arm's console is of another kind and
/// is not counted.
pub const REPORT_PORT: &str =
    if cfg!(target_arch = "aarch64") { "/dev/ttyS0" } else { "/dev/ttyS1" };
/// The I/O port whose write ends a machine of x86-64.
pub const EXIT_PORT: u16 = 0xf4;
/// The value that the guest writes there after a complete run; a machine of Arm or RISC-V ends with
/// [`EXIT_STATUS`] itself.
pub const EXIT_VALUE: u32 = 0x10;
/// QEMU's exit status then; panic, power-off and reboot all give 0.
pub const EXIT_STATUS: i32 = ((EXIT_VALUE << 1) | 1) as i32;
/// The exit code of a program that cannot run on this machine, by the custom
/// of test suites.
pub const SKIPPED: i32 = 77;

/// One program to run in the guest.
///
/// Written as a shell would take it, `NAME=VALUE … program argument …`, without
/// quotation: words are separated by blanks and contain none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    limit: Duration,
    environment: Vec<(String, String)>,
    words: Vec<String>,
}

impl Job {
    /// Makes a job from its command; `None` if that names no program.
    pub fn new(command: &str, limit: Duration) -> Option<Self> {
        let mut words = command.split_whitespace().peekable();
        let mut environment = Vec::new();
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            environment.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        let words: Vec<String> = words.map(str::to_owned).collect();
        (!words.is_empty()).then_some(Self { limit, environment, words })
    }

    /// Returns the time limit of the program, to the second.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns the same job with another limit.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Returns the environment variables to set.
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Returns the program's name.
    pub fn program(&self) -> &str {
        &self.words[0]
    }

    /// Returns the program's name and arguments.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the whole command, which identifies the results.
    pub fn label(&self) -> String {
        let variables = self.environment.iter().map(|(n, v)| format!("{n}={v}"));
        let words = variables.chain(self.words.iter().cloned());
        words.collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.limit.as_secs(), self.label())
    }
}

impl FromStr for Job {
    type Err = Malformed;

    fn from_str(line: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed::new(line, "SECONDS COMMAND");
        let (seconds, command) = line.split_once(' ').ok_or_else(malformed)?;
        let seconds = seconds.parse().map_err(|_| malformed())?;
        Self::new(command, Duration::from_secs(seconds)).ok_or_else(malformed)
    }
}

/// Returns the text of the list of jobs.
pub fn write_jobs(jobs: &[Job]) -> String {
    jobs.iter().map(|job| format!("{job}\n")).collect()
}

/// Parses the jobs in such a text.
pub fn read_jobs(text: &str) -> Result<Vec<Job>, Malformed> {
    text.lines().map(str::parse).collect()
}

/// The way in which a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this code.
    Exit(i32),
    /// It was killed by this signal.
    Signal(i32),
    /// Killed by the harness after this many seconds.
    Timeout(u64),
}

impl Ending {
    /// Returns `true` if the program passed.
    pub fn passed(self) -> bool {
        self == Self::Exit(0)
    }

    /// Returns `true` if the program had nothing to test here.
    pub fn skipped(self) -> bool {
        self == Self::Exit(SKIPPED)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit={code}"),
            Self::Signal(number) => write!(f, "signal={number}"),
            Self::Timeout(seconds) => write!(f, "timeout={seconds}"),
        }
    }
}

impl FromStr for Ending {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let malformed = || Malformed::new(text, "exit=CODE, signal=NUMBER or timeout=SECONDS");
        let (kind, number) = text.split_once('=').ok_or_else(malformed)?;
        let ending = match kind {
            "exit" => number.parse().map(Self::Exit),
            "signal" => number.parse().map(Self::Signal),
            "timeout" => number.parse().map(Self::Timeout),
            _ => return Err(malformed()),
        };
        ending.map_err(|_| malformed())
    }
}

/// The properties of the machine as the guest finds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The kernel's release.
    pub release: String,
    /// CPUs that are up.
    pub online: u32,
    /// CPUs that may ever be.
    pub possible: u32,
    /// NUMA nodes.
    pub nodes: u32,
    /// Milliseconds since the kernel started.
    pub ms: u64,
}

/// Numbers of programs by their ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of all programs.
    pub programs: u32,
    /// Number of programs that passed.
    pub passed: u32,
    /// Number of programs that failed, or did not end.
    pub failed: u32,
    /// Those that had nothing to do on this machine.
    pub skipped: u32,
}

impl Tally {
    /// Counts one more program.
    pub fn count(&mut self, ending: Ending) {
        self.programs += 1;
        if ending.passed() {
            self.passed += 1;
        } else if ending.skipped() {
            self.skipped += 1;
        } else {
            self.failed += 1;
        }
    }
}

/// One line of the guest's first process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// The machine is up.
    Machine(Machine),
    /// A program starts; what follows is its output.
    Begin(String),
    /// A program has ended.
    End {
        /// The job's label.
        label: String,
        /// The way in which it ended.
        ending: Ending,
        /// Its duration by the guest's clock.
        ms: u64,
    },
    /// A note for people.
    Note(String),
    /// All programs have ended; nothing follows.
    Summary(Tally),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        match self {
            Self::Machine(m) => write!(
                f,
                "machine release={} online={} possible={} nodes={} ms={}",
                m.release, m.online, m.possible, m.nodes, m.ms
            ),
            Self::Begin(label) => write!(f, "begin {label}"),
            Self::End { label, ending, ms } => write!(f, "end {label} {ending} ms={ms}"),
            Self::Note(text) => write!(f, "note {text}"),
            Self::Summary(t) => write!(
                f,
                "summary programs={} passed={} failed={} skipped={}",
                t.programs, t.passed, t.failed, t.skipped
            ),
        }
    }
}

impl FromStr for Line {
    type Err = Malformed;

    fn from_str(line: &str) -> Result<Self, Malformed> {
        let malformed = |expected| Malformed::new(line, expected);
        let rest = line.strip_prefix(PREFIX).ok_or(malformed(PREFIX))?;
        let (kind, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let parsed = match kind {
            "machine" => parse_machine(rest).map(Self::Machine),
            "begin" => Some(Self::Begin(rest.to_owned())),
            "end" => parse_end(rest),
            "note" => Some(Self::Note(rest.to_owned())),
            "summary" => parse_tally(rest).map(Self::Summary),
            _ => None,
        };
        parsed.ok_or(malformed("machine, begin, end, note or summary and its fields"))
    }
}

fn parse_machine(text: &str) -> Option<Machine> {
    let [release, online, possible, nodes, ms] =
        fields(text, ["release", "online", "possible", "nodes", "ms"])?;
    Some(Machine {
        release: release.to_owned(),
        online: online.parse().ok()?,
        possible: possible.parse().ok()?,
        nodes: nodes.parse().ok()?,
        ms: ms.parse().ok()?,
    })
}

fn parse_tally(text: &str) -> Option<Tally> {
    let [programs, passed, failed, skipped] =
        fields(text, ["programs", "passed", "failed", "skipped"])?;
    Some(Tally {
        programs: programs.parse().ok()?,
        passed: passed.parse().ok()?,
        failed: failed.parse().ok()?,
        skipped: skipped.parse().ok()?,
    })
}

/// Labels contain blanks, so this is read from the end.
fn parse_end(text: &str) -> Option<Line> {
    let mut words = text.rsplitn(3, ' ');
    let ms = words.next()?.strip_prefix("ms=")?.parse().ok()?;
    let ending = words.next()?.parse().ok()?;
    let label = words.next()?.to_owned();
    Some(Line::End { label, ending, ms })
}

/// Returns the values of exactly these fields in exactly this order.
fn fields<'a, const N: usize>(text: &'a str, names: [&str; N]) -> Option<[&'a str; N]> {
    let mut values = [""; N];
    let mut words = text.split(' ');
    for (value, name) in values.iter_mut().zip(names) {
        let (found, text) = words.next()?.split_once('=')?;
        if found != name {
            return None;
        }
        *value = text;
    }
    words.next().is_none().then_some(values)
}

/// A line that breaks the agreed form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    line: String,
    expected: &'static str,
}

impl Malformed {
    fn new(line: &str, expected: &'static str) -> Self {
        Self { line: line.to_owned(), expected }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: expected {}", self.line, self.expected)
    }
}

impl std::error::Error for Malformed {}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(command: &str) -> Job {
        Job::new(command, Duration::from_secs(60)).expect("a good command")
    }

    #[test]
    fn a_job_is_environment_program_and_arguments() {
        let job = job("PERCID_SOURCE=table  A= sums 3 b=4");
        assert_eq!(job.program(), "sums");
        assert_eq!(job.words(), ["sums", "3", "b=4"]);
        let variables = [("PERCID_SOURCE", "table"), ("A", "")];
        assert_eq!(job.environment(), variables.map(|(n, v)| (n.into(), v.into())));
        assert_eq!(job.label(), "PERCID_SOURCE=table A= sums 3 b=4");
        assert_eq!(Job::new("A=b", Duration::ZERO), None);
        assert_eq!(Job::new("", Duration::ZERO), None);
    }

    #[test]
    fn jobs_survive_the_initramfs() {
        let jobs = [job("sums"), job("A=1 density 3")];
        assert_eq!(read_jobs(&write_jobs(&jobs)).as_deref(), Ok(&jobs[..]));
        assert!(read_jobs("sums").is_err());
        assert!(read_jobs("sixty sums").is_err());
    }

    #[test]
    fn lines_survive_the_serial_port() {
        let lines = [
            Line::Machine(Machine {
                release: "6.12.117+deb12-cloud-amd64".into(),
                online: 8,
                possible: 64,
                nodes: 2,
                ms: 812,
            }),
            Line::Begin("A=1 sums 3".into()),
            Line::End { label: "A=1 sums 3".into(), ending: Ending::Exit(0), ms: 3 },
            Line::End { label: "sums".into(), ending: Ending::Signal(11), ms: 3 },
            Line::End { label: "sums".into(), ending: Ending::Timeout(60), ms: 60_000 },
            Line::Note("CPU 3 was left offline".into()),
            Line::Summary(Tally { programs: 4, passed: 2, failed: 1, skipped: 1 }),
        ];
        for line in lines {
            assert_eq!(line.to_string().parse(), Ok(line));
        }
    }

    #[test]
    fn cut_lines_are_refused_at_every_length_that_matters() {
        for line in [
            "PERCID-VM summary programs=1 passed=1 failed=0 skipped=0",
            "PERCID-VM machine release=6.1 online=8 possible=8 nodes=2 ms=8",
        ] {
            for len in 0..line.len() {
                assert!(line[..len].parse::<Line>().is_err(), "{}", &line[..len]);
            }
        }
        for line in [
            "PERCID-VM end sums exit=0",
            "PERCID-VM end exit=0 ms=3",
            "PERCID-VM end sums exit=zero ms=3",
            "PERCID-VM sums",
            "percid-vm note",
        ] {
            assert!(line.parse::<Line>().is_err(), "{line}");
        }
    }

    #[test]
    fn a_tally_counts_what_is_neither_passed_nor_skipped_as_failed() {
        let mut tally = Tally::default();
        for ending in [
            Ending::Exit(0),
            Ending::Exit(1),
            Ending::Exit(SKIPPED),
            Ending::Signal(9),
            Ending::Timeout(1),
        ] {
            tally.count(ending);
        }
        let expected = Tally { programs: 5, passed: 1, failed: 3, skipped: 1 };
        assert_eq!(tally, expected);
    }

    #[test]
    fn the_exit_status_is_the_agreed_one() {
        assert_eq!(EXIT_STATUS, 33);
    }
}
