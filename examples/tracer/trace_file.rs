//! The trace-event format of Chrome and Perfetto: JSON that <https://ui.perfetto.dev> and
//! `chrome://tracing` show. Times are in microseconds.

use std::io::{self, Write};

use serde::Serialize;

use crate::event::{Event, Phase};
use crate::nesting::Nested;

/// A trace that is being written.
#[derive(Debug)]
pub(crate) struct TraceFile<W> {
    out: W,
    process: u32,
}

impl<W: Write> TraceFile<W> {
    /// Begins a trace of this process, with the names of its threads.
    pub(crate) fn begin(mut out: W, threads: &[String]) -> io::Result<TraceFile<W>> {
        let process = std::process::id();
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        for (thread, name) in threads.iter().enumerate() {
            let separator = if thread == 0 { "" } else { "," };
            let name = serde_json::to_string(name)?;
            write!(
                out,
                "{separator}\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{process},\
                 \"tid\":{thread},\"args\":{{\"name\":{name}}}}}"
            )?;
        }
        Ok(TraceFile { out, process })
    }

    /// Writes an event.
    pub(crate) fn write(&mut self, nested: &Nested) -> io::Result<()> {
        let Event { time, task, thread, name, phase, .. } = nested.event;
        let (name, process) = (name.text(), self.process);
        let (micros, nanos) = (time / 1000, time % 1000);
        write!(
            self.out,
            ",\n{{\"name\":\"{name}\",\"pid\":{process},\"tid\":{thread},\"ts\":{micros}.{nanos:03},"
        )?;
        match phase {
            Phase::Begin => write!(self.out, "\"ph\":\"B\",\"args\":{{\"task\":{task}}}}}"),
            Phase::End if nested.end_lost => {
                write!(self.out, "\"ph\":\"E\",\"args\":{{\"end\":\"lost\"}}}}")
            }
            Phase::End => write!(self.out, "\"ph\":\"E\"}}"),
        }
    }

    /// Ends the trace with its metadata.
    pub(crate) fn finish(mut self, metadata: &impl Serialize) -> io::Result<()> {
        write!(self.out, "\n],\"otherData\":")?;
        serde_json::to_writer(&mut self.out, metadata)?;
        writeln!(self.out, "}}")?;
        self.out.flush()
    }
}
