//! The analysed recording, and the beginning of every answer.

use std::collections::HashMap;
use std::fmt;

use percid_command::exit::{Exit, Failure};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::report::{self, Report};
use percid_command::trace_questions::QuestionArguments;
use percid_command::watch::watched;
use percid_report::{Page, Tracks};
use percid_sim::run_control::RunControl;
use percid_trace::Trace;
use percid_trace::event::Tid;
use percid_trace::quality::Quality;
use percid_trace::questions::{self, PictureSettings};
use percid_trace::window::Window;
use serde::Serialize;

use super::names::Names;
use crate::info::About;
use crate::printable::labelled;
use crate::times::ms;
use crate::tracks::{self, Cast, Process};
use crate::{file, window};

/// Number of lines in the JSON document, if not more are requested.
const LINES: usize = 10_000;

/// A recording, and the part of it that is analysed.
pub(super) struct LoadedRecording<'a> {
    pub(super) arguments: &'a QuestionArguments,
    report: Report,
    pub(super) interrupt: Interrupt,
    pub(super) trace: Trace,
    pub(super) window: Window,
    pub(super) processes: Vec<Tid>,
    subject_processes: Option<usize>,
    pub(super) quality: Quality,
}

/// The beginning of every answer.
#[derive(Debug, Serialize)]
pub(super) struct Head {
    quality: Quality,
    trace: About,
    from_ns: u64,
    /// `null`: to the end.
    to_ns: Option<u64>,
    /// `true` if Ctrl-C came first: the figures are of the events before that.
    interrupted: bool,
}

/// An answer: its head, then figures, unless the recording cannot support any.
#[derive(Debug, Serialize)]
pub(super) struct Answer<F> {
    #[serde(flatten)]
    head: Head,
    #[serde(flatten)]
    figures: F,
}

/// Operations on the figures of an analysis.
pub(super) trait AnalysisFigures: Serialize {
    /// Writes the figures as text: the first `top` lines of each table.
    fn text(&self, top: usize, to: &mut fmt::Formatter<'_>) -> fmt::Result;
    /// Returns the result: one sentence with a number.
    fn verdict(&self) -> String;
    /// Shows the figures on a page.
    fn show(&self, top: usize, page: &mut Page);
}

impl<'a> LoadedRecording<'a> {
    pub(super) fn load(arguments: &'a QuestionArguments) -> Result<LoadedRecording<'a>, Failure> {
        LoadedRecording::load_unless(arguments, Interrupt::listen()?)
    }

    /// Like [`LoadedRecording::load`], for a caller that already listens for Ctrl-C.
    pub(super) fn load_unless(
        arguments: &'a QuestionArguments,
        interrupt: Interrupt,
    ) -> Result<LoadedRecording<'a>, Failure> {
        let report = Report::to(arguments.html.as_deref())?;
        file::spare(arguments.html.as_deref(), &arguments.file)?;
        let trace = file::load(&arguments.file, &interrupt)?;
        let window = window::within(&trace, &arguments.window.time)?;
        let wanted = window::wanted(&trace, &arguments.window)?;
        let (subject_processes, processes) = (wanted.of_subject(), wanted.processes);
        let quality = Quality::from_trace(&trace);
        Ok(LoadedRecording {
            arguments,
            report,
            interrupt,
            trace,
            window,
            processes,
            subject_processes,
            quality,
        })
    }

    /// Returns `true` if figures may be given.
    pub(super) fn permits_figures(&self) -> bool {
        self.quality.permits_advice()
    }

    /// Lines that the JSON document has.
    pub(super) fn lines(&self) -> usize {
        LINES.max(self.arguments.limit as usize)
    }

    /// Runs the analysis with progress and Ctrl-C.
    pub(super) fn ask<A: Send>(
        &self,
        label: &str,
        answer: impl FnOnce(&RunControl) -> A + Send,
    ) -> A {
        self.ask_repeatedly(label, 1, answer)
    }

    /// Like [`LoadedRecording::ask`], for an analysis that reads the events this number of times.
    pub(super) fn ask_repeatedly<A: Send>(
        &self,
        label: &str,
        times: u64,
        answer: impl FnOnce(&RunControl) -> A + Send,
    ) -> A {
        let total = self.trace.events.len() as u64 * times;
        watched(label, Some(total), &self.interrupt, answer)
    }

