//! The picture of increments: nanoseconds over the number of threads, as SVG.
//!
//! Colours are attributes of the elements. A style sheet before them replaces them for readers who
//! prefer a dark background; the background itself is the page's.

use std::error::Error;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::bench::figures::Figure;

const SIZE: (u32, u32) = (760, 420);

/// A colour on a light background, and its replacement on a dark one.
struct Colour(RGBColor, &'static str);

const TEXT: Colour = Colour(RGBColor(0x1f, 0x23, 0x28), "#e6edf3");
const GRID: Colour = Colour(RGBColor(0xd0, 0xd7, 0xde), "#3d444d");

/// The lines, from the top of the picture to its bottom.
const LINES: [(&str, &str, Colour); 4] = [
    ("atomic_shared", "an atomic that all share", Colour(RGBColor(0xcf, 0x22, 0x2e), "#ff7b72")),
    ("atomic_private", "an atomic of its own", Colour(RGBColor(0x9a, 0x67, 0x00), "#d29922")),
    ("counter_add", "percid Counter", Colour(RGBColor(0x1a, 0x7f, 0x37), "#56d364")),
    ("plain_add", "plain addition", Colour(RGBColor(0x59, 0x63, 0x6e), "#9198a1")),
];

/// Returns the picture with a caption below it.
pub(super) fn svg(figures: &[Figure], caption: &str) -> String {
    let mut svg = String::new();
    draw(&mut svg, figures, caption).expect("drawing into memory does not fail");
    let head = svg.find('>').map_or(0, |end| end + 1);
    svg.insert_str(head, &dark_style());
    svg
}

/// Returns a style sheet that replaces every colour if the reader prefers a dark background.
fn dark_style() -> String {
    let colours = [&TEXT, &GRID].into_iter().chain(LINES.iter().map(|(.., colour)| colour));
    let rules = colours.map(|Colour(RGBColor(r, g, b), dark)| {
        let light = format!("#{r:02X}{g:02X}{b:02X}");
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    });
    let rules: String = rules.collect();
    format!(
        "\n<style>text{{font-family:sans-serif}}@media(prefers-color-scheme:dark){{{rules}}}</style>"
    )
}

fn draw<'a>(
    svg: &'a mut String,
    figures: &[Figure],
    caption: &str,
) -> Result<(), Box<dyn Error + 'a>> {
    let text = |size| ("sans-serif", size).into_font().color(&TEXT.0);
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let (chart, below) = root.split_vertically(SIZE.1 - 26);
    below.draw_text(caption, &text(14), (12, 4))?;

    let threads = || figures.iter().map(|figure| figure.team.threads as f64);
    let (first, last) = (threads().fold(f64::MAX, f64::min), threads().fold(1.0, f64::max));
    let last = last.max(first + 1.0);
    let most = figures.iter().map(|figure| figure.ns_median).fold(1.0, f64::max);
    // The names of the lines are to the right of their ends.
    let mut chart = ChartBuilder::on(&chart)
        .margin(12)
        .margin_right(210)
        .caption("Nanoseconds per increment, by the number of threads", text(20))
        .x_label_area_size(32)
        .y_label_area_size(44)
        .build_cartesian_2d(first..last, (0.1..most * 1.5).log_scale())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID.0)
        .axis_style(TEXT.0)
        .label_style(text(15))
        .x_labels((last - first) as usize + 1)
        .x_label_formatter(&|threads| format!("{threads:.0}"))
        .y_label_formatter(&|ns| ns.to_string())
        .draw()?;
    for (op, name, colour) in &LINES {
        let mut points: Vec<(f64, f64)> = figures
            .iter()
            .filter(|figure| figure.op == *op)
            .map(|figure| (figure.team.threads as f64, figure.ns_median))
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let style = colour.0.stroke_width(3);
        chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
        chart.draw_series(points.iter().map(|&point| Circle::new(point, 4, colour.0.filled())))?;
        let label = ("sans-serif", 17).into_font().color(&colour.0);
        let label = label.pos(Pos::new(HPos::Left, VPos::Center));
        if let Some((x, y)) = points.last().map(|point| chart.backend_coord(point)) {
            root.draw_text(
                &format!("{name}  {:.1}", points[points.len() - 1].1),
                &label,
                (x + 10, y),
            )?;
        }
    }
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::TeamName;

    #[test]
    fn every_colour_has_its_rule_for_dark_pages() {
        let figures: Vec<Figure> = LINES
            .iter()
            .flat_map(|(op, ..)| [1, 2].map(|threads| (op, TeamName { threads, pinned: true })))
            .map(|(op, team)| Figure::fixed(op, "none", team, 2.5 * team.threads as f64))
            .collect();
        let svg = svg(&figures, "here & now");
        assert!(svg.contains("here &amp; now"), "{svg}");
        let (style, drawn) = svg.split_once("</style>").expect("a style");
        for part in drawn.split("=\"#").skip(1) {
            let colour = format!("\"#{}\"", &part[..6]);
            assert!(style.contains(&colour), "{colour} has no rule");
        }
        for (_, name, _) in &LINES {
            assert!(drawn.contains(name), "{name}");
        }
        assert!(drawn.matches("<circle").count() == 2 * LINES.len(), "{drawn}");
    }
}
