//! `percid sim published`: published results compared to simulated ones.
//!
//! One file for each part, with its values, its text and its sections of the report.

mod hash;
mod intermittent;
mod left_out;
mod mask;
mod numa;
mod predictions;
mod sensitivity;

use std::fmt;

use percid_report::Page;
use serde::Serialize;

use super::bounds::Bounds;
use crate::cli::{PublishedArguments, PublishedPart};
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::report::{self, Report};
use percid_command::watch::watched;

use hash::HashFigures;
pub(super) use hash::{runs_table, strips};
use intermittent::IntermittentFigures;
use mask::MaskFigures;
use numa::NumaFigures;
use predictions::PredictionFigures;
use sensitivity::SensitivityFigures;

pub(crate) fn run(arguments: &PublishedArguments, json: bool) -> Result<Exit, Failure> {
    let parts = arguments.part.map_or(COMPARED.to_vec(), |part| vec![part]);
    let fitted = [Part::Intermittent, Part::Mask, Part::Numa];
    if arguments.cross_validate && !parts.iter().any(|part| fitted.contains(part)) {
        let what = "--cross-validate: expected the part intermittent, mask or numa, or none";
        return Err(Failure::Usage(what.to_owned()));
    }
    let report = Report::to(arguments.html.as_deref())?;
    let cross_validate = arguments.cross_validate;
    let interrupt = Interrupt::listen()?;
    let mut session = Session { json, cross_validate, interrupt, printed: Ok(()) };
    let mut document = Document::new(arguments.seed);
    for part in parts {
        session.simulate(part, &mut document);
    }
    document.interrupted = session.interrupt.pressed();
    let printed = session.finish(&document, arguments.part.is_some());
    report.write(printed, || document.page(), document.exit())
}

use PublishedPart as Part;

/// The parts that compare, in the order in which they are shown.
const COMPARED: [Part; 5] =
    [Part::Intermittent, Part::Mask, Part::Numa, Part::Hash, Part::Predictions];

/// The document of `percid sim published --json`. With one part, its keys take the place of its name.
#[derive(Debug, Serialize)]
struct Document {
    seed: u64,
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    intermittent: Option<IntermittentFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mask: Option<MaskFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numa: Option<NumaFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<HashFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<PredictionFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensitivity: Option<SensitivityFigures>,
}

/// One part as the whole document.
#[derive(Debug, Serialize)]
struct Alone<'a> {
    interrupted: bool,
    #[serde(flatten)]
    intermittent: &'a Option<IntermittentFigures>,
    #[serde(flatten)]
    mask: &'a Option<MaskFigures>,
    #[serde(flatten)]
    numa: &'a Option<NumaFigures>,
    #[serde(flatten)]
    hash: &'a Option<HashFigures>,
    #[serde(flatten)]
    predictions: &'a Option<PredictionFigures>,
    #[serde(flatten)]
    sensitivity: &'a Option<SensitivityFigures>,
}

/// One run of `percid sim published`. Text is printed part by part, JSON at the end.
struct Session {
    json: bool,
    cross_validate: bool,
    interrupt: Interrupt,
    /// The result of printing. The report is written even if printing has failed.
    printed: Result<(), Failure>,
}

impl Session {
    /// Simulates a part, unless Ctrl-C was pressed, and shows it. A part that Ctrl-C interrupted is
    /// left out.
    fn simulate(&mut self, part: Part, document: &mut Document) {
        let (seed, interrupt) = (document.seed, &self.interrupt);
        if interrupt.pressed() {
            return;
        }
        match part {
            Part::Intermittent => {
                document.intermittent = self.intermittent(seed);
                self.tell(&document.intermittent);
            }
            Part::Mask => {
                let cross_validate = self.cross_validate;
                let figures = watched("sim published mask", None, interrupt, |control| {
                    let figures = MaskFigures::simulate(seed);
                    if cross_validate { figures.cross_validate(control) } else { figures }
                });
                document.mask = Some(figures);
                self.tell(&document.mask);
            }
            Part::Numa => {
                let cross_validate = self.cross_validate;
                let figures = watched("sim published numa", None, interrupt, |control| {
                    let figures = NumaFigures::simulate(seed);
                    if cross_validate { figures.cross_validate(control) } else { figures }
                });
                document.numa = Some(figures);
                self.tell(&document.numa);
            }
            Part::Hash => {
                document.hash = Some(HashFigures::compute());
                self.tell(&document.hash);
            }
            Part::Predictions => {
                let total = Some(percid_sim::paper::predictions::runs());
                let figures = watched("sim published predictions", total, interrupt, |counters| {
                    PredictionFigures::simulate(seed, counters)
                });
                document.predictions = Some(figures);
                self.tell(&document.predictions);
            }
            Part::Sensitivity => {
                let total = Some(sensitivity::work());
                document.sensitivity =
                    watched("sim published sensitivity", total, interrupt, |counters| {
                        SensitivityFigures::simulate(seed, counters)
                    });
                self.tell(&document.sensitivity);
            }
        }
    }

