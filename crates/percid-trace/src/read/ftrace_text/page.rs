//! Text within a page for a browser, as Android's systrace writes it: much script, and the lines of the
//! trace.

use super::fields::last;

/// The beginning of the element that contains the lines, and its end.
const ELEMENT: &[u8] = b"<script class=\"trace-data\"";
const END: &[u8] = b"</script>";

/// Its beginning until 2014: a string of the script, whose lines end with `\n\`.
const VARIABLE: &[u8] = b"var linuxPerfData = \"";
const LINE_END: &[u8] = b"\\n\\";

/// Returns `true` if a text is such a page.
pub(super) fn is_page(text: &[u8]) -> bool {
    let begins = |word: &[u8]| {
        let start = text.trim_ascii_start();
        start.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    begins(b"<!doctype html") || begins(b"<html")
}

/// Finds the lines of the trace among those of a page.
#[derive(Debug, Default)]
pub(super) struct PageFilter {
    is_inside: bool,
}

impl PageFilter {
    /// Returns the part of the page's next line that belongs to the trace.
    pub(super) fn line<'a>(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        if self.is_inside {
            return match last(line, END) {
                Some(end) => {
                    self.is_inside = false;
                    Some(&line[..end])
                }
                None => Some(line.strip_suffix(LINE_END).unwrap_or(line)),
            };
        }
        if last(line, VARIABLE).is_some() {
            self.is_inside = true;
            return None;
        }
        let element = &line[last(line, ELEMENT)?..];
        let rest = &element[element.iter().position(|&byte| byte == b'>')? + 1..];
        self.is_inside = last(rest, END).is_none();
        // The lines begin in this one.
        Some(rest)
    }
}
