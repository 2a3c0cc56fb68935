//! Explores the catalogue and prints one line per configuration, and the shortest counter-examples.

use std::io::{self, Write};
use std::process::ExitCode;

use percid_models::catalogue::{Case, Size, catalogue};
use percid_models::explore::Verdict;

const USAGE: &str = "\
usage: percid-models [--quick | --full] [--brief] [--list] [NAME...]

  --quick   only what takes seconds
  --full    everything: many minutes, gigabytes
  --brief   no counter-examples
  --list    names and claims, no exploration
  NAME      only configurations whose name begins so, of any size";

struct Options {
    size: Size,
    brief: bool,
    list: bool,
    names: Vec<String>,
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options =
            Self { size: Size::Standard, brief: false, list: false, names: Vec::new() };
        for argument in arguments {
            match argument.as_str() {
                "--quick" => options.size = Size::Quick,
                "--full" => options.size = Size::Full,
                "--brief" => options.brief = true,
                "--list" => options.list = true,
                name if name.starts_with('-') => return None,
                name => options.names.push(name.into()),
            }
        }
        Some(options)
    }

    fn wants(&self, case: &Case) -> bool {
        if self.names.is_empty() {
            case.size <= self.size
        } else {
            self.names.iter().any(|name| case.name.starts_with(name))
        }
    }
}

fn main() -> ExitCode {
    if std::env::args().skip(1).any(|argument| argument == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let cases: Vec<Case> = catalogue().into_iter().filter(|case| options.wants(case)).collect();
    match run(&options, &cases) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // The reader of our output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("percid-models: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns `true` if every case had the verdict that it must have.
fn run(options: &Options, cases: &[Case]) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    let width = cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
    let (mut states, mut surprises) = (0, 0);
    for case in cases {
        if options.list {
            writeln!(out, "{:width$}  {:?}: {}", case.name, case.size, case.claim)?;
            continue;
        }
        let report = case.run();
        states += report.states;
        let seconds = report.elapsed.as_secs_f64();
        writeln!(
            out,
            "{:width$}  {report} [{}; {seconds:.1} s, {} MB]",
            case.name,
            case.claim,
            report.bytes >> 20
        )?;
        if !case.accepts(&report.verdict) {
            surprises += 1;
            writeln!(out, "{:width$}  UNEXPECTED: must {}", "", case.breaks.unwrap_or("hold"))?;
        }
        if let Verdict::Broken { trace, .. } = &report.verdict {
            if !options.brief {
                writeln!(out, "\n{trace}")?;
            }
        }
        out.flush()?;
    }
    if !options.list {
        writeln!(
            out,
            "models: {} configurations, {states} states, {surprises} unexpected verdicts",
            cases.len()
        )?;
    }
    Ok(surprises == 0)
}
