//! The page: its parts in order, and its HTML file.

use std::fmt::Write;
use std::io;
use std::path::Path;

use crate::chart::Plot;
use crate::colours::{self, Colours};
use crate::escape::{self, paragraphs};
use crate::file;
use crate::patterns;
use crate::table::{self, Table};

/// A report, written from top to bottom: a sentence with the result, the first chart, and sections
/// that are folded up.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    verdict: String,
    notices: String,
    /// The first chart.
    figure: String,
    about: Vec<String>,
    sections: Vec<Section>,
    colours: Colours,
    charts: usize,
    /// `true` if any of them can be zoomed into.
    is_zoomed: bool,
}

/// The content under one heading: pictures, and tables below them.
#[derive(Clone, Debug)]
struct Section {
    heading: String,
    level: Level,
    text: String,
    charts: String,
    tables: Vec<Table>,
    /// Terminal output.
    printed: String,
}

/// The nesting level of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Section,
    /// A part of the section before it.
    Subsection,
}

impl Level {
    /// Returns the number of its heading; the one below it is that of its charts and tables.
    fn number(self) -> u8 {
        match self {
            Level::Section => 2,
            Level::Subsection => 3,
        }
    }
}

/// Content security policy: nothing is loaded, from anywhere, and nothing runs. The page contains
/// everything.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The page's own script, and the only one that may run, by its SHA-256 in base64:
/// `(echo; cat tracks.js) | openssl dgst -sha256 -binary | base64`.
const SCRIPT: &str = include_str!("tracks.js");
const HASH: &str = "pQG42ReGjj2NXFRjFRpApErSeEa26aJgDhzunVyg6eg=";

/// Maximum number of rows of a table that is not folded up, in sections with several tables.
const OPEN: usize = 12;

impl Page {
    /// Creates a page with a title, and below it the result: one sentence with its number. The
    /// first chart follows the sentence, whatever section it is added in.
    ///
    /// Empty lines in texts of a page separate paragraphs.
    pub fn new(title: impl Into<String>, verdict: impl Into<String>) -> Self {
        Page {
            title: title.into(),
            verdict: verdict.into(),
            notices: String::new(),
            figure: String::new(),
            about: Vec::new(),
            sections: Vec::new(),
            colours: Colours::default(),
            charts: 0,
            is_zoomed: false,
        }
    }

    /// Adds a remark to the verdict, such as the reason why it is of a part only.
    pub fn notice(&mut self, text: impl AsRef<str>) -> &mut Self {
        self.notices.push_str(&paragraphs(text.as_ref()));
        self
    }

    /// Adds the description of the work, its time and place, at the end of the page.
    pub fn about(&mut self, text: impl Into<String>) -> &mut Self {
        self.about.push(text.into());
        self
    }

    /// Begins a section, which is folded up, with a heading and a text, which may be empty. Its
    /// first paragraph is visible: it should contain the result in one sentence.
    pub fn section(&mut self, heading: impl Into<String>, text: impl Into<String>) -> &mut Self {
        self.begin(Level::Section, heading.into(), text.into())
    }

    /// Begins a part of the previous section, which is folded up inside it.
    pub fn subsection(&mut self, heading: impl Into<String>, text: impl Into<String>) -> &mut Self {
        self.begin(Level::Subsection, heading.into(), text.into())
    }

    fn begin(&mut self, level: Level, heading: String, text: String) -> &mut Self {
        let (charts, tables, printed) = Default::default();
        self.sections.push(Section { heading, level, text, charts, tables, printed });
        self
    }

    /// Assigns colours to these names now, in this order, so that they do not depend on the first
    /// chart that contains them.
    pub fn colours<S: AsRef<str>>(&mut self, names: impl IntoIterator<Item = S>) -> &mut Self {
        for name in names {
            self.colours.look(name.as_ref());
        }
        self
    }

    /// Adds a table to the section. It is below the section's charts, and is folded up if there are
    /// any, or if it is a long one of several.
    pub fn table(&mut self, table: Table) -> &mut Self {
        self.current().tables.push(table);
        self
    }

    /// Adds terminal output, at the end of the section.
    pub fn printed(&mut self, text: impl AsRef<str>) -> &mut Self {
        let html = format!("<pre>{}</pre>\n", escape::html(text.as_ref()));
        self.current().printed.push_str(&html);
        self
    }

