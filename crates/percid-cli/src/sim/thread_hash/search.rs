//! `percid sim thread-hash --find`: search for the thread IDs that gave a table.

use std::fmt;

use percid_report::{Axis, Page, Strips};
use percid_rules::scan::Width;
use percid_sim::numa::hash::{self, Study};
use percid_sim::numa::hash_search::{self, Match, Matches, Observed};
use serde::Serialize;

use crate::cli::{HashArguments, Wanted};
use percid_command::exit::{Exit, Failure};
use percid_command::output;
use percid_command::report::{self, Report};
use percid_command::text_table::{Align, TextTable};

/// The document of `percid sim thread-hash --find --json`.
#[derive(Debug, Serialize)]
struct Document {
    below: u32,
    /// Number of threads that may be missing.
    allowed_missing: u32,
    #[serde(flatten)]
    found: Matches,
}

/// Maximum number of ranges in the text.
const SHOWN: usize = 50;

pub(super) fn run(arguments: &HashArguments, json: bool) -> Result<Exit, Failure> {
    let report = Report::to(arguments.html.as_deref())?;
    let width = if arguments.bits == 128 { Width::Bits128 } else { Width::Bits64 };
    let tables: Vec<Observed> =
        arguments.find.iter().flat_map(|wanted| observed(wanted, width)).collect();
    let (allowed_missing, below) = (arguments.missing as u32, arguments.below as u32);
    let found = hash_search::search(&tables, allowed_missing, below)
        .map_err(|fault| Failure::Usage(format!("--find: {fault}")))?;
    let document = Document { below, allowed_missing, found };
    let printed = if json { output::print_json(&document) } else { output::print_text(&document) };
    report.write(printed, || document.page(&tables), Exit::Complete)
}

/// Returns the tables of one `--find`. Published ones have 64 bits.
fn observed(wanted: &Wanted, width: Width) -> Vec<Observed> {
    match wanted {
        Wanted::Given(method, frequencies) => {
            vec![Observed { method: *method, width, frequencies: frequencies.clone() }]
        }
        Wanted::Published(name) => {
            let Study { tables, .. } = hash::study(&[]);
            let of_run = tables.into_iter().filter(|table| table.threads.table == *name);
            let table = |table: hash::Table| Observed {
                method: table.method,
                width: Width::Bits64,
                frequencies: table.published,
            };
            of_run.map(table).collect()
        }
    }
}

impl Document {
    fn page(&self, wanted: &[Observed]) -> Page {
        let (found, below) = (self.found.matches.len(), self.below);
        let verdict =
            format!("{found} ranges of consecutive thread IDs below {below} give these tables.");
        let what = "A search for the threads of tables.";
        let mut page = report::page("percid sim thread-hash", verdict, what, false);
        let mut strips = Strips::new(Axis::new("method"), Axis::new("bit"), "threads");
        for table in wanted {
            let count = |bit: u32| *table.frequencies.get(&bit).unwrap_or(&0);
            strips.row(table.method.name(), (0..table.width.bits()).map(count));
        }
        page.chart("Threads by bit, as requested", "", strips);
        page.section("All that was found", "").printed(self.to_string().trim_end());
        page
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Document { below, allowed_missing, found: Matches { missing, matches } } = self;
        if matches.is_empty() {
            let but = match allowed_missing {
                0 => String::new(),
                missing => format!(", even if up to {missing} threads are missing"),
            };
            return writeln!(f, "No consecutive thread IDs below {below} give these tables{but}");
        }
        write!(f, "Consecutive thread IDs below {below} that give these tables")?;
        match missing {
            0 => writeln!(f)?,
            1 => writeln!(f, ", without 1 thread that is missing")?,
            _ => writeln!(f, ", without {missing} threads that are missing")?,
        }
        let mut table = TextTable::new(["first", "last", "main"].map(|name| (name, Align::Right)));
        for Match { first, last, main } in matches.iter().take(SHOWN) {
            let main = main.map_or("among them".to_owned(), |main| main.to_string());
            table.row(vec![first.to_string(), last.to_string(), main]);
        }
        write!(f, "{table}")?;
        match matches.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more; --json shows all"),
        }
    }
}
