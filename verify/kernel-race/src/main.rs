//! `percid-kernel-race`: from a kernel's package to the verdict.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use percid_kernel_race::options::{HELP, Options};
use percid_kernel_race::session::{self, Boot, End, Report};
use percid_kernel_race::verdict::{Conclusion, Results};
use percid_kernel_race::{Error, report};
use percid_race_guest::{Line, Round, Way};
use percid_vm::cache::Cache;
use percid_vm::guest::Source;
use percid_vm::kernel::Kernel;
use percid_vm::platform::{Arch, Platform};
use percid_vm::tool;

/// Exit status if there is no result, neither a good nor a bad one.
const NO_RESULT: u8 = 2;
/// Maximum number of machines for the rounds of a way: emulated machines on a busy host are late,
/// and guests with many emulation threads panic sometimes.
const TRIES: u32 = 12;

fn main() -> ExitCode {
    let options = match Options::parse(env::args_os().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => return show(HELP, ExitCode::SUCCESS),
        Err(error) => return no_result(&error),
    };
    let results = match run(&options) {
        Ok(results) => results,
        Err(error) => return no_result(&error),
    };
    eprint!("{}", report::remarks(&results));
    let status = match results.conclusion() {
        Conclusion::Good => ExitCode::SUCCESS,
        Conclusion::Bad => ExitCode::FAILURE,
        Conclusion::NoResult => ExitCode::from(NO_RESULT),
    };
    if options.json {
        show(&format!("{}\n", report::json(&results)), status)
    } else {
        show(&report::tables(&results), status)
    }
}

fn no_result(error: &Error) -> ExitCode {
    eprintln!("percid-kernel-race: {error}");
    ExitCode::from(NO_RESULT)
}

/// Prints the text, and returns `status`; `NO_RESULT` if the output is closed.
fn show(text: &str, status: ExitCode) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => status,
        Err(_) => ExitCode::from(NO_RESULT),
    }
}

fn run(options: &Options) -> Result<Results, Error> {
    tool::QEMU.demand()?;
    let cache = Cache::find();
    eprintln!("building the guest's program");
    let program = guest().build(&cache, Arch::X86_64)?;
    let program = fs::read(&program).map_err(percid_vm::Error::file("read", &program))?;
    let mut results = Results::default();
    for image in images(options, &cache)? {
        for rounds in plan(options) {
            try_on(&image, &program, &rounds, options.verbose, &mut results)?;
        }
    }
    Ok(results)
}

fn guest() -> Source {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest/Cargo.toml");
    Source::of(manifest, "percid-race-guest")
}

fn images(options: &Options, cache: &Cache) -> Result<Vec<PathBuf>, Error> {
    if !options.images.is_empty() {
        return Ok(options.images.clone());
    }
    options.kernels.iter().map(|platform| image(*platform, cache)).collect()
}

fn image(platform: Platform, cache: &Cache) -> Result<PathBuf, Error> {
    eprintln!("getting kernel {platform}");
    let kernel = Kernel::ready(platform, cache)?;
    let instead = kernel.in_place_of.map(|pin| format!(", as {pin} is not to be had any more"));
    eprintln!("kernel {} of {}{}", kernel.release, kernel.package, instead.unwrap_or_default());
    Ok(kernel.image)
}

/// Returns the rounds, by way: each way has machines of its own.
fn plan(options: &Options) -> Vec<Vec<Round>> {
    match options.unaided {
        Some(seconds) => vec![kinds(options, Way::Unaided(seconds), false).collect()],
        None => options.ways.iter().map(|&way| rounds(options, way)).collect(),
    }
}

/// Returns the rounds with alternating kinds, so that a machine that is lost early has results of
/// each.
fn rounds(options: &Options, way: Way) -> Vec<Round> {
    let controls = (0..options.controls).flat_map(|_| kinds(options, way, true));
    let treated = (0..options.runs).flat_map(|_| kinds(options, way, false));
    controls.chain(treated).collect()
}

fn kinds(options: &Options, way: Way, control: bool) -> impl Iterator<Item = Round> {
    options.ids.iter().map(move |&ids| Round { way, ids, control })
}

/// Boots a kernel, again if a machine is lost or rounds have no result, until all have run.
fn try_on(
    image: &Path,
    program: &[u8],
    rounds: &[Round],
    verbose: bool,
    results: &mut Results,
) -> Result<(), Error> {
    let mut left = rounds.to_vec();
    let mut append = "";
    let mut tries = 0;
    while !left.is_empty() && tries < TRIES {
        eprintln!("booting {} for {} rounds", image.display(), left.len());
        let boot = session::boot(image, program, &left, append, &mut |line| tell(line, verbose))?;
        results.add(&boot.release, &boot.reports);
        tell_places(&boot);
        left = still_to_do(&left, &boot.reports);
        match boot.end {
            End::Cooperative if append.is_empty() => {
                eprintln!("{} does not preempt itself by default: preempt=full", boot.release);
                append = "preempt=full";
            }
            End::Cooperative => {
                return Err(Error::Machine(format!("{} does not preempt itself", boot.release)));
            }
            End::Lost(why) => {
                eprintln!("the machine is lost: {why}");
                tries += 1;
            }
            End::Complete => tries += 1,
        }
    }
    results.missing += left.len();
    Ok(())
}

/// Returns the rounds without an outcome, and those that did not run.
fn still_to_do(rounds: &[Round], reports: &[Report]) -> Vec<Round> {
    let failed = reports.iter().filter(|report| report.outcome.is_err()).map(|report| report.round);
    rounds.iter().skip(reports.len()).copied().chain(failed).collect()
}

fn tell(line: &Line, verbose: bool) {
    if verbose
        || matches!(
            line,
            Line::Begin(_) | Line::Result(_) | Line::Failed(_) | Line::Progress { .. }
        )
    {
        eprintln!("  {line}");
    }
}

fn tell_places(boot: &Boot) {
    for (way, function, place) in &boot.places {
        eprintln!(
            "{} ({} preemption), {way}: caught at {:#x} in {function}, the ID in {:?}",
            boot.release, boot.preemption, place.address, place.id
        );
    }
}
