//! A chart: the plot, what it shows in words, and its numbers.

use crate::bars::Bars;
use crate::drawing::Drawing;
use crate::escape;
use crate::lines::Lines;
use crate::style;
use crate::timeline::Timeline;

/// What can be drawn.
#[derive(Clone, Debug)]
pub enum Plot {
    /// Bars beside or behind each other.
    Bars(Bars),
    /// Lines through points.
    Lines(Lines),
    /// What was where from when to when.
    Timeline(Timeline),
}

impl From<Bars> for Plot {
    fn from(bars: Bars) -> Self {
        Plot::Bars(bars)
    }
}

impl From<Lines> for Plot {
    fn from(lines: Lines) -> Self {
        Plot::Lines(lines)
    }
}

impl From<Timeline> for Plot {
    fn from(timeline: Timeline) -> Self {
        Plot::Timeline(timeline)
    }
}

impl Plot {
    /// The chart with the number `at` on its page.
    pub(crate) fn html(&self, at: usize, title: &str, text: &str) -> String {
        let drawing = match self {
            Plot::Bars(bars) => bars.drawing(),
            Plot::Lines(lines) => lines.drawing(),
            Plot::Timeline(timeline) => timeline.drawing(),
        };
        let remarks = drawing.remarks.iter();
        let remarks: String = remarks
            .map(|remark| format!("<p class=\"remark\">{}</p>\n", escape::html(remark)))
            .collect();
        let (rows, numbers) = (drawing.numbers.rows(), drawing.numbers.html(title));
        let (description, height) = (escape::html(&drawing.description), drawing.height);
        format!(
            "<figure class=\"chart\" id=\"chart-{at}\" aria-labelledby=\"chart-{at}-title\">\n\
             <figcaption><h3 id=\"chart-{at}-title\">{title}</h3>\n{text}</figcaption>\n\
             <div class=\"plot\" role=\"img\" aria-label=\"{description}\" style=\"height: {height}px\"></div>\n\
             {remarks}\
             <script type=\"application/json\">{json}</script>\n\
             <details><summary>The numbers ({rows} {noun})</summary>\n{numbers}</details>\n\
             </figure>\n",
            title = escape::html(title),
            text = escape::paragraphs(text),
            json = escape::script(&json(drawing)),
            noun = if rows == 1 { "row" } else { "rows" },
        )
    }
}

/// The description that plotly.js draws.
fn json(drawing: Drawing) -> String {
    let mut plot = plotly::Plot::new();
    plot.add_traces(drawing.traces);
    plot.set_layout(drawing.layout);
    plot.set_configuration(style::configuration());
    // Of strings, numbers and lists nothing can fail to be written.
    let mut plot = serde_json::to_value(plot).unwrap_or_default();
    for axis in ["xaxis", "yaxis"] {
        // The crate has no name for this: the distance, in CSS pixels, of an axis's name from its
        // numbers.
        plot["layout"][axis]["title"]["standoff"] = 8.into();
    }
    plot.to_string()
}
