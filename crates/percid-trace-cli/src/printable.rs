//! Texts of a trace on a terminal: names of threads may contain anything, also what moves the
//! cursor.

use percid_trace::event::Tid;

/// The text with control characters as escapes (`\n`, `\u{1b}`).
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// A name and a number, for people.
pub(crate) fn labelled(name: &str, number: Tid) -> String {
    let name = if name.is_empty() { "unnamed".to_owned() } else { printable(name) };
    format!("{name} ({number})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(printable("a\nb\u{1b}[2J ü"), r"a\nb\u{1b}[2J ü");
    }
}
