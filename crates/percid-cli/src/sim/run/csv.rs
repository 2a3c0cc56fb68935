//! The rows of a comparison as CSV.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use percid_command::exit::Failure;
use percid_sim::columns::{Column, Values};

use percid_sim::results::Results;

/// The name that stands for standard output.
pub(super) const OUTPUT: &str = "-";

/// Writes the table to a file, or to standard output if the path is [`OUTPUT`].
pub(super) fn write(results: &Results, path: &Path) -> Result<(), Failure> {
    let table = results.columns();
    let written = if path.as_os_str() == OUTPUT {
        write_to(&table, results.rows.len(), io::stdout().lock())
    } else {
        File::create(path).and_then(|file| write_to(&table, results.rows.len(), file))
    };
    written.map_err(|cause| Failure::new(format!("cannot write CSV to {}", path.display()), cause))
}

fn write_to(table: &[Column], rows: usize, to: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(table.iter().map(|column| &column.name))?;
    for row in 0..rows {
        writer.write_record(table.iter().map(|column| cell(&column.values, row)))?;
    }
    writer.flush()
}

fn cell(values: &Values, row: usize) -> String {
    let written = match values {
        Values::Text(values) => Some(values[row].clone()),
        Values::Count(values) => values[row].map(|count| count.to_string()),
        Values::Number(values) => values[row].map(|number| number.to_string()),
    };
    written.unwrap_or_default()
}
