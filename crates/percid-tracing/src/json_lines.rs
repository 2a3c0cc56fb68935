//! The format with a JSON object per line.

use std::io::{self, Write};

use serde_json::{Map, Value as Json, json};

use crate::decode::Record;
use crate::json;
use crate::layout::Kind;
use crate::snapshot::RecorderSnapshot;
use crate::thread;

pub(crate) fn write(snapshot: &RecorderSnapshot<'_>, out: &mut impl Write) -> io::Result<()> {
    for (id, record) in snapshot.records() {
        write_line(&Json::Object(line(id, &record)), out)?;
    }
    let summary = snapshot.summary;
    let line = json!({
        "kind": "dump",
        "records": summary.records,
        "lost": summary.lost,
        "damaged": summary.damaged,
        "process": snapshot.process,
        "started_at": snapshot.started_at.as_secs_f64(),
    });
    write_line(&line, out)
}

fn write_line(line: &Json, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

fn line(id: Option<u32>, record: &Record<'_>) -> Map<String, Json> {
    let metadata = record.metadata;
    let thread = thread::known(record.thread);
    let mut line = Map::new();
    let mut add = |name: &str, value: Json| line.insert(name.to_owned(), value);
    add("time", record.time.into());
    add("kind", kind(record.kind).into());
    add("level", metadata.level().as_str().into());
    add("target", metadata.target().into());
    add("name", metadata.name().into());
    add("thread", record.thread.into());
    thread.name.map(|name| add("thread_name", name.into()));
    thread.system_number.map(|number| add("tid", number.into()));
    record.cpu.map(|cpu| add("cpu", cpu.into()));
    id.map(|id| add("id", id.into()));
    record.span.map(|span| add("span", span.into()));
    if let Some(other) = record.other {
        add(role(record.kind), json!({"span": other.id, "name": other.name}));
    }
    add("fields", json::fields(record).into());
    let cut = json::cut(record);
    if !cut.is_empty() {
        add("cut", cut.into());
    }
    if record.left_out {
        add("fields_left_out", true.into());
    }
    line
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Event => "event",
        Kind::New => "new_span",
        Kind::Set => "record",
        Kind::Enter => "enter",
        Kind::Exit => "exit",
        Kind::Close => "close",
        Kind::Follows => "follows_from",
    }
}

/// Returns the name of the other span's role.
fn role(kind: Kind) -> &'static str {
    if kind == Kind::Follows { "follows" } else { "parent" }
}
