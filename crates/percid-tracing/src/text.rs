//! Lines for people: one for each record, for any content.

use std::fmt::{self, Display, Formatter, Write as _};
use std::io::{self, Write};

use crate::decode::{Record, Text, Value};
use crate::json;
use crate::layout::Kind;
use crate::snapshot::RecorderSnapshot;
use crate::thread;

pub(crate) fn write(snapshot: &RecorderSnapshot<'_>, out: &mut impl Write) -> io::Result<()> {
    let summary = snapshot.summary;
    writeln!(
        out,
        "flight recorder of process {}, built {:.6} s after 1970: {} records, {} lost, {} damaged",
        snapshot.process,
        snapshot.started_at.as_secs_f64(),
        summary.records,
        summary.lost,
        summary.damaged,
    )?;
    snapshot.records().try_for_each(|(_, record)| writeln!(out, "{}", Line(&record)))
}

struct Line<'r>(&'r Record<'r>);

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let record = self.0;
        let (seconds, nanoseconds) = (record.time / 1_000_000_000, record.time % 1_000_000_000);
        write!(f, "{seconds:6}.{nanoseconds:09} {}", record.thread)?;
        if let Some(name) = thread::known(record.thread).name {
            write!(f, "({})", Escaped(&name))?;
        }
        if let Some(cpu) = record.cpu {
            write!(f, " cpu{cpu}")?;
        }
        let metadata = record.metadata;
        write!(f, " {:5} {}:", metadata.level().as_str(), Escaped(metadata.target()))?;
        self.what(f)
    }
}

impl Line<'_> {
    /// Writes what happened, to which span, with which values, in which span.
    fn what(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let record = self.0;
        f.write_str(verb(record.kind))?;
        if let Some(span) = record.span {
            write!(f, " {}#{span}", Escaped(record.metadata.name()))?;
        }
        for (name, value) in &record.fields {
            match (*name, value) {
                ("message", Value::Str(text) | Value::Debug(text)) => {
                    write!(f, " {}", Escaped(&json::marked(*text)))?;
                }
                (name, value) => write!(f, " {}={}", Escaped(name), Shown(value))?,
            }
        }
        if record.left_out {
            f.write_str(" (fields left out)")?;
        }
        let preposition = if record.kind == Kind::Follows { "after" } else { "in" };
        record.other.map_or(Ok(()), |other| {
            write!(f, " {preposition} {}#{}", Escaped(other.name), other.id)
        })
    }
}

fn verb(kind: Kind) -> &'static str {
    match kind {
        Kind::Event => "",
        Kind::New => " new",
        Kind::Set => " record",
        Kind::Enter => " enter",
        Kind::Exit => " exit",
        Kind::Close => " close",
        Kind::Follows => " follows",
    }
}

/// A text whose non-printable characters are escaped. Quotes are not escaped, because nothing is
/// quoted.
struct Escaped<'t>(&'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '"' | '\'' => f.write_char(character),
            character => write!(f, "{}", character.escape_debug()),
        })
    }
}

struct Shown<'v>(&'v Value<'v>);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::I64(number) => write!(f, "{number}"),
            Value::U64(number) => write!(f, "{number}"),
            Value::F64(number) => write!(f, "{number:?}"),
            Value::I128(number) => write!(f, "{number}"),
            Value::U128(number) => write!(f, "{number}"),
            Value::Bool(bool) => write!(f, "{bool}"),
            Value::Str(Text { text, cut }) => {
                write!(f, "{text:?}{}", if *cut { "…" } else { "" })
            }
            Value::Debug(text) => write!(f, "{}", Escaped(&json::marked(*text))),
        }
    }
}