    /// Returns the beginning of an answer, and the destination of the page. Frees the trace.
    pub(super) fn into_head(self, is_whole: bool) -> (Head, Report) {
        let LoadedRecording { arguments, report, trace, window, subject_processes, .. } = self;
        let head = Head {
            trace: About::new(&trace, &arguments.file, subject_processes),
            quality: self.quality,
            from_ns: window.from,
            to_ns: (window.to < u64::MAX).then_some(window.to),
            interrupted: !is_whole,
        };
        (head, report)
    }

    /// Returns the tracks of CPUs.
    fn picture(&self) -> Tracks {
        let (window, processes) = (self.window, self.processes.clone());
        let settings = PictureSettings { window, processes, spans: tracks::spans(1) };
        let found =
            self.ask("picture", |control| questions::picture(&self.trace, &settings, control));
        let names = Names::new(&self.trace, &found.known);
        let processes = found.processes.iter().map(|ran| Process {
            label: labelled(&names.process(ran.process), ran.process),
            ms: ms(ran.run_ns),
            threads: ran.threads,
        });
        let places: HashMap<Tid, usize> =
            found.processes.iter().enumerate().map(|(at, ran)| (ran.process, at)).collect();
        let all = found.spans.iter().map(|span| (span.what, span.row));
        let cast = Cast::new(processes.collect(), all, |thread| {
            let named = names.thread(thread);
            Some((named.label(), *places.get(&named.process)?))
        });
        let span = (found.from, found.to);
        let tracks = cast.tracks(&found.spans, span, None, |thread| (thread, 0), tracks::bytes(1));
        tracks.gathered(found.width_ns)
    }

    /// Prints the answer, and writes its page. `is_whole` is `false` if Ctrl-C came first.
    pub(super) fn tell<F: AnalysisFigures>(
        self,
        title: &str,
        figures: F,
        is_whole: bool,
        json: bool,
    ) -> Result<Exit, Failure> {
        let top = self.arguments.limit as usize;
        let is_drawn = self.report.is_wanted() && self.permits_figures() && is_whole;
        let picture = is_drawn.then(|| self.picture());
        let (head, report) = self.into_head(is_whole);
        let answer = Answer { head, figures };
        let printed = match json {
            true => output::print_json(&answer),
            false => output::print_text(&Text { answer: &answer, top }),
        };
        let exit = if is_whole { Exit::Complete } else { Exit::Interrupted };
        let page = || {
            let head = &answer.head;
            let permits = head.quality.permits_advice();
            let verdict = if permits { answer.figures.verdict() } else { head.refusal() };
            let mut page = report::page(title, verdict, &head.to_string(), !is_whole);
            if permits {
                answer.figures.show(top, &mut page);
            }
            if let Some(tracks) = picture {
                page.section("Threads on CPUs", "");
                let text = "Colours are processes; point at them for threads.";
                page.chart("CPUs over time", text, tracks);
            }
            page
        };
        report.write(printed, page, exit)
    }
}

struct Text<'a, F> {
    answer: &'a Answer<F>,
    top: usize,
}

impl<F: AnalysisFigures> fmt::Display for Text<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.answer.head)?;
        match self.answer.head.quality.permits_advice() {
            true => self.answer.figures.text(self.top, f),
            false => Ok(()),
        }
    }
}

impl Head {
    /// Returns the reason why there are no figures.
    pub(super) fn refusal(&self) -> String {
        let switches = self.quality.switches;
        format!("The quality of {switches} recorded switches is insufficient for any figure.")
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.quality, self.trace)?;
        if self.from_ns > 0 || self.to_ns.is_some() {
            write!(f, "From {} s", self.from_ns as f64 / 1e9)?;
            match self.to_ns {
                Some(to) => writeln!(f, " to {} s.", to as f64 / 1e9)?,
                None => writeln!(f, " to the end.")?,
            }
        }
        match self.quality.permits_advice() {
            true => Ok(()),
            false => writeln!(f, "No figures are given."),
        }
    }
}
