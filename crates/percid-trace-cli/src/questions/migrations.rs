//! `percid trace migrations`: which threads move, how far, and what that would cost.

use std::cmp::Reverse;
use std::fmt;

use percid_command::exit::{Exit, Failure};
use percid_command::presets;
use percid_command::table::Table;
use percid_command::this_machine::Numbering;
use percid_command::trace_questions::MigrationsArguments;
use percid_report::Page;
use percid_trace::Trace;
use percid_trace::questions::{self, Migrations, MigrationsSettings, ThreadMigrations};
use percid_trace::replay::Moves;
use serde::Serialize;

use super::names::{Named, Names};
use super::recording::{AnalysisFigures, LoadedRecording};
use crate::replay::misfit;
use crate::times::{ms, percent};

pub(crate) fn run(arguments: &MigrationsArguments, json: bool) -> Result<Exit, Failure> {
    let machine = presets::machine(&arguments.machine, Numbering::Kernel)?;
    let recording = LoadedRecording::load(&arguments.question)?;
    if !recording.permits_figures() {
        return recording.tell(TITLE, MigrationFigures::default(), true, json);
    }
    let processes = recording.processes.clone();
    let settings = MigrationsSettings { window: recording.window, processes };
    let found = recording.ask("migrations", |control| {
        questions::migrations(&recording.trace, &machine, &settings, control)
    });
    let found = found.map_err(misfit)?;
    let machine = machine.name.clone();
    let figures = MigrationFigures::new(&recording.trace, &found, recording.lines(), machine);
    recording.tell(TITLE, figures, found.is_whole, json)
}

const TITLE: &str = "percid trace migrations";

/// The figures of the JSON document. `None` stands for what the recording does not support.
#[derive(Debug, Default, Serialize)]
struct MigrationFigures {
    machine: Option<String>,
    /// The migrations of all threads together.
    all: Option<Travels>,
    /// Threads, those that moved most first.
    threads: Option<Vec<ThreadTravels>>,
    threads_left_out: usize,
}

#[derive(Debug, Serialize)]
struct ThreadTravels {
    #[serde(flatten)]
    who: Named,
    #[serde(flatten)]
    travels: Travels,
}

#[derive(Debug, Serialize)]
struct Travels {
    turns: u64,
    moves: u64,
    at_wake_up: Moves,
    while_waiting: Moves,
    cost_ns: u64,
}

impl MigrationFigures {
    fn new(trace: &Trace, found: &Migrations, lines: usize, machine: String) -> MigrationFigures {
        let names = Names::new(trace, &found.known);
        let mut all = ThreadMigrations::default();
        found.threads.iter().for_each(|(_, travels)| all.add(travels));
        let mut threads: Vec<_> = found.threads.iter().collect();
        threads.sort_by_key(|(thread, travels)| (Reverse(travels.moves()), *thread));
        let threads_left_out = threads.len().saturating_sub(lines);
        let told = threads.into_iter().take(lines).map(|(thread, travels)| ThreadTravels {
            who: names.thread(*thread),
            travels: Travels::from_migrations(travels),
        });
        MigrationFigures {
            machine: Some(machine),
            all: Some(Travels::from_migrations(&all)),
            threads: Some(told.collect()),
            threads_left_out,
        }
    }

    fn table(&self, top: usize) -> Table {
        let columns = [
            "thread",
            "turns",
            "moves",
            "%",
            "waiting",
            "core",
            "L3",
            "node",
            "other node",
            "cost ms",
        ];
        let mut table = Table::new(columns, 1);
        if let Some(all) = &self.all {
            table.row(all.row("all".to_owned()));
        }
        for thread in self.threads.iter().flatten().take(top) {
            table.row(thread.travels.row(thread.who.label()));
        }
        table
    }

    fn summary(&self) -> String {
        let machine = self.machine.as_deref().unwrap_or("no machine");
        format!("Distances and costs are those of {machine}.")
    }
}

impl Travels {
    fn from_migrations(travels: &ThreadMigrations) -> Travels {
        let ThreadMigrations { turns, at_wake_up, while_waiting, cost_ns } = *travels;
        Travels { turns, moves: travels.moves(), at_wake_up, while_waiting, cost_ns }
    }

    fn row(&self, name: String) -> [String; 10] {
        let mut far = self.at_wake_up;
        far.add(&self.while_waiting);
        [
            name,
            self.turns.to_string(),
            self.moves.to_string(),
            percent(self.moves, self.turns),
            self.while_waiting.all().to_string(),
            far.same_core.to_string(),
            far.same_l3.to_string(),
            far.same_node.to_string(),
            far.other_node.to_string(),
            ms(self.cost_ns),
        ]
    }
}

impl AnalysisFigures for MigrationFigures {
    fn text(&self, top: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\n{}", self.summary(), self.table(top))?;
        let more = self.threads_left_out + self.threads.iter().flatten().skip(top).count();
        match more {
            0 => Ok(()),
            _ => writeln!(f, "  and {more} more threads that moved less"),
        }
    }

    fn verdict(&self) -> String {
        let Some(all) = &self.all else { return "0 threads were seen.".to_owned() };
        format!(
            "Threads moved to another CPU before {} of {} turns, {} %, which cost {} ms by the model.",
            all.moves,
            all.turns,
            percent(all.moves, all.turns),
            ms(all.cost_ns)
        )
    }

    fn show(&self, top: usize, page: &mut Page) {
        page.section("Moves of threads", self.summary());
        self.table(top).show_on(page);
    }
}
