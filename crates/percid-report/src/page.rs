//! The page: its parts in order, and the file they become.

use std::io;
use std::path::Path;

use crate::chart::Plot;
use crate::escape::{self, paragraphs};
use crate::table::Table;
use crate::{file, plotly_js};

/// A report, written from top to bottom.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    lead: String,
    sections: Vec<String>,
    body: String,
    charts: usize,
}

/// Nothing may be loaded, from anywhere: all there is stands in the page itself. Pictures in the
/// page's own addresses are how plotly.js saves a plot.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";

/// Fewer sections than this are found without a list of them.
const LISTED: usize = 3;

impl Page {
    /// A page with a title, and below it the text that says what was done, when and where.
    ///
    /// Empty lines in this text, and in those of sections and charts, separate paragraphs.
    pub fn new(title: impl Into<String>, lead: impl AsRef<str>) -> Self {
        Page {
            title: title.into(),
            lead: paragraphs(lead.as_ref()),
            sections: Vec::new(),
            body: String::new(),
            charts: 0,
        }
    }

    /// A heading and text, which may be empty.
    pub fn section(&mut self, heading: impl AsRef<str>, text: impl AsRef<str>) -> &mut Self {
        self.sections.push(heading.as_ref().to_owned());
        let (at, text) = (self.sections.len(), paragraphs(text.as_ref()));
        let heading = escape::html(heading.as_ref());
        self.body.push_str(&format!("<h2 id=\"section-{at}\">{heading}</h2>\n{text}"));
        self
    }

    /// A table.
    pub fn table(&mut self, table: Table) -> &mut Self {
        let label = self.sections.last().map_or(self.title.as_str(), String::as_str);
        let html = table.html(label);
        self.body.push_str(&html);
        self
    }

    /// A chart under its title, with text that says what can be seen in it. The numbers follow it,
    /// folded up.
    pub fn chart(
        &mut self,
        title: impl AsRef<str>,
        text: impl AsRef<str>,
        plot: impl Into<Plot>,
    ) -> &mut Self {
        self.charts += 1;
        let html = plot.into().html(self.charts, title.as_ref(), text.as_ref());
        self.body.push_str(&html);
        self
    }

    /// The whole file. 4.7 MB more than the numbers if there is a chart.
    pub fn render(&self) -> String {
        let (title, lead, body) = (escape::html(&self.title), &self.lead, &self.body);
        let style = include_str!("style.css");
        let (contents, scripts) = (self.contents(), self.scripts());
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n\
             <main>\n<h1>{title}</h1>\n<div class=\"lead\">\n{lead}</div>\n{contents}{body}</main>\n\
             {scripts}</body>\n</html>\n"
        )
    }

    /// Writes the file under a temporary name beside `path` and renames it, so that no reader sees
    /// half of it. A device or a pipe at `path` is written to.
    ///
    /// # Errors
    ///
    /// Those of the file system, with the path in the message.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        file::replace(path, &self.render())
    }

    fn contents(&self) -> String {
        if self.sections.len() < LISTED {
            return String::new();
        }
        let entries = self.sections.iter().zip(1..);
        let entries: String = entries
            .map(|(heading, at)| (escape::html(heading), at))
            .map(|(heading, at)| format!("<li><a href=\"#section-{at}\">{heading}</a></li>\n"))
            .collect();
        format!("<nav aria-label=\"Sections\"><ol>\n{entries}</ol></nav>\n")
    }

    fn scripts(&self) -> String {
        if self.charts == 0 {
            return String::new();
        }
        format!(
            "<noscript><p>The plots need JavaScript. Their numbers are there without it.</p></noscript>\n\
             <script>{}</script>\n<script>\n{}</script>\n",
            plotly_js::source(),
            include_str!("draw.js")
        )
    }
}
