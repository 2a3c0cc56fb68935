//! The output for people and for programs.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

use crate::harness::Boot;
use crate::protocol::{Ending, Job, Tally};
use crate::verdict::ProgramResult;

/// All boots of a run.
#[derive(Debug)]
pub struct Report<'a> {
    boots: &'a [Boot],
    wall: Duration,
}

/// The width of a machine's column.
const COLUMN: usize = 11;

impl<'a> Report<'a> {
    /// Makes a report on `boots`, which took `wall` by the host's clock.
    pub fn new(boots: &'a [Boot], wall: Duration) -> Self {
        Self { boots, wall }
    }

    /// Returns `true` if everything passed. An empty report does not pass.
    pub fn passed(&self) -> bool {
        !self.boots.is_empty() && self.boots.iter().all(|boot| boot.verdict.passed())
    }

    /// Returns the line for the program that collects the suites' results.
    pub fn summary(&self) -> String {
        let tally = self.tally();
        let failed_boots = self.boots.iter().filter(|boot| !boot.verdict.faults.is_empty());
        let broken = match failed_boots.count() {
            0 => String::new(),
            count => format!(" ({count} broken)"),
        };
        format!(
            "vm: {} boots{broken}, {} programs: {} passed, {} failed, {} skipped, {:.1} s",
            self.boots.len(),
            tally.programs,
            tally.passed,
            tally.failed,
            tally.skipped,
            self.wall.as_secs_f64()
        )
    }

    fn tally(&self) -> Tally {
        let mut total = Tally::default();
        let results = self.boots.iter().flat_map(|boot| &boot.verdict.results);
        results.for_each(|result| total.count(result.ending));
        total
    }

    /// Programs down, machines across; in the cells, seconds or what went
    /// wrong.
    pub fn table(&self) -> String {
        let labels = self.labels();
        let names = labels.iter().map(String::as_str).chain(["boot and exit"]);
        let width = names.map(|name| name.chars().count()).max();
        let width = width.unwrap_or(0);
        let mut out = String::new();
        let mut row = |name: &str, cell: &dyn Fn(&Boot) -> String| {
            let _ = write!(out, "{name:width$}");
            for boot in self.boots {
                let _ = write!(out, " {:>COLUMN$}", cell(boot));
            }
            out.push('\n');
        };
        row("kernel", &|boot| boot.kernel.platform.to_string());
        row("CPUs/nodes", &|boot| boot.shape.to_string());
        row("threads", &|boot| boot.threads.name().to_owned());
        row("boot and exit", &boot_cell);
        for label in &labels {
            row(label, &|boot| program_cell(boot, label));
        }
        row("total", &|boot| seconds(boot.wall));
        out
    }

    /// Returns the labels of all jobs of any machine, in the order of the first machine with each.
    fn labels(&self) -> Vec<String> {
        let mut labels = Vec::new();
        for label in self.boots.iter().flat_map(|boot| &boot.jobs).map(Job::label) {
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        labels
    }

    /// Faults and notes of every machine, and what failed programs wrote; with
    /// `all`, what every program wrote.
    pub fn details(&self, all: bool) -> String {
        let mut out = String::new();
        for boot in self.boots {
            let verdict = &boot.verdict;
            for fault in &verdict.faults {
                let _ = writeln!(out, "{}: FAILED: {fault}", name(boot));
            }
            for note in &verdict.notes {
                let _ = writeln!(out, "{}: note: {note}", name(boot));
            }
            let shown = |result: &&ProgramResult| all || result.failed();
            for result in verdict.results.iter().filter(shown) {
                program_details(&mut out, boot, result);
            }
        }
        out
    }

    /// Returns the whole report as one JSON document.
    pub fn json(&self) -> String {
        let tally = self.tally();
        let document = Document {
            passed: self.passed(),
            programs: tally.programs,
            programs_passed: tally.passed,
            programs_failed: tally.failed,
            programs_skipped: tally.skipped,
            seconds: rounded(self.wall),
            boots: self.boots.iter().map(BootDocument::of).collect(),
        };
        serde_json::to_string_pretty(&document).expect("texts and numbers")
    }
}

/// The report for programs.
#[derive(Serialize)]
struct Document<'a> {
    passed: bool,
    programs: u32,
    programs_passed: u32,
    programs_failed: u32,
    programs_skipped: u32,
    seconds: f64,
    boots: Vec<BootDocument<'a>>,
}

