//! Tries the mutants of the catalogue: see `--help`.

use std::collections::BTreeSet;
use std::io;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use percid_mutants::catalogue::{self, Mutant};
use percid_mutants::options::{HELP, Options};
use percid_mutants::outcome::{Outcome, Summary, Tried};
use percid_mutants::root;
use percid_mutants::tree::Tree;
use percid_mutants::trial::{fail_without, try_mutant};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args_os().skip(1)) {
        Ok(options) => options,
        Err(error) => return no_result(&format!("{error}; --help says more")),
    };
    if options.help {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => no_result(&error),
    }
}

fn no_result(error: &str) -> ExitCode {
    eprintln!("percid-mutants: {error}");
    ExitCode::from(2)
}

/// Follows the command line. Returns the number of outcomes that differ from the catalogue.
fn run(options: &Options) -> Result<usize, String> {
    let all = catalogue::read(&root().join("verify/mutants/catalogue"))?;
    let chosen = options.selection.of(&all, &root())?;
    if options.list {
        chosen.iter().for_each(|mutant| println!("{}", mutant.name));
        return Ok(0);
    }
    let tried = try_all(options, &chosen).map_err(|error| error.to_string())?;
    let summary = Summary::of(&tried, chosen.len() - tried.len());
    if options.json {
        let document = serde_json::json!({ "summary": summary, "mutants": tried });
        println!("{document:#}");
    } else {
        println!("{summary}");
    }
    Ok(summary.unexpected)
}

/// Tries mutants, in as many copies of the project as there are jobs, until the time is over.
fn try_all(options: &Options, chosen: &[&Mutant]) -> io::Result<Vec<Tried>> {
    let (next, tried, begun) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Instant::now());
    let work = |job: usize| -> io::Result<()> {
        let folder = root().join("target/mutants").join(job.to_string());
        let tree = Tree::copy_of(&root(), &folder)?;
        let mut own = Vec::new();
        while options.limit.is_none_or(|limit| begun.elapsed() < limit) {
            let Some(mutant) = chosen.get(next.fetch_add(1, Relaxed)) else { break };
            let started = Instant::now();
            let outcome = try_mutant(&tree, mutant)?;
            let one = Tried::new(mutant, outcome, started.elapsed().as_secs_f64());
            say(options, &one);
            own.push((one, *mutant));
        }
        let own = without_mutants(options, &tree, own)?;
        tried.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(own);
        Ok(())
    };
    std::thread::scope(|scope| {
        let work = &work;
        let jobs: Vec<_> = (0..options.jobs).map(|job| scope.spawn(move || work(job))).collect();
        jobs.into_iter()
            .try_for_each(|job| job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(tried.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Checks that the suites pass without the mutants; otherwise their detection does not count.
fn without_mutants(
    options: &Options,
    tree: &Tree,
    tried: Vec<(Tried, &Mutant)>,
) -> io::Result<Vec<Tried>> {
    let used: BTreeSet<String> = tried.iter().filter_map(|(one, _)| noticed_by(one)).collect();
    let failing = fail_without(tree, &used)?;
    let judged = tried.into_iter().map(|(one, mutant)| {
        let Some(suite) = noticed_by(&one).filter(|suite| failing.contains(suite)) else {
            return one;
        };
        let one = Tried::new(mutant, Outcome::FailsWithout { suite }, one.seconds);
        say(options, &one);
        one
    });
    Ok(judged.collect())
}

fn noticed_by(tried: &Tried) -> Option<String> {
    match &tried.outcome {
        Outcome::Noticed { by, .. } => Some(by.clone()),
        _ => None,
    }
}

fn say(options: &Options, tried: &Tried) {
    if options.json {
        eprintln!("{tried}");
    } else {
        println!("{tried}");
    }
}
