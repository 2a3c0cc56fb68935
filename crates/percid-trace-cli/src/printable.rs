//! Texts of a trace on a terminal: names of threads may contain anything, also what moves the
//! cursor.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(printable("a\nb\u{1b}[2J ü"), r"a\nb\u{1b}[2J ü");
    }
}
