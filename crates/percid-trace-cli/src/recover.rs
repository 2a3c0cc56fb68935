//! `percid trace recover`: the file of a recording whose recorder was killed.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use percid_command::exit::{Exit, Failure};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::trace::RecoverArguments;
use percid_trace::Error;
use percid_trace::quality::Quality;
use percid_trace::record::UNWRITTEN;
use percid_trace::spool::{Spooled, Stored};
use serde::Serialize;

use crate::file;
use crate::finish::finish;
use crate::partial;

pub(crate) fn run(arguments: &RecoverArguments, json: bool) -> Result<Exit, Failure> {
    file::check_parquet()?;
    let output = output_of(arguments)?;
    file::check_writable(&output)?;
    let spooled = open(&arguments.file)?;
    let interrupt = Interrupt::listen()?;
    let stored = finish(&spooled, &output, &interrupt)?;
    let removed = fs::remove_file(&arguments.file);
    removed.map_err(|cause| {
        Failure::new(format!("cannot remove {}", arguments.file.display()), cause)
    })?;
    let recovered = Recovered::new(stored, &output);
    if json {
        output::print_json(&recovered)?
    } else {
        output::print_text(&recovered)?
    }
    Ok(Exit::Complete)
}

fn output_of(arguments: &RecoverArguments) -> Result<PathBuf, Failure> {
    let file = &arguments.file;
    let name = file.file_name().and_then(|name| name.to_str());
    let without = name.and_then(|name| name.strip_suffix(partial::ENDING));
    let default = without.filter(|name| !name.is_empty()).map(|name| file.with_file_name(name));
    arguments.output.clone().or(default).ok_or_else(|| {
        let expected = "expected a name that ends in .partial, or --output";
        Failure::Usage(format!("{}: {expected}", file.display()))
    })
}

fn open(path: &Path) -> Result<Spooled, Failure> {
    let opened = File::open(path).map_err(Error::Io).and_then(Spooled::open);
    opened.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// Summary of the recovered recording.
#[derive(Debug, Serialize)]
struct Recovered {
    /// The conclusions that it permits.
    quality: Quality,
    file: String,
    events: u64,
    numa_events: u64,
    counted_turns: u64,
    lost: u64,
    duration_ns: u64,
    /// `true` if its end is missing.
    cut_off: bool,
    /// Bytes that were being written.
    left_out_bytes: u64,
}

impl Recovered {
    fn new(stored: Stored, output: &Path) -> Recovered {
        let Stored { events, numa_events, counted_turns, duration_ns, origin, quality, .. } =
            stored;
        Recovered {
            quality,
            file: output.display().to_string(),
            events,
            numa_events,
            counted_turns,
            lost: origin.lost,
            duration_ns,
            cut_off: origin.coverage.cut_off,
            left_out_bytes: stored.left_out,
        }
    }
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recovered { file, events, left_out_bytes, .. } = self;
        write!(f, "{file}: {events} events in {:.3} s", self.duration_ns as f64 / 1e9)?;
        if self.numa_events > 0 {
            write!(f, ", {} more of NUMA balancing", self.numa_events)?;
        }
        if self.counted_turns > 0 {
            write!(f, ", {} turns counted", self.counted_turns)?;
        }
        match self.cut_off {
            true => write!(
                f,
                "; cut off: what happened in about the last {} s before is missing",
                UNWRITTEN.as_secs_f64()
            )?,
            false => write!(f, "; it had come to its end")?,
        }
        match left_out_bytes {
            0 => writeln!(f),
            bytes => writeln!(f, "; {bytes} bytes at the end of it cannot be read"),
        }?;
        writeln!(f, "{}", self.quality)
    }
}
