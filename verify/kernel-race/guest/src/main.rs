//! The guest's only program: its first process, and that of every round.

mod actor;
mod area;
mod ask;
mod held;
mod preempted;
mod setup;
mod unaided;

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

use percid_race_guest::{Ids, Line, ROUNDS_PATH, Round, Way};
use percid_vm::power::end_machine;
use percid_vm::protocol::EXIT_VALUE;

use ask::say;

/// The CPU on which the first process waits: no thread of a round begins on it.
const WAITING_CPU: u32 = 6;

fn main() -> ExitCode {
    if std::process::id() != 1 {
        return act();
    }
    setup::mount_all();
    for note in setup::let_real_time_run() {
        say(&Line::Note(note));
    }
    say(&setup::boot());
    setup::symbols().iter().for_each(say);
    actor::pin(0, WAITING_CPU);
    let rounds = fs::read_to_string(ROUNDS_PATH).expect("the root file system has the rounds");
    for round in rounds.lines() {
        let round: Round = round.parse().expect("the rounds have the agreed form");
        say(&Line::Begin(round));
        if let Err(why) = run_apart(round) {
            say(&Line::Failed(why));
        }
    }
    say(&Line::End);
    // The console is slow, and what is in its buffer is lost.
    std::thread::sleep(Duration::from_millis(200));
    panic!("{}", end_machine(EXIT_VALUE));
}

/// Runs a round in a process of its own: IDs belong to address spaces.
fn run_apart(round: Round) -> Result<(), String> {
    let mut command = Command::new("/proc/self/exe");
    command.arg(round.to_string()).env_remove("PERCID_SOURCE");
    match round.ids {
        Ids::Chosen => {}
        ids => {
            command.env("PERCID_SOURCE", ids.to_string());
        }
    }
    // SAFETY: the hook makes one system call.
    unsafe { command.pre_exec(setup::allow_all_cpus) };
    let status = command.status().map_err(|error| format!("not started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("ended with {status}")) }
}

/// Runs the process of a round.
fn act() -> ExitCode {
    let round = std::env::args().nth(1).expect("started with a round");
    let round: Round = round.parse().expect("the first process knows the form");
    if !area::has_ids() {
        say(&Line::Failed("the kernel gives no mm_cid".to_owned()));
        return ExitCode::SUCCESS;
    }
    let choice = percid::init();
    say(&Line::Source(format!("{}, because {}", choice.source, choice.reason)));
    let outcome = match round.way {
        Way::Held => held::run(round.control),
        Way::Preempted => preempted::run(round.control),
        Way::Unaided(seconds) => unaided::run(seconds),
    };
    say(&outcome.map_or_else(Line::Failed, Line::Result));
    // Threads that still wait for something end with the process.
    ExitCode::SUCCESS
}
