//! Names of the threads in an answer.

use std::collections::HashMap;

use percid_trace::Trace;
use percid_trace::event::Tid;
use percid_trace::interner::Text;
use percid_trace::questions::Who;
use percid_trace::threads::{ThreadNumber, Threads};
use serde::Serialize;

use crate::printable::labelled;

/// A thread and its process.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Named {
    pub(crate) thread: Tid,
    pub(crate) name: String,
    pub(crate) process: Tid,
}

/// Names of threads and processes.
pub(crate) struct Names<'a> {
    trace: &'a Trace,
    known: &'a Threads,
    processes: HashMap<Tid, Text>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(trace: &'a Trace, known: &'a Threads) -> Names<'a> {
        let all = (0..known.len() as ThreadNumber).map(|thread| known.get(thread));
        let first = all.filter(|thread| thread.tid == thread.process_or_self());
        let processes = first.filter_map(|thread| Some((thread.tid, thread.name?))).collect();
        Names { trace, known, processes }
    }

    pub(crate) fn thread(&self, thread: ThreadNumber) -> Named {
        let known = self.known.get(thread);
        Named { thread: known.tid, name: self.text(known.name), process: known.process_or_self() }
    }

    /// The name of a process is that of its first thread.
    pub(crate) fn process(&self, process: Tid) -> String {
        self.text(self.processes.get(&process).copied())
    }

    /// Returns the name of what ran, for people.
    pub(crate) fn who(&self, who: Who) -> String {
        match who {
            Who::Thread(thread) => self.thread(thread).label(),
            Who::Idle => "idle".to_owned(),
            Who::Unknown => "unknown".to_owned(),
        }
    }

    fn text(&self, text: Option<Text>) -> String {
        text.map_or("", |text| self.trace.texts.get(text)).to_owned()
    }
}

impl Named {
    /// Returns the name for people.
    pub(crate) fn label(&self) -> String {
        labelled(&self.name, self.thread)
    }
}
