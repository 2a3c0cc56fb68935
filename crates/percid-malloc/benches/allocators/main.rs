//! Allocators for unchanged programs: percid-malloc in front of them, and each alone. Every run is a process of its own,
//! and the allocators take turns.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

mod memory;
mod random;
mod workloads;

const HELP: &str = "\
Compares allocators by programs that allocate. Each run is a process, whose allocator comes by LD_PRELOAD;
the allocators take turns. Those that are installed are measured: glibc's, percid-malloc (in front of
each), mimalloc, jemalloc, tcmalloc, snmalloc.

usage: cargo bench -p percid-malloc -- [OPTIONS] [WORKLOAD...]

  WORKLOAD          larson, xmalloc, mstress, rptest, web or idle; all if there is none
  --threads LIST    numbers of threads [default: 1,2,8]; idle has 100 for each of them
  --rounds NUMBER   runs of each, of which the best counts [default: 3]
  --ms NUMBER       milliseconds of each run [default: 300]
  --json            one object for each result:
                    {\"bench\",\"allocator\",\"threads\",\"ops_per_s\",\"rss_peak\",\"rss_idle\"}, memory in KiB
  --help            this text

ops_per_s: objects freed in a second, by all threads. rss_peak: the largest resident set. rss_idle: the resident set
after everything was freed, with the threads of idle still waiting.";

struct Options {
    threads: Vec<usize>,
    rounds: usize,
    time: Duration,
    json: bool,
    names: Vec<String>,
    /// The workload of a process that was started for it.
    one: Option<String>,
}

fn options() -> Result<Option<Options>, String> {
    let mut options = Options {
        threads: vec![1, 2, 8],
        rounds: 3,
        time: Duration::from_millis(300),
        json: false,
        names: Vec::new(),
        one: None,
    };
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument}: expected a value"));
        let number = |text: &str| match text.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{argument} {text}: expected a number above 0")),
        };
        match argument.as_str() {
            "--threads" => {
                options.threads = value()?.split(',').map(number).collect::<Result<_, _>>()?;
            }
            "--rounds" => options.rounds = number(&value()?)?,
            "--ms" => options.time = Duration::from_millis(number(&value()?)? as u64),
            "--json" => options.json = true,
            "--one" => options.one = Some(value()?),
            // Cargo's own.
            "--bench" => {}
            "--help" | "-h" => return Ok(None),
            name if workloads::ALL.iter().any(|(known, _)| *known == name) => {
                options.names.push(argument);
            }
            _ => return Err(format!("{argument}: expected a workload or an option (--help)")),
        }
    }
    Ok(Some(options))
}

fn main() -> ExitCode {
    let done = match options() {
        Ok(None) => {
            println!("{HELP}");
            Ok(())
        }
        Ok(Some(options)) => match &options.one {
            Some(name) => run_here(name, &options),
            None => compare(&options),
        },
        Err(error) => Err(error),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("allocators: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs a workload in this process, and prints three numbers.
fn run_here(name: &str, options: &Options) -> Result<(), String> {
    let (_, run) = workloads::ALL.iter().find(|(known, _)| *known == name).ok_or("no workload")?;
    let began = Instant::now();
    let freed = run(options.threads[0], options.time);
    let seconds = began.elapsed().as_secs_f64();
    let (peak, idle) = (memory::peak(), memory::idle());
    println!("{} {peak} {idle}", (freed as f64 / seconds) as u64);
    Ok(())
}

#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    operations: u64,
    peak: u64,
    idle: u64,
}

struct Allocator {
    name: String,
    preload: String,
}

/// The allocators that are installed, each alone and with percid-malloc in front.
fn allocators() -> Result<Vec<Allocator>, String> {
    let own = own_library()?;
    let mut all = Vec::new();
    let mut add = |name: &str, path: &str| {
        all.push(Allocator { name: name.to_owned(), preload: path.to_owned() });
        let name = format!("percid, {name}");
        all.push(Allocator { name, preload: format!("{} {path}", own.display()) });
    };
    add("glibc", "");
    let known = Command::new("ldconfig")
        .arg("-p")
        .output()
        .map_err(|error| format!("ldconfig: {error}"))?;
    let known = String::from_utf8_lossy(&known.stdout).into_owned();
    for (name, file) in [
        ("mimalloc", "libmimalloc.so"),
        ("jemalloc", "libjemalloc.so"),
        ("tcmalloc", "libtcmalloc_minimal.so"),
        ("snmalloc", "libsnmallocshim.so"),
    ] {
        let line = known.lines().find(|line| line.trim_start().starts_with(file));
        if let Some(path) = line.and_then(|line| line.rsplit(' ').next()) {
            add(name, path);
        }
    }
    Ok(all)
}

/// Returns the library that Cargo built with this benchmark.
fn own_library() -> Result<PathBuf, String> {
    let here = env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let library = here.with_file_name("libpercid_malloc.so");
    if library.is_file() { Ok(library) } else { Err(format!("expected {}", library.display())) }
}

fn run(
    program: &Path,
    allocator: &Allocator,
    name: &str,
    threads: usize,
    time: Duration,
) -> Result<Figures, String> {
    let mut command = Command::new(program);
    command.args([
        "--one",
        name,
        "--threads",
        &threads.to_string(),
        "--ms",
        &time.as_millis().to_string(),
    ]);
    command.env("LD_PRELOAD", &allocator.preload);
    let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match (output.status.success(), &numbers[..]) {
        (true, &[operations, peak, idle]) => Ok(Figures { operations, peak, idle }),
        _ => Err(format!(
            "{name} with {}: {}",
            allocator.name,
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

fn compare(options: &Options) -> Result<(), String> {
    let program = env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let allocators = allocators()?;
    let is_chosen =
        |name: &str| options.names.is_empty() || options.names.iter().any(|one| one == name);
    for (name, _) in workloads::ALL.iter().filter(|(name, _)| is_chosen(name)) {
        for &threads in &options.threads {
            let mut best = vec![Figures::default(); allocators.len()];
            for _ in 0..options.rounds {
                for (best, allocator) in best.iter_mut().zip(&allocators) {
                    let figures = run(&program, allocator, name, threads, options.time)?;
                    if figures.operations > best.operations {
                        *best = figures;
                    }
                }
            }
            print_all(name, threads, &allocators, &best, options.json);
        }
    }
    Ok(())
}

fn print_all(name: &str, threads: usize, allocators: &[Allocator], all: &[Figures], json: bool) {
    if !json {
        println!(
            "{name}, {threads} threads: million objects a second, x of glibc, MB at most, MB at the end"
        );
    }
    for (allocator, &Figures { operations, peak, idle }) in allocators.iter().zip(all) {
        let allocator = &allocator.name;
        if json {
            println!(
                "{{\"bench\":\"{name}\",\"allocator\":\"{allocator}\",\"threads\":{threads},\
                 \"ops_per_s\":{operations},\"rss_peak\":{peak},\"rss_idle\":{idle}}}"
            );
        } else {
            let millions = operations as f64 / 1e6;
            let ratio = operations as f64 / all[0].operations as f64;
            let megabytes = |kib: u64| kib as f64 / 1000.0 * 1.024;
            let (peak, idle) = (megabytes(peak), megabytes(idle));
            println!("  {allocator:<18} {millions:>8.2} {ratio:>6.2} {peak:>8.1} {idle:>8.1}");
        }
    }
}