    /// Adds a chart under its title, with a text that describes it. The numbers follow it, folded
    /// up.
    pub fn chart(
        &mut self,
        title: impl AsRef<str>,
        text: impl AsRef<str>,
        plot: impl Into<Plot>,
    ) -> &mut Self {
        self.charts += 1;
        let (at, title, text) = (self.charts, title.as_ref(), text.as_ref());
        let level = if at == 1 { 2 } else { 1 + self.current().level.number() };
        let plot = plot.into();
        self.is_zoomed |= plot.is_zoomed();
        let html = plot.html(at, level, title, text, &mut self.colours);
        match at {
            1 => self.figure = html,
            _ => self.current().charts.push_str(&html),
        }
        self
    }

    /// Returns the last section; tables and charts before the first one have a section of their own.
    fn current(&mut self) -> &mut Section {
        if self.sections.is_empty() {
            self.section("Details", "");
        }
        let last = self.sections.len() - 1;
        &mut self.sections[last]
    }

    /// Returns the whole file.
    pub fn render(&self) -> String {
        let title = escape::html(&self.title);
        let body = self.body();
        let cards = table::cards(&body);
        let style = include_str!("style.css");
        let patterns = if self.is_zoomed { patterns::definitions() } else { String::new() };
        let shapes = match self.charts {
            0 => String::new(),
            _ => colours::definitions(&patterns),
        };
        let (policy, script) = match self.is_zoomed {
            true => (
                format!("{POLICY}; script-src 'sha256-{HASH}'"),
                format!("<script>\n{SCRIPT}</script>\n"),
            ),
            false => (POLICY.to_owned(), String::new()),
        };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{style}{cards}</style>\n</head>\n<body>\n{shapes}\
             <main>\n<h1>{title}</h1>\n{body}</main>\n\
             {script}</body>\n</html>\n"
        )
    }

    /// Returns the verdict, the first chart and the sections.
    fn body(&self) -> String {
        let mut out = format!("<p class=\"verdict\">{}</p>\n", escape::words(&self.verdict));
        if !self.notices.is_empty() {
            let _ = writeln!(out, "<div class=\"notice\">{}</div>", self.notices);
        }
        out.push_str(&self.figure);
        let mut is_inside = false;
        for (at, section) in self.sections.iter().enumerate() {
            if is_inside && section.level == Level::Section {
                out.push_str("</details>\n");
                is_inside = false;
            }
            let has_parts =
                self.sections.get(at + 1).is_some_and(|next| next.level != Level::Section);
            if section.is_empty() && !(section.level == Level::Section && has_parts) {
                continue;
            }
            out.push_str(&section.html(at));
            match section.level {
                Level::Subsection => out.push_str("</details>\n"),
                Level::Section => is_inside = true,
            }
        }
        if is_inside {
            out.push_str("</details>\n");
        }
        if !self.about.is_empty() {
            let opening =
                opening("about", Level::Section, "About this report", &self.about.join("\n\n"));
            let _ = writeln!(out, "{opening}</details>");
        }
        out
    }

    /// Writes the file under a temporary name beside `path` and renames it, so that no reader sees
    /// a part of it. A device or a pipe at `path` is written to directly.
    ///
    /// # Errors
    ///
    /// Returns the errors of the file system, with the path in the message.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        file::replace(path, &self.render())
    }
}

impl Section {
    /// Returns `true` if it has only a heading, for example because its chart is the first one.
    fn is_empty(&self) -> bool {
        let Section { text, charts, tables, printed, .. } = self;
        text.trim().is_empty() && charts.is_empty() && tables.is_empty() && printed.is_empty()
    }

    /// Returns the section without its end, which is behind its parts.
    fn html(&self, at: usize) -> String {
        let Section { heading, level, text, charts, tables, printed } = self;
        let mut out = opening(&format!("section-{at}"), *level, heading, text);
        out.push_str(charts);
        out.extend(tables.iter().map(|table| {
            let is_open = charts.is_empty() && (tables.len() == 1 || table.rows() <= OPEN);
            // The section's heading describes its only table.
            if is_open && tables.len() == 1 {
                return table.html(heading);
            }
            let level = 1 + level.number();
            if is_open { table.titled_html(level, heading) } else { table.folded_html(heading) }
        }));
        out.push_str(printed);
        out
    }
}

/// Returns the beginning of what is folded up: its heading and first paragraph, which are visible,
/// and its other paragraphs.
fn opening(id: &str, level: Level, heading: &str, text: &str) -> String {
    let (heading, level) = (escape::html(heading), level.number());
    let (result, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    format!(
        "<details class=\"section\" id=\"{id}\">\n<summary><h{level}>{heading}</h{level}>\
         <span class=\"result\">{}</span></summary>\n{}",
        escape::words(result.trim()),
        paragraphs(rest)
    )
}
