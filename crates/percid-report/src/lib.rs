//! Reports in one HTML file: text, pictures and tables that need no network, and no script to be
//! read.
//!
//! A [`Page`] opens with one sentence, the result with its number. The first chart follows; all
//! else is folded up under headings with the result of each part. It is independent of the reported
//! subject: values are passed as numbers and names, and all text is escaped. The file is complete
//! in itself: pictures are SVG in the page, and the numbers of each picture are beneath it. A
//! content security policy forbids the browser every connection, and every script except the page's
//! own. Only pages with [`Tracks`] have that script, and only for zooming in. Colours follow the
//! reader's preference for light or dark, keep their meaning through the page and can be told apart
//! by colour-blind readers. The page fits a phone and A4 paper: a table that is wider than its box
//! becomes cards, and lines that coincide stay visible. Keyboard and screen readers reach each
//! chart by its name.
//!
//! ```
//! use percid_report::{Align, Axis, Dot, Dots, Page, Table};
//!
//! let mut page = Page::new("Coming back after a pause", "The mean error of two policies is 3.6 %.");
//! page.about("Simulated with seed 1.");
//! let time = Axis::new("time per burst").unit("ns").logarithmic();
//! let dots = Dots::new(Axis::new("policy"), time, ["published", "simulated"]).reference();
//! let mut dots = dots.notes(["error"]);
//! dots.row("policy A", [Dot::new([4_200.0, 4_350.0]).note("+3.6 %")]);
//! dots.row("policy B", [Dot::new([Some(26_000.0), None])]);
//! page.chart("Published and simulated", "", dots);
//! page.section("Machines", "Both have 192 CPUs.");
//! let mut table = Table::new([("policy", Align::Left), ("CPUs", Align::Right)]);
//! table.row(["policy A", "192"]);
//! page.table(table);
//! assert!(page.render().starts_with("<!DOCTYPE html>"));
//! ```
//!
//! # Choosing a chart
//!
//! - [`Dots`]: values of the same quantity from several sources, such as published and simulated;
//!   in small multiples with [`Dots::panels`]. Positions are compared: the axis may be logarithmic.
//! - [`Bars`]: lengths that are compared, or parts of a whole. They begin at 0; on a logarithmic
//!   axis they become dots.
//! - [`Lines`]: one quantity over another.
//! - [`Strips`]: series that are 0 or 1, or small counts, over the same positions.
//! - [`Timeline`]: spans of time on rows.
//! - [`Tracks`]: the same over a long time, as an overview that can be zoomed into.
//!
//! # Alternatives
//!
//! Charting libraries that run in the browser show nothing without a script, and most are larger
//! than a page should be (uPlot 53 kB, Observable Plot 490 kB, Vega-Lite 772 kB, ECharts 1 MB).
//! Those that draw SVG in Rust (plotters, poloto, charming without its script) place text without
//! knowing its width, in a picture of a fixed width. On a phone it becomes too small to be read,
//! and the overlap of labels depends on the reader's fonts. In this crate, names, values and
//! numbers of axes are HTML that the browser lays out. Only marks are SVG, placed in percent, so
//! that the same picture fits every width. The remaining work is a scale and a few shapes.

mod axis;
mod bars;
mod chart;
mod colours;
mod dots;
mod drawing;
mod escape;
mod file;
mod legend;
mod lines;
mod number;
mod page;
mod patterns;
mod plane;
mod rows;
mod scale;
mod strips;
mod table;
mod timeline;
mod tracks;

pub use axis::Axis;
pub use bars::Bars;
pub use chart::Plot;
pub use dots::{Dot, Dots};
pub use lines::Lines;
pub use page::Page;
pub use strips::Strips;
pub use table::{Align, Cell, Table};
pub use timeline::{Span, Timeline};
pub use tracks::{TrackSpan, Tracks};