    /// Simulates the table, and then the fits without its rows if requested.
    fn intermittent(&self, seed: u64) -> Option<IntermittentFigures> {
        let total = Some(percid_sim::paper::intermittent::runs());
        let figures = watched("sim published intermittent", total, &self.interrupt, |counters| {
            IntermittentFigures::simulate(seed, counters)
        })?;
        if !self.cross_validate || self.interrupt.pressed() {
            return Some(figures);
        }
        let total = Some(percid_sim::paper::cross_validation::runs());
        let label = "sim published intermittent --cross-validate";
        Some(watched(label, total, &self.interrupt, |counters| figures.cross_validate(counters)))
    }

    fn tell(&mut self, part: &Option<impl fmt::Display>) {
        if let (Some(part), Ok(()), false) = (part, &self.printed, self.json) {
            self.printed = output::print_text(&format_args!("{part}\n"));
        }
    }

    fn finish(self, document: &Document, alone: bool) -> Result<(), Failure> {
        match (self.json, alone) {
            (true, true) => output::print_json(&document.alone()),
            (true, false) => output::print_json(document),
            (false, _) => {
                if document.interrupted {
                    complain(format_args!("interrupted: what was finished by then is shown"));
                }
                self.printed
            }
        }
    }
}

impl Document {
    fn new(seed: u64) -> Document {
        Document {
            seed,
            interrupted: false,
            intermittent: None,
            mask: None,
            numa: None,
            hash: None,
            predictions: None,
            sensitivity: None,
        }
    }

    fn alone(&self) -> Alone<'_> {
        let Document { intermittent, mask, numa, hash, predictions, sensitivity, .. } = self;
        let interrupted = self.interrupted;
        Alone { interrupted, intermittent, mask, numa, hash, predictions, sensitivity }
    }

    fn exit(&self) -> Exit {
        // A figure that the model misses is a result. Another hash, or an input that is not listed,
        // is a fault.
        let right = self.hash.as_ref().is_none_or(|part| part.bounds.within_bounds)
            && self.sensitivity.as_ref().is_none_or(|part| part.bounds.within_bounds);
        match (right, self.interrupted) {
            (false, _) => Exit::OutOfBounds,
            (true, true) => Exit::Interrupted,
            (true, false) => Exit::Complete,
        }
    }

    /// Returns the result of the only part, or the bounds of all parts.
    fn verdict(&self) -> String {
        let parts = [
            self.intermittent.as_ref().map(|part| (part.result(), &part.bounds)),
            self.mask.as_ref().map(|part| (part.result(), &part.bounds)),
            self.numa.as_ref().map(|part| (part.result(), &part.bounds)),
            self.hash.as_ref().map(|part| (part.result(), &part.bounds)),
            self.predictions.as_ref().map(|part| (part.result(), &part.bounds)),
            self.sensitivity.as_ref().map(|part| (part.result(), &part.bounds)),
        ];
        let mut parts: Vec<(String, &Bounds)> = parts.into_iter().flatten().collect();
        if parts.len() == 1 {
            return parts.remove(0).0;
        }
        let counts = parts.iter().map(|(_, bounds)| bounds.counts());
        let (held, all) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let errors = self.intermittent.as_ref().map_or(String::new(), |part| {
            let told = part.result();
            format!(", and {}{}", told[..1].to_lowercase(), &told[1..told.len() - 1])
        });
        format!("{held} of {all} bounds of {} parts hold{errors}.", parts.len())
    }

    fn page(&self) -> Page {
        let what = format!("Published results beside simulated ones, seed {}.", self.seed);
        let title = "percid sim published";
        let mut page = report::page(title, self.verdict(), &what, self.interrupted);
        page.colours(percid_sim::paper::table::POLICIES);
        if let Some(part) = &self.intermittent {
            part.show_on(&mut page);
        }
        if let Some(part) = &self.mask {
            part.show_on(&mut page, self.seed);
        }
        if let Some(part) = &self.numa {
            part.show_on(&mut page);
        }
        if let Some(part) = &self.hash {
            part.show_on(&mut page);
        }
        if let Some(part) = &self.predictions {
            part.show_on(&mut page);
        }
        if let Some(part) = &self.sensitivity {
            part.show_on(&mut page);
        }
        page
    }
}
