//! Whole programs that put percid under stress.
//!
//! `percid-programs NAME [--option value …]` runs one; it prints one summary line, `PASS NAME:
//! figures` or `FAIL NAME: what went wrong`, and exits with 0 or 1 (2 for wrong arguments). Each is
//! a process of its own because what it checks (threads, affinity, signals, fork, the environment)
//! belongs to a process. Status 77 reports that the requested source is not available here.
//! `percid-programs --list` prints the programs that `verify/vm` runs in its machines.

mod area;
mod bounds;
mod bursts;
mod chaos;
mod choice;
mod control;
mod count;
mod density;
mod detached;
mod errno;
mod exhaustion;
mod first_use;
mod forking;
mod handlers;
mod hotplug;
mod id_steps;
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
mod instructions;
mod leak;
mod length;
mod locked;
mod mask_order;
mod mask_refused;
mod memory;
mod metrics_memory;
mod namespaces;
mod numa;
mod options;
mod pinning;
mod pool_cost;
mod probe;
mod random;
mod sandbox;
mod scan_walk;
mod stack;
mod stress;
mod verdict;
mod wander;
mod watch;

use std::process::ExitCode;

use options::Options;
use verdict::Verdict;

/// One of the programs.
struct Program {
    name: &'static str,
    run: fn(&Options) -> Verdict,
    purpose: &'static str,
}

const fn program(
    name: &'static str,
    run: fn(&Options) -> Verdict,
    purpose: &'static str,
) -> Program {
    Program { name, run, purpose }
}

const PROGRAMS: &[Program] = &[
    program("area", area::run, "the rseq area as the kernel knows it, and who may write to it"),
    program("bounds", bounds::run, "the bound of the IDs follows affinity and threads"),
    program("bursts", bursts::run, "indices and faults of the intermittent benchmark"),
    program("choice", choice::run, "the source chosen is the one this kernel deserves"),
    program("count", count::run, "counts to a million, optionally in a sandbox, names the source"),
    program("density", density::run, "wandering threads use no more IDs than there are threads"),
    program("detached", detached::run, "threads that count and end without being joined"),
    program("exhaustion", exhaustion::run, "more counters than fit; --confined: no arena at all"),
    program("first-use", first_use::run, "signals during the first use of the library"),
    program("forking", forking::run, "children start fresh and lose nothing"),
    program("handlers", handlers::run, "signal handlers that interrupt operations and slow paths"),
    program("hotplug", hotplug::run, "CPUs come and go while threads count (changes the machine)"),
    program("id-steps", id_steps::run, "records the scheduler's events and the kernel's IDs"),
    #[cfg(any(target_arch = "aarch64", target_arch = "riscv64"))]
    program("instructions", instructions::run, "every instruction of every section interrupted"),
    program("leak", leak::run, "forgets an object, for those who look for leaks"),
    program(
        "locked",
        locked::run,
        "memory that is locked; --confined: by a user who may lock little",
    ),
    program("mask-order", mask_order::run, "a drain of the active mask misses nobody"),
    program("mask-refused", mask_refused::run, "the active mask where the fence is refused"),
    program("memory", memory::run, "what ten thousand counters cost"),
    program(
        "metrics-memory",
        metrics_memory::run,
        "what ten thousand series of each kind cost on a machine with --possible CPUs",
    ),
    program(
        "namespaces",
        namespaces::run,
        "a child in a PID namespace knows its parent's threads from its own",
    ),
    program(
        "numa-changes",
        numa::changes,
        "page sizes, permitted nodes, policies, idle threads, children under a balancer",
    ),
    program(
        "numa-cost",
        numa::cost,
        "what percid numa check-kernel says of scenes beside what they show",
    ),
    program(
        "numa-follow",
        numa::follow,
        "memory on the wrong node follows the thread that uses it",
    ),
    program("numa-partial", numa::partial, "what the scanning thread does not use is scanned too"),
    program("numa-race", numa::race, "the kernel's balancing and percid's beside each other"),
    program("numa-shared", numa::shared, "memory that all nodes use alike does not wander"),
    program("numa-tiers", numa::tiers, "what is not used goes to a node without CPUs, and returns"),
    program("numa-touch", numa::touch, "what a reported access costs, on pretended nodes"),
    program("numa-trap", numa::trap, "faults, crashes, signals, fork, system calls at armed pages"),
    program(
        "numa-written",
        numa::written,
        "writes, system calls, signals, fork, memory that disappears at write-protected pages",
    ),
    program("pool-cost", pool_cost::run, "what a pool costs on a machine with --possible CPUs"),
    program("probe", probe::run, "finds out in fresh processes whether the kernel aborts sections"),
    program("scan-walk", scan_walk::run, "records the kernel's NUMA scan (changes the machine)"),
    program("stack", stack::run, "how much of a signal stack an increment takes"),
    program("stress", stress::run, "nothing is lost or doubled, whatever happens around it"),
    program("wander", wander::run, "extra IDs come while a thread wanders, and go when it stays"),
];

