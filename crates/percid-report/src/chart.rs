//! A chart: the plot, its description, and its numbers.

use crate::bars::Bars;
use crate::colours::Colours;
use crate::dots::Dots;
use crate::escape;
use crate::lines::Lines;
use crate::strips::Strips;
use crate::timeline::Timeline;
use crate::tracks::Tracks;

/// The kinds of plots.
#[derive(Clone, Debug)]
pub enum Plot {
    /// Bars beside or behind each other.
    Bars(Bars),
    /// Dots joined by a line.
    Dots(Dots),
    /// Lines through points.
    Lines(Lines),
    /// Cells with small counts on rows.
    Strips(Strips),
    /// Spans of time on rows.
    Timeline(Timeline),
    /// Spans of time on rows over a long time, with zoom.
    Tracks(Tracks),
}

impl From<Bars> for Plot {
    fn from(bars: Bars) -> Self {
        Plot::Bars(bars)
    }
}

impl From<Dots> for Plot {
    fn from(dots: Dots) -> Self {
        Plot::Dots(dots)
    }
}

impl From<Lines> for Plot {
    fn from(lines: Lines) -> Self {
        Plot::Lines(lines)
    }
}

impl From<Strips> for Plot {
    fn from(strips: Strips) -> Self {
        Plot::Strips(strips)
    }
}

impl From<Timeline> for Plot {
    fn from(timeline: Timeline) -> Self {
        Plot::Timeline(timeline)
    }
}

impl From<Tracks> for Plot {
    fn from(tracks: Tracks) -> Self {
        Plot::Tracks(tracks)
    }
}

impl Plot {
    /// Returns `true` if the page needs the script that zooms.
    pub(crate) fn is_zoomed(&self) -> bool {
        matches!(self, Plot::Tracks(_))
    }

    /// Returns the chart with the number `at` on its page, under a heading of this level.
    pub(crate) fn html(
        &self,
        at: usize,
        level: u8,
        title: &str,
        text: &str,
        colours: &mut Colours,
    ) -> String {
        let drawing = match self {
            Plot::Bars(bars) => bars.drawing(colours),
            Plot::Dots(dots) => dots.drawing(colours),
            Plot::Lines(lines) => lines.drawing(colours),
            Plot::Strips(strips) => strips.drawing(),
            Plot::Timeline(timeline) => timeline.drawing(),
            Plot::Tracks(tracks) => tracks.drawing(colours),
        };
        let remarks = drawing.remarks.iter();
        let remarks: String = remarks
            .map(|remark| format!("<p class=\"remark\">{}</p>\n", escape::html(remark)))
            .collect();
        let (rows, numbers) = (drawing.numbers.rows(), drawing.numbers.html(title));
        format!(
            "<figure class=\"chart\" id=\"chart-{at}\" aria-labelledby=\"chart-{at}-title\">\n\
             <figcaption><h{level} id=\"chart-{at}-title\">{title}</h{level}>\n{text}</figcaption>\n\
             <div class=\"plot\" role=\"img\" tabindex=\"0\" aria-label=\"{description}\">\n{drawn}</div>\n\
             {remarks}\
             <details><summary>The numbers ({rows} {noun})</summary>\n{numbers}</details>\n\
             </figure>\n",
            title = escape::html(title),
            text = escape::paragraphs(text),
            description = escape::html(&drawing.description),
            drawn = drawing.html,
            noun = if rows == 1 { "row" } else { "rows" },
        )
    }
}
