//! The verdict on an ended machine.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use crate::machine::{End, Remains};
use crate::platform::Platform;
use crate::protocol::{EXIT_STATUS, Ending, Job, Line, Machine, PREFIX, Tally};
use crate::shape::Shape;

/// The expected results of a machine.
#[derive(Debug, Clone, Copy)]
pub struct Expectation<'a> {
    /// The kernel that should have come up.
    pub platform: Platform,
    /// The CPUs and nodes that should have come up.
    pub shape: Shape,
    /// The jobs that should have been run, in this order.
    pub jobs: &'a [Job],
}

/// One program's result.
#[derive(Debug, Clone)]
pub struct ProgramResult {
    /// The job's label.
    pub label: String,
    /// The way in which it ended.
    pub ending: Ending,
    /// Its duration by the guest's clock.
    pub time: Duration,
    /// Its output.
    pub output: Vec<String>,
}

impl ProgramResult {
    /// Returns `true` if it neither passed nor had nothing to test.
    pub fn failed(&self) -> bool {
        !self.ending.passed() && !self.ending.skipped()
    }
}

/// A fault of a whole machine, whatever the results of its programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The kernel gave up.
    Panic {
        /// The kernel's words.
        message: String,
        /// The program that was running.
        during: Option<String>,
    },
    /// The machine did not end in time.
    Overdue {
        /// The time it had.
        limit: Duration,
        /// The program that was running.
        during: Option<String>,
    },
    /// The machine wrote without end.
    Flooded {
        /// The program that was running.
        during: Option<String>,
    },
    /// The machine ended in another way than agreed.
    Ended {
        /// A description of the ending.
        how: String,
        /// The program that was running.
        during: Option<String>,
    },
    /// The machine ended as agreed, but not after all programs.
    NoSummary {
        /// The program that was running.
        during: Option<String>,
    },
    /// The machine that came up differs from the requested one.
    WrongMachine {
        /// The requested machine.
        expected: String,
        /// The found machine.
        found: String,
    },
    /// The report contradicts itself or the list of jobs.
    Contradiction(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, during) = match self {
            Self::Panic { message, during } => (format!("kernel panic ({message})"), during),
            Self::Overdue { limit, during } => {
                (format!("not done after {} s, ended by the harness", limit.as_secs()), during)
            }
            Self::Flooded { during } => ("wrote without end".to_owned(), during),
            Self::Ended { how, during } => (how.clone(), during),
            Self::NoSummary { during } => {
                ("ended with the agreed status but without a summary".to_owned(), during)
            }
            Self::WrongMachine { expected, found } => {
                return write!(f, "expected {expected}, found {found}");
            }
            Self::Contradiction(what) => return f.write_str(what),
        };
        f.write_str(&what)?;
        match during {
            Some(program) => write!(f, " while `{program}` was running"),
            None => write!(f, " while no program was running"),
        }
    }
}

/// The outcome of one boot.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// The properties of the machine as the guest found them, if it came that far.
    pub machine: Option<Machine>,
    /// The programs that ended, in order.
    pub results: Vec<ProgramResult>,
    /// The remarks of the guest's first process and of the kernel.
    pub notes: Vec<String>,
    /// The faults of the machine.
    pub faults: Vec<Fault>,
}

impl Verdict {
    /// Judges a machine's remains.
    pub fn on(remains: &Remains, expected: Expectation<'_>) -> Self {
        let mut reading = Reading::default();
        for line in remains.report.lines() {
            reading.take(line);
        }
        let mut verdict = Self {
            machine: reading.machine.clone(),
            results: reading.results.clone(),
            notes: reading.notes.clone(),
            faults: Vec::new(),
        };
        verdict.notes.extend(kernel_complaints(&remains.console));
        verdict.faults.extend(fault_of_end(remains, &reading));
        verdict.faults.extend(fault_of_machine(&reading, expected));
        verdict.faults.extend(reading.broken.map(Fault::Contradiction));
        if verdict.faults.is_empty() {
            verdict.faults.extend(fault_of_results(&verdict, reading.summary, expected));
        }
        verdict
    }

