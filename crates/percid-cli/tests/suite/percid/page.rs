//! Pages in a real browser.

use std::path::Path;

use percid_browser::{Browser, Scheme};

/// Opens a page in light and dark, on a screen and on a phone: everything is drawn and can be read,
/// nothing overlaps, is truncated or has to be scrolled. The page stays in the folder.
pub(crate) fn look_at(folder: &Path, name: &str, html: &str, charts: usize) {
    look_at_empty(folder, name, html, charts, 0);
}

/// Does the same, if nothing is drawn in `empty` of the charts.
pub(crate) fn look_at_empty(folder: &Path, name: &str, html: &str, charts: usize, empty: usize) {
    let Some(browser) = Browser::find(folder) else { return };
    for (frame, found) in browser.look_at(name, html) {
        let marks: Vec<usize> = found.charts.iter().map(|chart| chart.marks).collect();
        assert_eq!(found.problems(&marks), [] as [String; 0], "{name} {frame:?}");
        assert_eq!(marks.len(), charts, "{name} {frame:?}");
        let nothing = marks.iter().filter(|&&marks| marks == 0).count();
        assert_eq!(nothing, empty, "{name}: nothing is drawn: {marks:?}");
        assert_eq!(found.dark, frame.scheme == Scheme::Dark, "{name} {frame:?}");
    }
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
        let (_, below) = rest.split_once(">\n").expect("its end");
        let result = below.strip_prefix("<p>").and_then(|below| below.split("</p>").next());
        let result = result.unwrap_or_else(|| panic!("{heading}: no result"));
        (heading.to_owned(), result.to_owned())
    };
    let found = |result: &str| result.contains(char::is_numeric);
    let nothing: Vec<(String, String)> =
        sections.iter().map(result).filter(|(_, result)| !found(result)).collect();
    assert_eq!(nothing.len(), without, "{nothing:?}");
}
