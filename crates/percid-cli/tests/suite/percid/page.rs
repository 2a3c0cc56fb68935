//! Pages in a real browser.

use std::path::Path;
use std::{fs, process};

use percid_browser::{Browser, Scheme};

use super::{bounded, command};

/// Opens a page in light and dark, on screens of four widths and on paper: it opens with a verdict,
/// everything is drawn and can be read, nothing overlaps, is truncated or has to be scrolled. The
/// page stays in the folder.
pub(crate) fn look_at(folder: &Path, name: &str, html: &str, charts: usize) {
    look_at_empty(folder, name, html, charts, 0);
}

/// Does the same, if nothing is drawn in `empty` of the charts.
pub(crate) fn look_at_empty(folder: &Path, name: &str, html: &str, charts: usize, empty: usize) {
    for marks in check_layout(folder, name, html) {
        assert_eq!(marks.len(), charts, "{name}");
        let nothing = marks.iter().filter(|&&marks| marks == 0).count();
        assert_eq!(nothing, empty, "{name}: nothing is drawn: {marks:?}");
    }
}

/// Does the same for a page whose charts depend on the machine; returns the number of marks of each
/// chart, in each frame.
pub(crate) fn check_layout(folder: &Path, name: &str, html: &str) -> Vec<Vec<usize>> {
    let Some(browser) = Browser::find(folder) else { return Vec::new() };
    let found = browser.look_at(name, html).into_iter().map(|(frame, found)| {
        let marks: Vec<usize> = found.charts.iter().map(|chart| chart.marks).collect();
        assert_eq!(found.problems(&marks), [] as [String; 0], "{name} {frame:?}");
        assert_eq!(found.dark, frame.scheme == Scheme::Dark, "{name} {frame:?}");
        marks
    });
    found.collect()
}

/// Runs a command that writes a report to the end of its arguments, and returns the report.
pub(crate) fn report(name: &str, command_line: &str) -> String {
    let file =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.html", process::id()));
    let output = bounded(&mut command(&format!("{command_line} {}", file.display())));
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let html = fs::read_to_string(&file).expect("the report is written");
    let _ = fs::remove_file(file);
    html
}

/// Checks that every section has a result below its heading.
pub(crate) fn check_results(html: &str) {
    check_results_but(html, 0);
}

/// Does the same, if `without` of the sections have no result.
pub(crate) fn check_results_but(html: &str, without: usize) {
    let sections: Vec<&str> = html.split(" id=\"section-").skip(1).collect();
    assert!(!sections.is_empty(), "there are no sections");
    let result = |section: &&str| {
        let (heading, rest) = section.split_once("</h").expect("a heading");
        let result = rest.split_once("<span class=\"result\">");
        let result = result.and_then(|(_, below)| below.split("</span>").next());
        let result = result.filter(|result| !result.is_empty());
        let result = result.unwrap_or_else(|| panic!("{heading}: no result"));
        (heading.to_owned(), result.to_owned())
    };
    let found = |result: &str| result.contains(char::is_numeric);
    let nothing: Vec<(String, String)> =
        sections.iter().map(result).filter(|(_, result)| !found(result)).collect();
    assert_eq!(nothing.len(), without, "{nothing:?}");
}
