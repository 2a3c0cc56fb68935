//! `percid-vm`: boots kernels, runs programs in them, shows the results.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use percid_vm::cache::Cache;
use percid_vm::guest::{self, Entry, Source};
use percid_vm::harness::{Boot, Harness};
use percid_vm::kernel::Kernel;
use percid_vm::options::{HELP, Options, Programs};
use percid_vm::pins;
use percid_vm::plan::plan;
use percid_vm::platform::Platform;
use percid_vm::protocol::Job;
use percid_vm::report::Report;
use percid_vm::shape::Shape;
use percid_vm::{Error, Result, tool};

/// Neither passed nor failed: there is no result.
const NO_RESULT: u8 = 2;

fn main() -> ExitCode {
    match Options::parse(env::args_os().skip(1)).and_then(|options| match options {
        Some(options) => run(&options),
        None => show(HELP).map(|()| true),
    }) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("percid-vm: {error}");
            ExitCode::from(NO_RESULT)
        }
    }
}

fn run(options: &Options) -> Result<bool> {
    let started = Instant::now();
    let cache = Cache::find();
    let machines = plan(&options.kernels, &options.shapes);
    let binary = build(options, &cache)?;
    let entries = Entry::list(&binary)?;
    if options.list {
        return list(&machines, &entries, &cache).map(|()| true);
    }
    tool::QEMU.demand()?;
    let jobs = jobs(options, &entries)?;
    let machines = with_kernels(options, machines, &cache)?;
    let mut harness = Harness::new(&cache, &binary)?;
    if let Some(dir) = &options.keep_logs {
        harness = harness.keep_logs(dir);
    }
    let boots = boot_all(options, &harness, &machines, &jobs)?;
    let passed = report(options, &boots, &jobs, started)?;
    if passed || !options.again { Ok(passed) } else { try_again(options, &harness, &boots, &jobs) }
}

/// Shows what came of the machines. Answers whether everything passed.
fn report(options: &Options, boots: &[Boot], jobs: &[Job], started: Instant) -> Result<bool> {
    let labels: Vec<String> = jobs.iter().map(Job::label).collect();
    let report = Report::new(boots, &labels, started.elapsed());
    publish(options, &report)?;
    Ok(report.passed())
}

/// Emulated machines on a busy host can be late: boots each with a failure once more, for what failed there.
fn try_again(options: &Options, harness: &Harness, boots: &[Boot], jobs: &[Job]) -> Result<bool> {
    let mut passed = true;
    for boot in boots.iter().filter(|boot| !boot.verdict.passed()) {
        let started = Instant::now();
        let jobs = boot.jobs_to_repeat(jobs);
        let machine = [(boot.kernel.clone(), boot.shape)];
        let boots = boot_all(options, harness, &machine, &jobs)?;
        passed &= report(options, &boots, &jobs, started)?;
    }
    Ok(passed)
}

fn build(options: &Options, cache: &Cache) -> Result<PathBuf> {
    let source = match &options.programs {
        Programs::Percid => Source::programs(),
        Programs::Traces => Source::traces(),
        Programs::SelfCheck => Source::fixtures(),
        Programs::Binary(path) => {
            guest::demand_static(path)?;
            return path.canonicalize().map_err(Error::file("find", path));
        }
    };
    eprintln!("building {} for the guest", source.binary);
    source.build(cache)
}

/// The jobs that were asked for. A misspelt name is caught here, not inside
/// every machine.
fn jobs(options: &Options, entries: &[Entry]) -> Result<Vec<Job>> {
    let commands = &options.commands;
    let jobs: Vec<Job> = if commands.is_empty() {
        entries.iter().map(|entry| entry.job(options.limit)).collect::<Result<_>>()?
    } else {
        commands.iter().map(|command| job(options, entries, command)).collect::<Result<_>>()?
    };
    if jobs.is_empty() {
        return Err(Error::Usage("there are no programs to run".to_owned()));
    }
    Ok(jobs)
}

/// The job for a command that a person wrote. It gets the longest time that a
/// listed one of the same program gets.
fn job(options: &Options, entries: &[Entry], command: &str) -> Result<Job> {
    let job = Job::new(command, options.limit)
        .ok_or_else(|| Error::Usage(format!("`{command}` names no program")))?;
    let mut limit = None;
    for entry in entries {
        let listed = entry.job(options.limit)?;
        if listed.program() == job.program() {
            limit = limit.max(Some(listed.limit()));
        }
    }
    let name = job.program().to_owned();
    let limit = limit
        .ok_or_else(|| Error::Usage(format!("there is no program `{name}`; --list shows them")))?;
    Ok(job.within(limit))
}