    /// Returns the numbers of programs by their ending. Programs that were never started are not
    /// included; a fault represents them.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for result in &self.results {
            tally.count(result.ending);
        }
        tally
    }

    /// Returns `true` if neither a program nor the machine failed.
    pub fn passed(&self) -> bool {
        self.faults.is_empty() && self.tally().failed == 0
    }
}

/// The report, read line by line.
#[derive(Debug, Default)]
struct Reading {
    machine: Option<Machine>,
    running: Option<(String, Vec<String>)>,
    results: Vec<ProgramResult>,
    notes: Vec<String>,
    summary: Option<Tally>,
    /// The first thing that broke the agreed form.
    broken: Option<String>,
}

impl Reading {
    fn take(&mut self, line: &str) {
        if !line.starts_with(PREFIX) {
            self.output(line);
            return;
        }
        match line.parse() {
            Ok(line) => self.protocol(line),
            Err(malformed) => self.breaks(malformed.to_string()),
        }
    }

    fn output(&mut self, line: &str) {
        if let Some((_, output)) = &mut self.running {
            output.push(line.to_owned());
        }
    }

    fn protocol(&mut self, line: Line) {
        if self.summary.is_some() {
            self.breaks(format!("`{line}` after the summary"));
        }
        match line {
            Line::Machine(machine) if self.machine.is_none() => self.machine = Some(machine),
            Line::Machine(_) => self.breaks("the machine came up twice".to_owned()),
            Line::Begin(label) => self.begin(label),
            Line::End { label, ending, ms } => self.end(&label, ending, ms),
            Line::Note(text) => self.notes.push(text),
            Line::Summary(tally) => self.summary = Some(tally),
        }
    }

    fn begin(&mut self, label: String) {
        if let Some((running, _)) = &self.running {
            let what = format!("`{label}` began before `{running}` ended");
            self.breaks(what);
        }
        self.running = Some((label, Vec::new()));
    }

    fn end(&mut self, label: &str, ending: Ending, ms: u64) {
        let Some((running, mut output)) = self.running.take() else {
            return self.breaks(format!("`{label}` ended without having begun"));
        };
        if running != label {
            return self.breaks(format!("`{label}` ended while `{running}` was running"));
        }
        // The guest writes an empty line before its own, because it cannot know whether the program
        // ended its last one.
        if output.last().is_some_and(String::is_empty) {
            output.pop();
        }
        self.results.push(ProgramResult {
            label: running,
            ending,
            time: Duration::from_millis(ms),
            output,
        });
    }

