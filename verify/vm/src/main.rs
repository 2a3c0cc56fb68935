//! `percid-vm`: boots kernels, runs programs in them, shows the results.

use std::collections::{BTreeMap, BTreeSet};
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
use percid_vm::plan::{Machine, Wish, plan};
use percid_vm::platform::{Arch, Platform};
use percid_vm::protocol::Job;
use percid_vm::report::Report;
use percid_vm::{Error, Result};

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
    let machines = machines(options)?;
    let entries = entries(options, &cache)?;
    if options.list {
        return list(&machines, &entries, &cache).map(|()| true);
    }
    let archs: BTreeSet<Arch> = machines.iter().map(|machine| machine.platform.arch).collect();
    archs.iter().try_for_each(|arch| arch.emulator().demand())?;
    let tasks = tasks(options, &machines, &entries, &cache)?;
    let harnesses = harnesses(options, archs, &cache)?;
    let boots = boot_all(options, &harnesses, &tasks)?;
    let passed = report(options, &boots, started)?;
    if passed || !options.again { Ok(passed) } else { try_again(options, &harnesses, boots) }
}

/// A machine, ready to be booted.
struct Task {
    kernel: Kernel,
    machine: Machine,
    jobs: Vec<Job>,
}

/// The harnesses that boot the machines of each architecture.
type Harnesses = BTreeMap<Arch, Harness>;

/// Shows the results of the machines. Returns `true` if everything passed.
fn report(options: &Options, boots: &[Boot], started: Instant) -> Result<bool> {
    let report = Report::new(boots, started.elapsed());
    publish(options, &report)?;
    Ok(report.passed())
}

/// Boots each machine with a failure once more, for its failed jobs: emulated machines on a busy
/// host can be late.
fn try_again(options: &Options, harnesses: &Harnesses, boots: Vec<Boot>) -> Result<bool> {
    let mut passed = true;
    for boot in boots.into_iter().filter(|boot| !boot.verdict.passed()) {
        let started = Instant::now();
        let jobs = boot.jobs_to_repeat();
        let platform = boot.kernel.platform;
        let machine = Machine { platform, shape: boot.shape, threads: boot.threads };
        let boots = boot_all(options, harnesses, &[Task { kernel: boot.kernel, machine, jobs }])?;
        passed &= report(options, &boots, started)?;
    }
    Ok(passed)
}

/// Returns the requested machines. A binary is for one architecture only.
fn machines(options: &Options) -> Result<Vec<Machine>> {
    let wish = Wish {
        kernels: &options.kernels,
        shapes: &options.shapes,
        long: options.long,
        threads: options.threads,
    };
    let mut machines = plan(wish);
    if let Programs::Binary(path) = &options.programs {
        let arch = guest::demand_static(path)?;
        machines.retain(|machine| machine.platform.arch == arch);
    }
    Ok(machines)
}

fn harnesses(options: &Options, archs: BTreeSet<Arch>, cache: &Cache) -> Result<Harnesses> {
    let harness = |arch: Arch| {
        let harness = Harness::new(cache, &build(options, cache, arch)?)?;
        let harness = options.companions.iter().try_fold(harness, |all, one| all.with(one))?;
        let kept = options.keep_logs.as_ref().map(|dir| harness.clone().keep_logs(dir));
        Ok((arch, kept.unwrap_or(harness)))
    };
    archs.into_iter().map(harness).collect()
}

fn build(options: &Options, cache: &Cache, arch: Arch) -> Result<PathBuf> {
    let source = match &options.programs {
        Programs::Percid => Source::programs(),
        Programs::Traces => Source::traces(),
        Programs::SelfCheck => Source::fixtures(),
        Programs::Binary(path) => return path.canonicalize().map_err(Error::file("find", path)),
    };
    eprintln!("building {} for {}", source.binary, arch.debian());
    source.build(cache, arch)
}

/// Returns the list of programs, as they print it on the host. A program of another architecture
/// cannot run here.
fn entries(options: &Options, cache: &Cache) -> Result<Vec<Entry>> {
    let host = Arch::host()?;
    let binary = build(options, cache, host)?;
    if guest::demand_static(&binary)? == host {
        return Entry::list(&binary);
    }
    let commands = options.commands.iter();
    commands.map(|command| Entry::of(command, options.limit)).collect()
}

/// Returns the jobs of a machine: the requested ones, or otherwise all that are for such a machine.
/// A misspelt name is detected here, not inside every machine.
fn jobs(options: &Options, entries: &[Entry], machine: &Machine) -> Result<Vec<Job>> {
    let commands = &options.commands;
    let jobs: Vec<Job> = if commands.is_empty() {
        let suitable = entries.iter().filter(|entry| entry.on.iter().all(|on| machine.is(on)));
        suitable.map(|entry| entry.job(options.limit)).collect::<Result<_>>()?
    } else {
        commands.iter().map(|command| job(options, entries, command)).collect::<Result<_>>()?
    };
    if jobs.is_empty() {
        return Err(Error::Usage("there are no programs to run".to_owned()));
    }
    Ok(jobs)
}

/// Returns the job for a command that a person wrote. It gets the longest time limit that a listed
/// one of the same program has.
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

/// Returns the machines with their jobs and kernels. Machines whose kernel is no longer available
/// are omitted; in the long plan they are an error.
fn tasks(
    options: &Options,
    machines: &[Machine],
    entries: &[Entry],
    cache: &Cache,
) -> Result<Vec<Task>> {
    let with_jobs: Vec<(Machine, Vec<Job>)> = machines
        .iter()
        .map(|machine| Ok((*machine, jobs(options, entries, machine)?)))
        .collect::<Result<_>>()?;
    let platforms: BTreeSet<Platform> = machines.iter().map(|machine| machine.platform).collect();
    let kernels: BTreeMap<Platform, Option<Kernel>> = platforms
        .into_iter()
        .map(|platform| Ok((platform, kernel(options, platform, cache)?)))
        .collect::<Result<_>>()?;
    let task = |(machine, jobs): (Machine, Vec<Job>)| {
        let kernel = kernels[&machine.platform].clone()?;
        Some(Task { kernel, machine, jobs })
    };
    let tasks: Vec<Task> = with_jobs.into_iter().filter_map(task).collect();
    if tasks.is_empty() {
        return Err(Error::Usage("there is no kernel to boot".to_owned()));
    }
    Ok(tasks)
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
        Err(gone @ Error::NoSuchKernel { .. }) if !options.long => {
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
fn boot_all(options: &Options, harnesses: &Harnesses, tasks: &[Task]) -> Result<Vec<Boot>> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..options.jobs.min(tasks.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(Task { kernel, machine, jobs }) = tasks.get(index) else {
                        return;
                    };
                    eprintln!("booting {} on {}", kernel.release, machine.shape);
                    let harness = &harnesses[&machine.platform.arch];
                    let harness = harness.clone().threads(machine.threads);
                    let boot = harness.boot(kernel, machine.shape, jobs, options.boot_limit);
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
        show(&format!("{}\n", report.json()))
    } else {
        show(&format!("{}{}\n", report.table(), report.summary()))
    }
}

fn list(machines: &[Machine], entries: &[Entry], cache: &Cache) -> Result<()> {
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
    for Machine { platform, shape, threads } in machines {
        text += &format!("  {platform:<10} {shape:<6} threads={}\n", threads.name());
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
        // The reader has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(Error::file("write", "standard output".as_ref())),
    }
}
