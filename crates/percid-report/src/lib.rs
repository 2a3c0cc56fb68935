//! Reports in one HTML file: text, tables and plots that need no network.
//!
//! A [`Page`] is written from top to bottom. It knows nothing about what is reported: figures come
//! in as numbers and names, and all text is escaped. The file is complete in itself: the program
//! that draws the plots is part of it, a content security policy forbids the browser every
//! connection, and the numbers behind each plot stand beneath it. Colours follow the reader's
//! preference for light or dark.
//!
//! ```
//! use percid_report::{Align, Axis, Bars, Page, Table};
//!
//! let mut page = Page::new("Coming back after a pause", "Simulated with seed 1.");
//! page.section("Time per burst", "Pauses of 10 ms.");
//! let time = Axis::new("time per burst").unit("ns").logarithmic();
//! let mut bars = Bars::grouped(Axis::new("policy"), time, ["published", "simulated"]);
//! bars.category("policy A", [4_200.0, 4_350.0]);
//! bars.category("policy B", [Some(26_000.0), None]);
//! page.chart("Published and simulated", "Shorter is better.", bars);
//! let mut table = Table::new([("policy", Align::Left), ("CPUs", Align::Right)]);
//! table.row(["policy A", "192"]);
//! page.table(table);
//! assert!(page.render().starts_with("<!DOCTYPE html>"));
//! ```
//!
//! # Why plotly
//!
//! Two libraries were compared; figures are of this crate and of pages of its tests.
//!
//! - `plotly` (MIT) writes a description of the plot, and plotly.js (MIT too, part of the crate)
//!   draws it in the browser. Readers can zoom, fit the width, and point at a mark to see its
//!   numbers, which a time line of thousands of marks needs: Chromium 156 on two CPUs busy with
//!   other work drew 19 968 spans on 384 rows in 1.5 to 3.0 s and zoomed into them in 0.9 to 2.3 s.
//!   It belongs to the organisation that makes plotly.js; 0.14.1 is of February 2026. It costs 4.7
//!   MB in each report that has a plot, 6.8 MB in the program that writes them (MathJax is in the
//!   crate and left out of the pages), 36 crates and 52 s of compilation on one CPU.
//! - `plotters` (MIT) draws SVG in the program itself: 4 crates, 3 s of compilation, small reports.
//!   But all that readers do with a plot would be a program of our own, text is placed without
//!   knowing its width, dark pages need other colours for what is drawn already, and its one
//!   maintainer says that releases are rare (plotters, pull request 604, 2024).
//!
//! A report is read more often than it is sent, so the reader's side decided. Version 0.13.5 of
//! `plotly`, because 0.14 needs Rust 1.88; both bring plotly.js 3.0.1. What 0.13.5 has no name for
//! (where a bar starts, how far an axis's name is from its numbers) is added to its description of
//! the plot.

mod axis;
mod bars;
mod chart;
mod drawing;
mod escape;
mod file;
mod lines;
mod page;
mod plotly_js;
mod style;
mod table;
mod timeline;

pub use axis::Axis;
pub use bars::Bars;
pub use chart::Plot;
pub use lines::Lines;
pub use page::Page;
pub use table::{Align, Cell, Table};
pub use timeline::{Span, Timeline};
