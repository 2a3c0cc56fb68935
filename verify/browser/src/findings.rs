//! What the probe reports, and what is wrong with it.

use serde::Deserialize;

/// Text is told from its background at this ratio: WCAG 2.1, criterion 1.4.3.
const READABLE: f64 = 4.5;

/// What `probe.js` has seen.
#[derive(Debug, Deserialize)]
pub struct Findings {
    /// Of scripts, of the console, and what the policy has forbidden.
    pub errors: Vec<String>,
    /// Whether the page was told that the reader prefers dark.
    pub dark: bool,
    /// Of the page's window, in CSS pixels.
    pub width: u32,
    /// CSS pixels by which the page is wider than its window.
    overflow: f64,
    /// The charts in their order.
    pub charts: Vec<Chart>,
    /// Texts whose contrast was computed.
    pub texts: usize,
    /// The lowest contrast of any of them.
    pub lowest_contrast: f64,
    /// Those with the lowest contrast: the text, and the ratio.
    faintest: Vec<(String, f64)>,
    /// The start of a plot saved as a picture.
    pub image: String,
}

/// What the probe has seen of one chart.
#[derive(Debug, Deserialize)]
pub struct Chart {
    id: String,
    /// What the page says of it: drawn or failed.
    state: Option<String>,
    /// Bars, lines' paths and points that have an extent.
    pub marks: usize,
    /// The height of the lowest bar, in CSS pixels.
    pub lowest_bar: Option<f64>,
    /// Pairs of texts that lie upon each other.
    overlaps: Vec<(String, String)>,
    /// Texts that reach beyond the plot.
    cut: Vec<String>,
    /// All texts of the plot.
    pub words: Vec<String>,
    /// What appears when one points at the first mark.
    pub hover: String,
}

impl Findings {
    /// Reads them out of the window's document.
    pub(crate) fn read(dom: &str) -> Option<Findings> {
        let (_, rest) = dom.split_once("<pre id=\"findings\">")?;
        let (json, _) = rest.split_once("</pre>")?;
        let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}");
        serde_json::from_str(&json.replace("&amp;", "&")).ok()
    }

    /// All that is wrong if the charts should have these numbers of marks.
    pub fn problems(&self, marks: &[usize]) -> Vec<String> {
        let mut problems = self.errors.clone();
        if self.overflow > 0.0 {
            problems.push(format!("{} pixels wider than the window", self.overflow));
        }
        if self.charts.len() != marks.len() {
            problems.push(format!("{} charts, expected {}", self.charts.len(), marks.len()));
        }
        for (chart, marks) in self.charts.iter().zip(marks) {
            problems.extend(chart.problems(*marks));
        }
        let faint = self.faintest.iter().filter(|(_, ratio)| *ratio < READABLE);
        problems.extend(faint.map(|(text, ratio)| format!("contrast {ratio:.2}: {text:?}")));
        problems
    }
}

impl Chart {
    fn problems(&self, marks: usize) -> Vec<String> {
        let Chart { id, .. } = self;
        let mut problems = Vec::new();
        if self.state.as_deref() != Some("drawn") {
            problems.push(format!("{id}: {}", self.state.as_deref().unwrap_or("not drawn")));
        }
        if self.marks != marks {
            problems.push(format!("{id}: {} marks, expected {marks}", self.marks));
        }
        let overlaps = self.overlaps.iter();
        problems.extend(overlaps.map(|(one, other)| format!("{id}: {one:?} overlaps {other:?}")));
        problems.extend(self.cut.iter().map(|text| format!("{id}: {text:?} is cut off")));
        problems
    }
}
