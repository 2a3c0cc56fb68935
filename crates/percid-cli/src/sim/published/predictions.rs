//! Predictions of the model for values to which nothing was fitted.

use std::fmt;

use percid_report as html;
use percid_sim::paper::bounds;
use percid_sim::paper::prediction::{Accepted, Prediction, Published};
use percid_sim::paper::predictions;
use percid_sim::run_control::RunControl;
use serde::Serialize;

use crate::sim::bounds::Bounds;
use crate::sim::errors;
use crate::sim::numbers::{figure, optional, percent};
use percid_command::table::{Cell, Table};

/// The keys of this part in the JSON document.
#[derive(Debug, Serialize)]
pub(super) struct PredictionFigures {
    rows: Vec<PredictionRow>,
    #[serde(flatten)]
    pub(super) bounds: Bounds,
}

/// A prediction with its error against the published value.
#[derive(Debug, Serialize)]
struct PredictionRow {
    #[serde(flatten)]
    prediction: Prediction,
    /// The error as a share; `None` if nothing was published.
    error: Option<f64>,
}

const TITLE: &str = "Predictions: what the model says where nothing was fitted, and how that stands to what is known";

impl PredictionFigures {
    pub(super) fn simulate(seed: u64, progress: &RunControl) -> PredictionFigures {
        let predictions = predictions::predictions(seed, progress);
        let bounds = Bounds::new(bounds::predictions(&predictions));
        let row = |prediction: Prediction| PredictionRow { error: prediction.error(), prediction };
        PredictionFigures { rows: predictions.into_iter().map(row).collect(), bounds }
    }

    fn table(&self) -> Table {
        let columns = [
            "what",
            "kind",
            "unit",
            "simulated",
            "published",
            "error",
            "earlier model",
            "accepted",
            "source",
        ];
        let mut table = Table::new(columns, 3).ending_in_texts(2);
        for PredictionRow { prediction, error } in &self.rows {
            let judged = bounds::prediction(prediction);
            table.row([
                Cell::from(prediction.what.as_str()),
                Cell::from(prediction.kind.name()),
                Cell::from(prediction.unit),
                Cell::judged(figure(prediction.model), judged.is_some_and(|bound| !bound.holds)),
                Cell::from(prediction.published.map_or("-".to_owned(), told)),
                Cell::from(percent(error.map(|error| 100.0 * error))),
                Cell::from(optional(prediction.earlier)),
                Cell::from(accepted(&prediction.bound)),
                Cell::from(prediction.source.as_str()),
            ]);
        }
        table
    }

    pub(super) fn show_on(&self, page: &mut html::Page) {
        let (result, bounds) = (self.result(), self.bounds.verdict());
        let text = format!("{result} {} rows. {bounds}\n\n{TITLE}.", self.rows.len());
        page.section("Predictions", text);
        let (near, far) = self.ratios();
        let far: Vec<&str> = far.iter().map(|row| row.prediction.what.as_str()).collect();
        let told = format!(
            "In multiples of the published figure, or of the nearest of a published range. Values \
             of zero or less, and errors of more than ten times, are in the table only: {}.",
            if far.is_empty() { "nothing".to_owned() } else { far.join(", ") }
        );
        page.chart("Simulated beside published", told, dots(&near));
        self.table().show_as("All predictions", page);
        self.bounds.show_on(page);
    }

    /// Returns the values whose ratio to a published one can be drawn, whatever their units. Values
    /// that differ by more than a factor of ten are returned separately, because they would hide
    /// the differences of the others.
    fn ratios(&self) -> (Vec<&PredictionRow>, Vec<&PredictionRow>) {
        let has_ratio =
            |row: &&PredictionRow| row.error.is_some_and(|error| error > -1.0) && row.is_positive();
        let is_near = |row: &&PredictionRow| {
            row.error.is_some_and(|error| (0.1..=10.0).contains(&(1.0 + error)))
        };
        self.rows.iter().filter(has_ratio).partition(is_near)
    }

    pub(super) fn result(&self) -> String {
        let error = self
            .rows
            .iter()
            .filter(|row| row.prediction.kind.counts())
            .filter_map(|row| Some((row.prediction.what.clone(), 100.0 * row.error?)));
        errors::sentence("figures", error)
    }
}

impl PredictionRow {
    fn is_positive(&self) -> bool {
        let least = self.prediction.published.map(|published| match published {
            Published::Exactly(least) | Published::Between(least, _) => least,
        });
        self.prediction.model > 0.0 && least.is_some_and(|least| least > 0.0)
    }

    fn name(&self) -> String {
        let Prediction { what, unit, .. } = &self.prediction;
        if unit.is_empty() { what.clone() } else { format!("{what}, {unit}") }
    }
}

fn dots(rows: &[&PredictionRow]) -> html::Dots {
    let ratio = html::Axis::new("simulated").unit("times published").logarithmic();
    let dots = html::Dots::new(html::Axis::new("prediction"), ratio, ["published", "simulated"]);
    let mut dots = dots.reference().notes(["published", "simulated", "error"]);
    for row in rows {
        let dot = html::Dot::new([Some(1.0), row.error.map(|error| 1.0 + error)]);
        let dot = dot.note(row.prediction.published.map_or(String::new(), told));
        let dot = dot.note(figure(row.prediction.model));
        let dot = dot.note(percent(row.error.map(|error| 100.0 * error)));
        dots.row(row.name(), [dot]);
    }
    dots
}

fn told(published: Published) -> String {
    match published {
        Published::Exactly(one) => figure(one),
        Published::Between(least, most) => format!("{} to {}", figure(least), figure(most)),
    }
}

fn accepted(accepted: &Accepted) -> String {
    match accepted {
        Accepted::Within(least, most) if most.is_infinite() => {
            format!("at least {}", figure(*least))
        }
        Accepted::Within(least, most) => format!("{} to {}", figure(*least), figure(*most)),
        Accepted::NoBound(why) => format!("no bound: {why}"),
    }
}

impl fmt::Display for PredictionFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TITLE}\n{}", self.table())?;
        write!(f, "{}", self.bounds)
    }
}