/// The programs for a virtual machine. Each line has a time limit, the traits that the machine must
/// have, variables, a program and its options. Sources that a kernel does not offer are skipped;
/// the default is the table, or atomics on kernels that do not abort critical sections. The control
/// of those kernels uses rings: an emulator checks for interrupts between blocks of code only. A
/// section of a counter is one block, and one that copies a record is many.
const RUNS_IN_A_MACHINE: &str = "\
choice
area
count
PERCID_SOURCE=table count --deny membarrier
limit=300 on=aborts probe --starts 20 --expect good
limit=300 on=no-aborts probe --starts 200 --expect bad
on=aborts density --threads 1
on=aborts density --threads 3
limit=120 on=aborts density --threads 8
on=aborts density --threads 3 --relaxed
on=aborts bounds
on=aborts wander
bursts --seconds 4
limit=120 forking --seconds 8
limit=120 namespaces
limit=60 handlers --seconds 3
memory
locked
locked --confined
stack
limit=60 stress --seconds 5
limit=60 stress --seconds 5 --source table --evict
limit=60 stress --seconds 3 --source kernel
limit=60 stress --seconds 3 --source table --watch
limit=60 stress --seconds 3 --source atomic
limit=60 stress --structure stack --seconds 3
limit=60 stress --structure stack --seconds 3 --source kernel
limit=60 stress --structure pool --seconds 3
limit=60 stress --structure local --seconds 3
limit=60 stress --structure ring --seconds 3
limit=60 stress --structure histogram --seconds 2
limit=60 stress --structure buckets --seconds 3
limit=60 stress --structure mask --seconds 2
mask-order
limit=120 on=multi on=aborts control stress --seconds 5 --source table --skip-fence
limit=120 on=multi on=aborts control stress --structure stack --seconds 5 --source table --skip-fence
limit=300 on=arm64 on=aborts instructions
limit=300 on=riscv64 on=aborts instructions
limit=120 on=no-aborts control stress --structure ring --seconds 5 --source table --probe skipped
pool-cost --possible 1024
limit=300 metrics-memory --possible 384
limit=200 numa-follow --seconds 150
limit=200 numa-follow --seconds 150 --access trapped
limit=200 numa-follow --seconds 150 --huge
limit=200 numa-follow --seconds 150 --huge --access trapped
limit=400 numa-changes
limit=200 numa-partial
limit=200 numa-shared
limit=200 numa-shared --huge
limit=200 numa-follow --seconds 150 --access written
limit=900 on=multi on=amd64 numa-race --seconds 10
limit=900 on=multi on=amd64 numa-cost --percid /percid/percid --seconds 5 --runs 10
limit=300 on=memory-only numa-tiers --seconds 150
limit=300 on=memory-only numa-tiers --seconds 150 --access trapped
limit=300 on=memory-only numa-tiers --seconds 150 --huge
limit=400 numa-trap --seconds 4
limit=400 numa-written --seconds 4
limit=60 hotplug --seconds 3
";

/// A program that had nothing to do here, by the custom of test suites.
const SKIPPED: u8 = 77;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == "--list") {
        print!("{RUNS_IN_A_MACHINE}");
        return ExitCode::SUCCESS;
    }
    if std::env::args_os().skip(1).any(|argument| argument == "--help") {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    if std::env::args_os().nth(1).is_some_and(|first| first == "control") {
        return control::run();
    }
    let (name, options) = match options::read() {
        Ok(read) => read,
        Err(error) => return usage(&error),
    };
    let Some(program) = PROGRAMS.iter().find(|program| program.name == name) else {
        return usage(&format!("no program {name:?}"));
    };
    percid::testing::spoil_probe(options.probe);
    if let Some(Err(why)) = options.source.map(percid::Source::prepare) {
        println!("SKIP {name}: {why}");
        return ExitCode::from(SKIPPED);
    }
    match (program.run)(&options) {
        Ok(figures) => {
            println!("PASS {name}: {figures}");
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            println!("FAIL {name}: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn usage(error: &str) -> ExitCode {
    eprint!("percid-programs: {error}\n{}", help());
    ExitCode::from(2)
}

fn help() -> String {
    let mut text = "programs:\n".to_owned();
    for Program { name, purpose, .. } in PROGRAMS {
        text += &format!("  {name:12} {purpose}\n");
    }
    text += "  control      a program that must fail, with its options, shows that it can\n";
    text + "options: " + options::HELP + "\n"
}