    fn breaks(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    fn during(&self) -> Option<String> {
        self.running.as_ref().map(|(label, _)| label.clone())
    }
}

fn fault_of_end(remains: &Remains, reading: &Reading) -> Option<Fault> {
    let during = reading.during();
    if let Some(message) = panic_message(&remains.console) {
        return Some(Fault::Panic { message, during });
    }
    match remains.end {
        End::Overdue(limit) => Some(Fault::Overdue { limit, during }),
        End::Flooded => Some(Fault::Flooded { during }),
        End::Exited(status) if status.code() == Some(EXIT_STATUS) => {
            let complete = reading.summary.is_some() && during.is_none();
            (!complete).then_some(Fault::NoSummary { during })
        }
        End::Exited(status) => {
            let how = match (status.code(), status.signal()) {
                (Some(0), _) => "powered off or rebooted".to_owned(),
                (Some(code), _) => format!("the emulator ended with status {code}"),
                (None, signal) => {
                    format!("the emulator was ended by signal {}", signal.unwrap_or(0))
                }
            };
            let mut how = format!("{how}, expected status {EXIT_STATUS}");
            let words = remains.emulator.trim();
            if !words.is_empty() {
                how = format!("{how} ({})", words.replace('\n', "; "));
            }
            Some(Fault::Ended { how, during })
        }
    }
}

fn fault_of_machine(reading: &Reading, expected: Expectation<'_>) -> Option<Fault> {
    let machine = reading.machine.as_ref()?;
    let shape = expected.shape;
    let right = expected.platform.series.matches(&machine.release)
        && machine.online == shape.cpus()
        && machine.possible == shape.possible()
        && machine.nodes == shape.nodes();
    let describe = |release: &str, online, possible, nodes| {
        format!("kernel {release} with {online} CPUs of {possible} on {nodes} nodes")
    };
    (!right).then(|| Fault::WrongMachine {
        expected: describe(
            &expected.platform.to_string(),
            shape.cpus(),
            shape.possible(),
            shape.nodes(),
        ),
        found: describe(&machine.release, machine.online, machine.possible, machine.nodes),
    })
}

/// Returns the fault, if any: a machine that ended well must have reported exactly the jobs it was
/// given.
fn fault_of_results(
    verdict: &Verdict,
    summary: Option<Tally>,
    expected: Expectation<'_>,
) -> Option<Fault> {
    let contradiction = |what: String| Some(Fault::Contradiction(what));
    if verdict.machine.is_none() {
        return contradiction("the guest never said what machine it is".to_owned());
    }
    let told: Vec<&str> = verdict.results.iter().map(|result| result.label.as_str()).collect();
    let wanted: Vec<String> = expected.jobs.iter().map(Job::label).collect();
    if told != wanted {
        return contradiction(format!(
            "expected results of {}, found those of {}",
            wanted.join(", "),
            told.join(", ")
        ));
    }
    let tally = verdict.tally();
    if summary != Some(tally) {
        let said = summary.map_or_else(String::new, |tally| Line::Summary(tally).to_string());
        return contradiction(format!("expected `{}`, found `{said}`", Line::Summary(tally)));
    }
    None
}

/// Returns the kernel's panic message, without its time stamp.
fn panic_message(console: &str) -> Option<String> {
    const WORDS: &str = "Kernel panic - not syncing: ";
    let (_, rest) = console.split_once(WORDS)?;
    Some(rest.lines().next().unwrap_or_default().to_owned())
}

/// Returns the first few complaints on the kernel's console. They are remarks, not faults: under
/// emulation on a busy host a kernel may find that time jumps.
fn kernel_complaints(console: &str) -> Vec<String> {
    const MARKS: [&str; 5] = ["WARNING:", "BUG:", "INFO: rcu", "INFO: task", "Oops"];
    const MOST: usize = 3;
    let complaints = console.lines().filter(|line| MARKS.iter().any(|mark| line.contains(mark)));
    complaints.take(MOST).map(|line| format!("kernel: {}", line.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Series;
    use std::process::ExitStatus;

    const GOOD: &str = "\
PERCID-VM machine release=6.12.1 online=8 possible=8 nodes=2 ms=812
PERCID-VM begin sums
sum 4000000

PERCID-VM end sums exit=0 ms=340
PERCID-VM begin A=1 density 3

PERCID-VM end A=1 density 3 exit=77 ms=2
PERCID-VM summary programs=2 passed=1 failed=0 skipped=1
";

    fn exited(code: i32) -> End {
        End::Exited(ExitStatus::from_raw(code << 8))
    }

    fn judge(end: End, report: &str, console: &str) -> Verdict {
        let remains = Remains {
            end,
            wall: Duration::from_secs(2),
            console: console.to_owned(),
            report: report.to_owned(),
            emulator: String::new(),
        };
        let limit = Duration::from_secs(60);
        let jobs = ["sums", "A=1 density 3"].map(|command| Job::new(command, limit).expect("good"));
        let expected = Expectation {
            platform: Platform::x86_64(Series::V6_12),
            shape: "8/2".parse().expect("good"),
            jobs: &jobs,
        };
        Verdict::on(&remains, expected)
    }

    fn fault(end: End, report: &str, console: &str) -> String {
        let verdict = judge(end, report, console);
        assert!(!verdict.passed());
        let faults: Vec<String> = verdict.faults.iter().map(Fault::to_string).collect();
        faults.join("\n")
    }

    #[test]
    fn a_good_run_passes() {
        let verdict = judge(exited(33), GOOD, "");
        assert_eq!(verdict.faults, []);
        assert!(verdict.passed());
        assert_eq!(verdict.results[0].output, ["sum 4000000"]);
        assert!(verdict.results[1].output.is_empty());
        assert_eq!(verdict.tally().skipped, 1);
    }

    #[test]
    fn a_failed_program_fails_the_run() {
        let report = GOOD
            .replace("sums exit=0", "sums signal=11")
            .replace("passed=1 failed=0", "passed=0 failed=1");
        let verdict = judge(exited(33), &report, "");
        assert_eq!(verdict.faults, []);
        assert!(!verdict.passed());
    }

    #[test]
    fn the_status_alone_is_not_enough() {
        let cut = GOOD.split("PERCID-VM summary").next().expect("a first part");
        assert!(fault(exited(33), cut, "").contains("without a summary"));
        assert!(fault(exited(33), "", "").contains("without a summary"));
    }

    #[test]
    fn the_summary_alone_is_not_enough() {
        assert!(fault(exited(0), GOOD, "").contains("powered off or rebooted"));
        assert!(fault(exited(1), GOOD, "").contains("status 1, expected status 33"));
        let killed = End::Exited(ExitStatus::from_raw(11));
        assert!(fault(killed, GOOD, "").contains("signal 11"));
    }

    #[test]
    fn a_fault_names_the_program_that_was_running() {
        let cut = GOOD.split("PERCID-VM end A=1").next().expect("a first part");
        let console =
            "[    1.2] Kernel panic - not syncing: sysrq triggered crash\n[    1.2] CPU: 0";
        assert_eq!(
            fault(exited(0), cut, console),
            "kernel panic (sysrq triggered crash) while `A=1 density 3` was running"
        );
        let overdue = End::Overdue(Duration::from_secs(90));
        assert!(fault(overdue, cut, "").contains("after 90 s"));
        assert!(fault(End::Flooded, cut, "").contains("`A=1 density 3`"));
        assert!(fault(exited(33), cut, "").contains("`A=1 density 3`"));
    }

    #[test]
    fn another_machine_than_asked_for_is_a_fault() {
        for (from, to) in [
            ("release=6.12.1", "release=6.1.2"),
            ("online=8", "online=7"),
            ("possible=8", "possible=16"),
            ("nodes=2", "nodes=1"),
        ] {
            let found = fault(exited(33), &GOOD.replace(from, to), "");
            assert!(found.starts_with("expected kernel 6.12 with 8 CPUs of 8 on 2"), "{found}");
        }
    }

    #[test]
    fn a_report_that_contradicts_the_jobs_is_a_fault() {
        for (from, to) in [
            ("end sums", "end sum"),
            ("begin sums", "begin sum"),
            ("passed=1 failed=0", "passed=2 failed=0"),
            ("PERCID-VM begin sums\n", ""),
            ("PERCID-VM end sums exit=0 ms=340\n", ""),
            ("exit=77 ms=2", "exit=77 ms="),
            ("PERCID-VM machine", "x machine"),
            ("PERCID-VM begin sums", "PERCID-VM begin sums\nPERCID-VM so"),
        ] {
            let found = fault(exited(33), &GOOD.replacen(from, to, 1), "");
            assert!(!found.is_empty(), "{from} -> {to}");
        }
        let twice = format!("{GOOD}{GOOD}");
        assert!(fault(exited(33), &twice, "").contains("after the summary"));
    }

    #[test]
    fn the_kernels_complaints_are_noted() {
        let console = "[ 1.0] fine\n[ 2.0] WARNING: CPU: 3 PID: 7 at kernel/x.c:1\n";
        let verdict = judge(exited(33), GOOD, console);
        assert!(verdict.passed());
        assert_eq!(verdict.notes, ["kernel: [ 2.0] WARNING: CPU: 3 PID: 7 at kernel/x.c:1"]);
    }
}
