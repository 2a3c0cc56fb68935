//! Pages in a real browser.

use std::path::Path;

use percid_browser::{Browser, Scheme};

/// Opens a page in light and dark, on a screen and on a phone: everything is drawn and can be read,
/// nothing overlaps, is cut off or has to be scrolled. What it looked like stays in the folder.
pub(crate) fn look_at(folder: &Path, name: &str, html: &str, charts: usize) {
    let Some(browser) = Browser::find(folder) else { return };
    for (frame, found) in browser.look_at(name, html) {
        let marks: Vec<usize> = found.charts.iter().map(|chart| chart.marks).collect();
        assert_eq!(found.problems(&marks), [] as [String; 0], "{name} {frame:?}");
        assert_eq!(marks.len(), charts, "{name} {frame:?}");
        assert!(marks.iter().all(|&marks| marks > 0), "{name}: nothing is drawn: {marks:?}");
        assert_eq!(found.dark, frame.scheme == Scheme::Dark, "{name} {frame:?}");
    }
}

/// Below every heading of a section stands what was found.
pub(crate) fn check_results(html: &str) {
    let sections: Vec<&str> = html.split(" id=\"section-").skip(1).collect();
    assert!(!sections.is_empty(), "there are no sections");
    for section in sections {
        let (heading, rest) = section.split_once("</h").expect("a heading");
        let (_, below) = rest.split_once(">\n").expect("its end");
        let result = below.strip_prefix("<p>").and_then(|below| below.split("</p>").next());
        let result = result.unwrap_or_else(|| panic!("{heading}: no result"));
        assert!(result.contains(char::is_numeric), "{heading}: {result}");
    }
}