/// The machines with their kernels. Those whose kernel is no longer to be had are left out, unless a person is strict.
fn with_kernels(
    options: &Options,
    machines: Vec<(Platform, Shape)>,
    cache: &Cache,
) -> Result<Vec<(Kernel, Shape)>> {
    let mut kernels: BTreeMap<Platform, Option<Kernel>> = BTreeMap::new();
    for (platform, _) in &machines {
        if !kernels.contains_key(platform) {
            kernels.insert(*platform, kernel(options, *platform, cache)?);
        }
    }
    let ready = machines.into_iter().filter_map(|(platform, shape)| {
        let kernel = kernels.get(&platform)?.clone()?;
        Some((kernel, shape))
    });
    let ready: Vec<_> = ready.collect();
    if ready.is_empty() {
        return Err(Error::Usage("there is no kernel to boot".to_owned()));
    }
    Ok(ready)
}

fn kernel(options: &Options, platform: Platform, cache: &Cache) -> Result<Option<Kernel>> {
    let cached = Kernel::cached(platform, cache).filter(|_| !options.refresh);
    let kernel = cached.map_or_else(
        || {
            eprintln!("fetching kernel {platform}");
            Kernel::fetch(platform, cache)
        },
        Ok,
    );
    match kernel {
        Err(gone @ Error::NoSuchKernel { .. }) if !options.strict => {
            eprintln!("percid-vm: note: {gone}: left out");
            Ok(None)
        }
        Ok(kernel) => {
            if let Some(wanted) = &kernel.in_place_of {
                eprintln!("percid-vm: note: {} in place of {wanted}", kernel.package);
            }
            Ok(Some(kernel))
        }
        Err(error) => Err(error),
    }
}

/// Boots all machines, some at a time, and returns them in the plan's order.
fn boot_all(
    options: &Options,
    harness: &Harness,
    machines: &[(Kernel, Shape)],
    jobs: &[Job],
) -> Result<Vec<Boot>> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..options.jobs.min(machines.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((kernel, shape)) = machines.get(index) else {
                        return;
                    };
                    eprintln!("booting {} on {shape}", kernel.release);
                    let boot = harness.boot(kernel, *shape, jobs, options.boot_limit);
                    if sender.send((index, boot)).is_err() {
                        return;
                    }
                }
            });
        }
    });
    drop(sender);
    let mut boots: Vec<(usize, Result<Boot>)> = receiver.iter().collect();
    boots.sort_by_key(|(index, _)| *index);
    boots.into_iter().map(|(_, boot)| boot).collect()
}

/// Results go to standard output, explanations to standard error: so a script
/// that reads the one still shows the other.
fn publish(options: &Options, report: &Report<'_>) -> Result<()> {
    eprint!("{}", report.details(options.verbose));
    if options.json {
        eprintln!("{}", report.summary());
        show(&format!("{}\n", report.json().document()))
    } else {
        show(&format!("{}{}\n", report.table(), report.summary()))
    }
}

fn list(machines: &[(Platform, Shape)], entries: &[Entry], cache: &Cache) -> Result<()> {
    let mut text = String::from("kernels\n");
    for pin in pins::all() {
        let (platform, wanted) = (pin.platform, &pin.package);
        let state = match Kernel::cached(platform, cache) {
            None => "not fetched yet".to_owned(),
            Some(Kernel { in_place_of: Some(_), package, .. }) => format!("{package} in the cache"),
            Some(_) => "in the cache".to_owned(),
        };
        text += &format!("  {platform:<10} {wanted}: {state}\n");
    }
    text += "machines\n";
    for (platform, shape) in machines {
        text += &format!("  {platform:<10} {shape}\n");
    }
    text += "programs\n";
    let width = entries.iter().map(|entry| entry.command.len()).max();
    let width = width.unwrap_or(0);
    for entry in entries {
        text += format!("  {:width$} {}", entry.command, entry.about).trim_end();
        text.push('\n');
    }
    show(&text)
}

fn show(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let result = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match result {
        // Whoever reads has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Error::file("write", "standard output".as_ref())),
    }
}
