//! Escaping of text in HTML.

/// Escapes text for HTML, between tags and in quoted attributes.
pub(crate) fn html(text: &str) -> String {
    replace(text, |character| match character {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        _ => None,
    })
}

/// Escapes text for HTML, in paragraphs, which are separated by empty lines.
pub(crate) fn paragraphs(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(str::trim).filter(|text| !text.is_empty());
    paragraphs.map(|text| format!("<p>{}</p>\n", words(text))).collect()
}

/// Prevents line breaks after the hyphens of option names.
pub(crate) fn words(text: &str) -> String {
    let word = |word: &str| match word.strip_prefix("--") {
        Some(rest) if rest.starts_with(char::is_alphabetic) => {
            let name = rest.find(|end: char| !(end.is_alphanumeric() || end == '-'));
            let (name, rest) = word.split_at(name.map_or(word.len(), |end| 2 + end));
            format!("<span class=\"option\">{}</span>{}", html(name), html(rest))
        }
        _ => html(word),
    };
    text.split(' ').map(word).collect::<Vec<String>>().join(" ")
}

fn replace(text: &str, by: impl Fn(char) -> Option<&'static str>) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match by(character) {
            Some(instead) => out.push_str(instead),
            None => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</script><b a=\"1\" b='2'>&amp; %{y}";

    #[test]
    fn options_are_kept_together() {
        let written = words("a --two-words=<x> -- b");
        assert_eq!(written, "a <span class=\"option\">--two-words</span>=&lt;x&gt; -- b");
        assert_eq!(words("ends with --it"), "ends with <span class=\"option\">--it</span>");
    }

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(
            html(HOSTILE),
            "&lt;/script&gt;&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;amp; %{y}"
        );
    }
}
