//! Reports in one HTML file: text, pictures and tables that need no network, and no script to be read.
//!
//! A [`Page`] is written from top to bottom. It knows nothing about what is reported: figures come
//! in as numbers and names, and all text is escaped. The file is complete in itself: pictures are
//! SVG in the page, a content security policy forbids the browser every connection and every script but
//! the page's own, which only pages with [`Tracks`] have, and only for zooming in,
//! and the numbers behind each picture stand beneath it. Colours follow the reader's preference for
//! light or dark, keep their meaning through the page and are told apart by colour-blind readers;
//! the page fits a phone and paper.
//!
//! ```
//! use percid_report::{Align, Axis, Dot, Dots, Page, Table};
//!
//! let mut page = Page::new("Coming back after a pause", "Simulated with seed 1.");
//! page.section("Time per burst", "Two policies, mean error 3.6 %.");
//! let time = Axis::new("time per burst").unit("ns").logarithmic();
//! let dots = Dots::new(Axis::new("policy"), time, ["published", "simulated"]).reference();
//! let mut dots = dots.notes(["error"]);
//! dots.row("policy A", [Dot::new([4_200.0, 4_350.0]).note("+3.6 %")]);
//! dots.row("policy B", [Dot::new([Some(26_000.0), None])]);
//! page.chart("Published and simulated", "", dots);
//! let mut table = Table::new([("policy", Align::Left), ("CPUs", Align::Right)]);
//! table.row(["policy A", "192"]);
//! page.table(table);
//! assert!(page.render().starts_with("<!DOCTYPE html>"));
//! ```
//!
//! # Which chart
//!
//! - [`Dots`]: figures of the same thing from several sources, such as published and simulated; in
//!   small multiples with [`Dots::panels`]. Places are compared: the axis may be logarithmic.
//! - [`Bars`]: lengths that are compared, or parts of a whole. They begin at 0; on a logarithmic
//!   axis they become dots.
//! - [`Lines`]: one quantity over another.
//! - [`Timeline`]: what was where, from when to when.
//! - [`Tracks`]: the same over a long time, as an overview that can be zoomed into.
//!
//! # Why no library draws
//!
//! Of the libraries that draw charts for the web, those that run in the browser (plotly.js 4.7 MB,
//! ECharts 1 MB) are larger than a page should be and show nothing without a script. Those that
//! draw SVG in Rust (plotters, poloto, charming without its script) place text without knowing how
//! wide it is, in a picture of a fixed width: on a phone it becomes too small to be read, and
//! whether labels overlap depends on the reader's fonts. Here, names, figures and numbers of axes
//! are HTML that the browser lays out; only marks are SVG, placed in percent, so that the same
//! picture fits every width. What is left to write is a scale and a few shapes.

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
mod table;
mod timeline;
mod tracks;

pub use axis::Axis;
pub use bars::Bars;
pub use chart::Plot;
pub use dots::{Dot, Dots};
pub use lines::Lines;
pub use page::Page;
pub use table::{Align, Cell, Table};
pub use timeline::{Span, Timeline};
pub use tracks::{TrackSpan, Tracks};
