//! The results of the probe, and the faults in them.

use serde::Deserialize;

/// Minimum contrast between text and its background: WCAG 2.1, criterion 1.4.3.
const READABLE: f64 = 4.5;
/// Maximum size of a page, in bytes.
const LARGEST: usize = 1_000_000;
/// The results of `probe.js`.
#[derive(Debug, Deserialize)]
pub struct Findings {
    /// The size of the page, in bytes.
    #[serde(default)]
    pub(crate) size: usize,
    /// Errors of scripts, of the console, and violations of the policy.
    pub errors: Vec<String>,
    /// `true` if the page was told that the reader prefers dark.
    pub dark: bool,
    /// The width of the page's window, in CSS pixels.
    pub width: u32,
    /// The height of the page as shown to readers, in CSS pixels.
    pub(crate) height: u32,
    /// CSS pixels by which the page is wider than its window.
    overflow: f64,
    /// Boxes whose content is wider than they are.
    scrolled: Vec<String>,
    /// Faults of the beginning of the page: a sentence with a number, and a chart if it has any.
    opening: Vec<String>,
    /// Charts that keyboard or screen readers cannot reach by a name.
    nameless: Vec<String>,
    /// Lines that others hide.
    covered: Vec<String>,
    /// Pairs of texts that overlap.
    overlaps: Vec<(String, String)>,
    /// Texts that exceed their cell of a table.
    cut: Vec<String>,
    /// Words of which a part stands on the next line.
    broken: Vec<String>,
    /// The charts in their order.
    pub charts: Vec<Chart>,
    /// Texts that were looked at.
    pub texts: usize,
    /// The lowest contrast of any of them.
    pub lowest_contrast: f64,
    /// Those with the lowest contrast: the text, and the ratio.
    faintest: Vec<(String, f64)>,
    /// The time lines that can be zoomed into: at first, and after the buttons for zooming in
    /// twice, for later, earlier, out, and the whole. Only one if there are no buttons, as without
    /// a script.
    #[serde(default)]
    pub zooms: Vec<Zoom>,
}

/// The contents of the time lines of a page.
#[derive(Debug, Deserialize)]
pub struct Zoom {
    /// The start and end of each of them, in nanoseconds: two numbers. Empty until a script has
    /// drawn it.
    pub views: Vec<String>,
    /// Paths that have an extent.
    pub marks: Vec<usize>,
}

impl Zoom {
    /// Returns the length of the time that the first of them shows, in nanoseconds.
    ///
    /// # Panics
    ///
    /// Panics if it was not drawn by a script.
    pub fn length(&self) -> f64 {
        let view = self.views.first().and_then(|view| view.split_once(' '));
        let (from, to) = view.expect("it shows a part of the time");
        let [from, to] = [from, to].map(|time| time.parse::<f64>().expect("a number"));
        to - from
    }
}

/// The results of the probe for one chart.
#[derive(Debug, Deserialize)]
pub struct Chart {
    id: String,
    /// Bars, lines, points and spans that have an extent.
    pub marks: usize,
    /// Texts that exceed the page.
    cut: Vec<String>,
    /// All texts of the plot.
    pub words: Vec<String>,
    /// The text that appears when the pointer is over the first mark.
    pub hover: String,
}

impl Findings {
    /// Reads the results of `windows` windows from the document.
    pub(crate) fn read(dom: &str, windows: usize) -> Option<Vec<Findings>> {
        let (_, rest) = dom.split_once("<pre id=\"findings\">")?;
        let (json, _) = rest.split_once("</pre>")?;
        let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}");
        let found: Vec<Findings> = serde_json::from_str(&json.replace("&amp;", "&")).ok()?;
        (found.len() == windows).then_some(found)
    }

    /// Returns all problems of a report whose charts should have these numbers of marks.
    pub fn problems(&self, marks: &[usize]) -> Vec<String> {
        let mut problems = self.layout();
        problems.extend(self.opening.iter().map(|fault| format!("opening: {fault}")));
        if self.charts.len() != marks.len() {
            problems.push(format!("{} charts, expected {}", self.charts.len(), marks.len()));
        }
        for (Chart { id, marks, .. }, expected) in self.charts.iter().zip(marks) {
            if marks != expected {
                problems.push(format!("{id}: {marks} marks, expected {expected}"));
            }
        }
        problems
    }

    /// Returns all problems of the layout and of the reading of the page, which need not be a
    /// report that opens with its verdict.
    pub fn layout(&self) -> Vec<String> {
        let mut problems = self.errors.clone();
        if self.size > LARGEST {
            problems.push(format!("{} bytes, expected {LARGEST} at most", self.size));
        }
        if self.overflow > 0.0 {
            problems.push(format!("{} pixels wider than the window", self.overflow));
        }
        problems
            .extend(self.nameless.iter().map(|chart| format!("no name or not reached: {chart}")));
        problems.extend(self.covered.iter().map(|line| format!("hidden by other lines: {line:?}")));
        let scrolled = self.scrolled.iter();
        problems.extend(scrolled.map(|label| format!("scrolls sideways: {label:?}")));
        let overlaps = self.overlaps.iter();
        problems.extend(overlaps.map(|(one, other)| format!("{one:?} overlaps {other:?}")));
        let cut = self.cut.iter().chain(self.charts.iter().flat_map(|chart| &chart.cut));
        problems.extend(cut.map(|text| format!("{text:?} is cut off")));
        problems.extend(self.broken.iter().map(|word| format!("{word:?} is broken")));
        let faint = self.faintest.iter().filter(|(_, ratio)| *ratio < READABLE);
        problems.extend(faint.map(|(text, ratio)| format!("contrast {ratio:.2}: {text:?}")));
        problems
    }
}