#[derive(Serialize)]
struct BootDocument<'a> {
    kernel: String,
    release: &'a str,
    package: &'a str,
    cpus: u32,
    possible_cpus: u32,
    nodes: u32,
    threads: &'a str,
    passed: bool,
    seconds: f64,
    boot_seconds: f64,
    faults: Vec<String>,
    notes: Vec<String>,
    results: Vec<ResultDocument<'a>>,
}

impl<'a> BootDocument<'a> {
    fn of(boot: &'a Boot) -> Self {
        let verdict = &boot.verdict;
        Self {
            kernel: boot.kernel.platform.to_string(),
            release: &boot.kernel.release,
            package: &boot.kernel.package,
            cpus: boot.shape.cpus(),
            possible_cpus: boot.shape.possible(),
            nodes: boot.shape.nodes(),
            threads: boot.threads.name(),
            passed: verdict.passed(),
            seconds: rounded(boot.wall),
            boot_seconds: rounded(own_time(boot)),
            faults: verdict.faults.iter().map(ToString::to_string).collect(),
            notes: verdict.notes.iter().map(ToString::to_string).collect(),
            results: verdict.results.iter().map(ResultDocument::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct ResultDocument<'a> {
    program: &'a str,
    outcome: &'static str,
    exit_code: Option<i32>,
    signal: Option<i32>,
    seconds: f64,
    output: &'a [String],
}

impl<'a> ResultDocument<'a> {
    fn of(result: &'a ProgramResult) -> Self {
        let (exit_code, signal) = match result.ending {
            Ending::Exit(code) => (Some(code), None),
            Ending::Signal(number) => (None, Some(number)),
            Ending::Timeout(_) => (None, None),
        };
        let outcome = match result.ending {
            Ending::Timeout(_) => "timeout",
            ending if ending.passed() => "passed",
            ending if ending.skipped() => "skipped",
            _ => "failed",
        };
        let (program, output) = (&result.label, &result.output);
        let seconds = rounded(result.time);
        Self { program, outcome, exit_code, signal, seconds, output }
    }
}

/// Returns the time in seconds, rounded to the millisecond.
fn rounded(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

fn name(boot: &Boot) -> String {
    format!("{} on {}", boot.kernel.platform, boot.shape)
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// Returns the time of the machine without its programs. The guest's clock runs at the host's
/// speed, so the difference is meaningful.
fn own_time(boot: &Boot) -> Duration {
    let programs: Duration = boot.verdict.results.iter().map(|result| result.time).sum();
    boot.wall.saturating_sub(programs)
}

fn boot_cell(boot: &Boot) -> String {
    if boot.verdict.faults.is_empty() { seconds(own_time(boot)) } else { "FAILED".to_owned() }
}

fn program_cell(boot: &Boot, label: &str) -> String {
    let planned = boot.jobs.iter().any(|job| job.label() == label);
    match boot.verdict.results.iter().find(|result| result.label == label) {
        None if planned => "no result".to_owned(),
        None => "-".to_owned(),
        Some(result) => match result.ending {
            Ending::Exit(0) => seconds(result.time),
            ending if ending.skipped() => "skipped".to_owned(),
            Ending::Exit(code) => format!("FAILED {code}"),
            Ending::Signal(number) => format!("SIGNAL {number}"),
            Ending::Timeout(_) => "TIMEOUT".to_owned(),
        },
    }
}

fn program_details(out: &mut String, boot: &Boot, result: &ProgramResult) {
    let how = match result.ending {
        Ending::Exit(code) if result.ending.skipped() => format!("skipped (status {code})"),
        Ending::Exit(0) => "passed".to_owned(),
        Ending::Exit(code) => format!("FAILED with status {code}"),
        Ending::Signal(number) => format!("FAILED by signal {number}"),
        Ending::Timeout(limit) => format!("FAILED, not done after {limit} s"),
    };
    let _ = writeln!(out, "{}: {}: {how}", name(boot), result.label);
    for line in &result.output {
        let _ = writeln!(out, "    {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::platform::{Platform, Series};
    use crate::qemu::Threads;
    use crate::verdict::{Fault, Verdict};

    fn boot(endings: &[Ending], faults: Vec<Fault>) -> Boot {
        let result = |(index, &ending): (usize, &Ending)| ProgramResult {
            label: format!("program-{index}"),
            ending,
            time: Duration::from_millis(250),
            output: vec![format!("words of {index}")],
        };
        Boot {
            kernel: Kernel {
                platform: Platform::x86_64(Series::V6_12),
                release: "6.12.1".into(),
                package: "linux-image-6.12.1-cloud-amd64=6.12.1-1".into(),
                in_place_of: None,
                image: "vmlinux".into(),
            },
            shape: "16/4".parse().expect("good"),
            threads: Threads::Single,
            jobs: jobs(endings.len()),
            wall: Duration::from_secs(3),
            verdict: Verdict {
                results: endings.iter().enumerate().map(result).collect(),
                faults,
                ..Verdict::default()
            },
        }
    }

    fn jobs(count: usize) -> Vec<Job> {
        let job = |index| Job::new(&format!("program-{index}"), Duration::ZERO).expect("a job");
        (0..count).map(job).collect()
    }

    #[test]
    fn what_failed_or_never_ran_is_repeated_and_all_of_it_on_a_machine_that_broke() {
        let names =
            |boot: &Boot| -> Vec<String> { boot.jobs_to_repeat().iter().map(Job::label).collect() };
        let fine = Ending::Exit(0);
        let mut boot_of = boot(&[fine, Ending::Exit(1), Ending::Exit(77)], vec![]);
        boot_of.jobs = jobs(4);
        assert_eq!(names(&boot_of), ["program-1", "program-3"]);
        let broken = Fault::Panic { message: "a panic".to_owned(), during: None };
        assert_eq!(names(&boot(&[fine; 4], vec![broken])).len(), 4);
    }

    #[test]
    fn the_table_has_a_column_per_machine() {
        let good = boot(&[Ending::Exit(0), Ending::Exit(77)], Vec::new());
        let mut bad = boot(&[Ending::Timeout(60)], vec![Fault::Flooded { during: None }]);
        bad.jobs = jobs(2);
        let mut other = boot(&[Ending::Exit(0)], Vec::new());
        other.threads = Threads::Multi;
        let boots = [good, bad, other];
        let report = Report::new(&boots, Duration::from_secs(6));
        assert_eq!(
            report.table(),
            "kernel               6.12        6.12        6.12\n\
             CPUs/nodes           16/4        16/4        16/4\n\
             threads            single      single       multi\n\
             boot and exit      2.50 s      FAILED      2.75 s\n\
             program-0          0.25 s     TIMEOUT      0.25 s\n\
             program-1         skipped   no result           -\n\
             total              3.00 s      3.00 s      3.00 s\n"
        );
        assert_eq!(
            report.summary(),
            "vm: 3 boots (1 broken), 4 programs: 2 passed, 1 failed, 1 skipped, 6.0 s"
        );
        assert!(!report.passed());
    }

    #[test]
    fn details_show_the_words_of_failed_programs_only() {
        let boots = [boot(&[Ending::Exit(0), Ending::Signal(11)], Vec::new())];
        let report = Report::new(&boots, Duration::ZERO);
        let details = report.details(false);
        assert!(details.contains("program-1: FAILED by signal 11\n    words of 1"));
        assert!(!details.contains("words of 0"));
        assert!(report.details(true).contains("words of 0"));
    }

    #[test]
    fn no_boot_is_no_success() {
        assert!(!Report::new(&[], Duration::ZERO).passed());
    }

    #[test]
    fn the_document_tells_outcomes_apart() {
        let endings = [Ending::Exit(3), Ending::Signal(6), Ending::Timeout(9)];
        let boots = [boot(&endings, Vec::new())];
        let document = Report::new(&boots, Duration::ZERO).json();
        for part in [
            "\"exit_code\": 3",
            "\"signal\": 6",
            "\"outcome\": \"timeout\"",
            "\"boot_seconds\": 2.25",
        ] {
            assert!(document.contains(part), "{part} in {document}");
        }
    }
}
