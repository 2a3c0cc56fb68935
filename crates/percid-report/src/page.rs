//! The page: its parts in order, and its HTML file.

use std::io;
use std::path::Path;

use crate::chart::Plot;
use crate::colours::{self, Colours};
use crate::escape::{self, paragraphs};
use crate::file;
use crate::patterns;
use crate::table::Table;

/// A report, written from top to bottom.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    lead: String,
    sections: Vec<Section>,
    colours: Colours,
    charts: usize,
    /// `true` if any of them can be zoomed into.
    is_zoomed: bool,
}

/// The content under one heading: pictures, and tables below them.
#[derive(Clone, Debug, Default)]
struct Section {
    heading: Option<String>,
    level: Level,
    text: String,
    charts: String,
    tables: Vec<Table>,
    /// Terminal output.
    printed: String,
}

/// The nesting level of a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Level {
    #[default]
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

/// Maximum number of rows of a table that is not folded up, in sections without a chart.
const OPEN: usize = 12;
/// Minimum number of sections for a list of them.
const LISTED: usize = 3;

impl Page {
    /// Creates a page with a title, and below it the text that describes the work, its time and
    /// place.
    ///
    /// Empty lines in this text, and in those of sections and charts, separate paragraphs.
    pub fn new(title: impl Into<String>, lead: impl AsRef<str>) -> Self {
        Page {
            title: title.into(),
            lead: paragraphs(lead.as_ref()),
            sections: vec![Section::default()],
            colours: Colours::default(),
            charts: 0,
            is_zoomed: false,
        }
    }

    /// Begins a section with a heading and a text, which may be empty. Its first paragraph is set
    /// larger: it should contain the result in one sentence.
    pub fn section(&mut self, heading: impl AsRef<str>, text: impl AsRef<str>) -> &mut Self {
        self.begin(Level::Section, heading.as_ref(), text.as_ref())
    }

    /// Begins a part of the previous section. The list of sections leaves it out if the list would
    /// become long.
    pub fn subsection(&mut self, heading: impl AsRef<str>, text: impl AsRef<str>) -> &mut Self {
        self.begin(Level::Subsection, heading.as_ref(), text.as_ref())
    }

    fn begin(&mut self, level: Level, heading: &str, text: &str) -> &mut Self {
        let (heading, text) = (Some(heading.to_owned()), paragraphs(text));
        self.sections.push(Section { heading, level, text, ..Section::default() });
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
    /// any or if it is long.
    pub fn table(&mut self, table: Table) -> &mut Self {
        self.current().tables.push(table);
        self
    }

    /// Adds terminal output, at the end of the section. Its lines are not broken: if they are
    /// longer than the page is wide, the text scrolls in its own box.
    pub fn printed(&mut self, text: impl AsRef<str>) -> &mut Self {
        let html = format!("<pre tabindex=\"0\">{}</pre>\n", escape::html(text.as_ref()));
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
        let level = 1 + self.current().level.number();
        let plot = plot.into();
        self.is_zoomed |= plot.is_zoomed();
        let html = plot.html(at, level, title, text, &mut self.colours);
        self.current().charts.push_str(&html);
        self
    }

    fn current(&mut self) -> &mut Section {
        if self.sections.is_empty() {
            self.sections.push(Section::default());
        }
        let last = self.sections.len() - 1;
        &mut self.sections[last]
    }

    /// Returns the whole file.
    pub fn render(&self) -> String {
        let (title, lead) = (escape::html(&self.title), &self.lead);
        let style = include_str!("style.css");
        let contents = self.contents();
        let body: String = self
            .sections
            .iter()
            .enumerate()
            .map(|(at, section)| self.section_html(at, section))
            .collect();
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
             <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{shapes}\
             <main>\n<h1>{title}</h1>\n<div class=\"lead\">\n{lead}</div>\n{contents}{body}</main>\n\
             {script}</body>\n</html>\n"
        )
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

    fn contents(&self) -> String {
        let of_level = |level: Option<Level>| -> Vec<(usize, &str)> {
            let sections = self.sections.iter().enumerate();
            let sections =
                sections.filter(|(_, section)| level.is_none_or(|level| section.level == level));
            sections.filter_map(|(at, section)| Some((at, section.heading.as_deref()?))).collect()
        };
        // The headings of all levels, if there are few sections.
        let mut headings = of_level(Some(Level::Section));
        if headings.len() < LISTED {
            headings = of_level(None);
        }
        if headings.len() < LISTED {
            return String::new();
        }
        let entries: String = headings
            .into_iter()
            .map(|(at, heading)| (escape::html(heading), at))
            .map(|(heading, at)| format!("<li><a href=\"#section-{at}\">{heading}</a></li>\n"))
            .collect();
        format!("<nav aria-label=\"Sections\"><ol>\n{entries}</ol></nav>\n")
    }

    fn section_html(&self, at: usize, section: &Section) -> String {
        let Section { heading, level, text, charts, tables, printed } = section;
        let level = level.number();
        let label = heading.as_deref().unwrap_or(&self.title);
        let mut out = match heading {
            Some(heading) => {
                let heading = escape::html(heading);
                format!("<section>\n<h{level} id=\"section-{at}\">{heading}</h{level}>\n")
            }
            None => "<section>\n".to_owned(),
        };
        out.push_str(text);
        out.push_str(charts);
        out.extend(tables.iter().map(|table| {
            let is_open = charts.is_empty() && table.rows() <= OPEN;
            // The section's heading describes its only table.
            if is_open && tables.len() == 1 {
                return table.html(label);
            }
            if is_open { table.titled_html(1 + level, label) } else { table.folded_html(label) }
        }));
        out.push_str(printed);
        out.push_str("</section>\n");
        out
    }
}
