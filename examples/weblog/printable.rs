//! Text from clients, escaped for a terminal.

/// Returns the text with control characters escaped; invalid UTF-8 is replaced.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for character in String::from_utf8_lossy(bytes).chars() {
        if character.is_control() {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_the_rest_is_as_it_was() {
        assert_eq!(printable(b"/a \"b\" \\x22 \x1b[1m\xff"), "/a \"b\" \\x22 \\u{1b}[1m\u{fffd}");
    }
}
