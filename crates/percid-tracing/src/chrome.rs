//! The trace event format, in which slices of a thread must nest.
//!
//! Spans need not nest: one may be exited while others, entered later on the same thread, continue.
//! Then those are ended too, and begun again at the same time. If the entry of a span is lost, it
//! has no slice, and its exit is shown as an instant. If its exit is lost, the slice ends when the
//! span is closed. Otherwise it has no end, and viewers extend it to the end of the trace.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

use serde_json::{Map, Value as Json, json};

use crate::decode::Record;
use crate::json;
use crate::layout::Kind;
use crate::snapshot::RecorderSnapshot;
use crate::thread;

pub(crate) fn write(snapshot: &RecorderSnapshot<'_>, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"traceEvents\":[\n")?;
    let mut slices = Slices::new(snapshot.process);
    for (id, record) in snapshot.records() {
        slices.add(id, &record);
        slices.write_events(out)?;
    }
    slices.name_threads();
    slices.write_events(out)?;
    let summary = snapshot.summary;
    let other = json!({
        "records": summary.records,
        "lost": summary.lost,
        "damaged": summary.damaged,
        "started_at": snapshot.started_at.as_secs_f64(),
    });
    writeln!(out, "],\"displayTimeUnit\":\"ns\",\"otherData\":{other}}}")
}

/// A slice of a thread that has begun.
#[derive(Debug, Clone)]
struct Slice {
    span: u64,
    name: &'static str,
    target: &'static str,
}

#[derive(Debug)]
struct Slices {
    process: u32,
    /// The open slices of each thread, the innermost last.
    open: HashMap<u32, Vec<Slice>>,
    /// The fields of spans that are not closed.
    fields: HashMap<u64, Map<String, Json>>,
    threads: BTreeSet<u32>,
    /// Events that are not written yet.
    events: Vec<Json>,
    /// `true` if an event was written: the next one follows a comma.
    begun: bool,
}

impl Slices {
    fn new(process: u32) -> Slices {
        Slices {
            process,
            open: HashMap::new(),
            fields: HashMap::new(),
            threads: BTreeSet::new(),
            events: Vec::new(),
            begun: false,
        }
    }

    fn add(&mut self, id: Option<u32>, record: &Record<'_>) {
        self.threads.insert(record.thread);
        let span = record.span.unwrap_or_default();
        match record.kind {
            Kind::Event => self.instant(id, record, String::new()),
            Kind::New => drop(self.fields.insert(span, json::fields(record))),
            Kind::Set => {
                self.fields.entry(span).or_default().extend(json::fields(record));
                self.instant(id, record, "record ".to_owned());
            }
            Kind::Enter => self.enter(record, span),
            Kind::Exit => {
                if !self.exit(record.thread, span, record.time) {
                    self.instant(id, record, "exit ".to_owned());
                }
            }
            Kind::Close => self.close(span, record.time),
            Kind::Follows => self.instant(id, record, "follows from: ".to_owned()),
        }
    }

    fn enter(&mut self, record: &Record<'_>, span: u64) {
        let (name, target) = (record.metadata.name(), record.metadata.target());
        let slice = Slice { span, name, target };
        self.begin(record.thread, &slice, record.time);
        self.open.entry(record.thread).or_default().push(slice);
    }

    /// Ends the innermost slice of a span. Returns `false` if there is none.
    fn exit(&mut self, thread: u32, span: u64, time: u64) -> bool {
        let open = self.open.entry(thread).or_default();
        let Some(place) = open.iter().rposition(|slice| slice.span == span) else {
            return false;
        };
        let inner = open.split_off(place + 1);
        open.pop();
        for _ in 0..=inner.len() {
            self.end(thread, time);
        }
        for slice in &inner {
            self.begin(thread, slice, time);
        }
        self.open.entry(thread).or_default().extend(inner);
        true
    }

    /// Ends all slices of a closed span. If there are any, their exits were lost.
    fn close(&mut self, span: u64, time: u64) {
        let of_span = |(thread, slices): (&u32, &Vec<Slice>)| {
            vec![*thread; slices.iter().filter(|slice| slice.span == span).count()]
        };
        let threads: Vec<u32> = self.open.iter().flat_map(of_span).collect();
        for thread in threads {
            self.exit(thread, span, time);
        }
        self.fields.remove(&span);
    }

    fn begin(&mut self, thread: u32, slice: &Slice, time: u64) {
        let mut args = self.fields.get(&slice.span).cloned().unwrap_or_default();
        args.insert("span".to_owned(), slice.span.into());
        self.events.push(json!({
            "ph": "B", "pid": self.process, "tid": thread, "ts": microseconds(time),
            "name": slice.name, "cat": slice.target, "args": args,
        }));
    }

    fn end(&mut self, thread: u32, time: u64) {
        self.events.push(json!({
            "ph": "E", "pid": self.process, "tid": thread, "ts": microseconds(time),
        }));
    }

    fn instant(&mut self, id: Option<u32>, record: &Record<'_>, verb: String) {
        let fields = json::fields(record);
        let message = fields.get("message").and_then(Json::as_str);
        let name = verb + message.unwrap_or(record.metadata.name());
        self.events.push(json!({
            "ph": "i", "s": "t", "pid": self.process, "tid": record.thread,
            "ts": microseconds(record.time), "name": name, "cat": record.metadata.target(),
            "args": {
                "level": record.metadata.level().as_str(),
                "cpu": record.cpu, "id": id, "span": record.span,
                "other_span": record.other.map(|other| other.id),
                "fields": fields, "cut": json::cut(record), "fields_left_out": record.left_out,
            },
        }));
    }

    fn name_threads(&mut self) {
        for thread in &self.threads {
            let known = thread::known(*thread);
            let name = known.name.unwrap_or_else(|| format!("thread {thread}"));
            let system = known.system_number.map_or(String::new(), |number| format!(" ({number})"));
            self.events.push(json!({
                "ph": "M", "pid": self.process, "tid": thread, "name": "thread_name",
                "args": {"name": name + &system},
            }));
        }
    }

    fn write_events(&mut self, out: &mut impl Write) -> io::Result<()> {
        for event in self.events.drain(..) {
            if self.begun {
                out.write_all(b",\n")?;
            }
            self.begun = true;
            serde_json::to_writer(&mut *out, &event)?;
        }
        Ok(())
    }
}

/// Returns the time in the format's unit.
fn microseconds(time: u64) -> f64 {
    time as f64 / 1000.0
}
