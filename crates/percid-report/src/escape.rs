//! Text as it has to be written where a program will read it again.

/// For HTML, between tags and in quoted attributes.
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

/// For HTML, in paragraphs, which empty lines separate.
pub(crate) fn paragraphs(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(str::trim).filter(|text| !text.is_empty());
    paragraphs.map(|text| format!("<p>{}</p>\n", html(text))).collect()
}

/// For plotly.js, which reads some tags and entities in texts, and `%{` as the start of a variable.
pub(crate) fn plot(text: &str) -> String {
    replace(text, |character| match character {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '{' => Some("&#123;"),
        _ => None,
    })
}

/// For plotly.js, broken between words into as few lines of at most `width` characters as possible,
/// and these no longer than necessary.
pub(crate) fn plot_wrapped(text: &str, width: usize) -> String {
    let fewest = lines(text, width);
    let mut narrower = (1..width).map(|width| lines(text, width));
    let narrowest = narrower.find(|lines| lines.len() == fewest.len()).unwrap_or(fewest);
    narrowest.iter().map(|line| plot(line)).collect::<Vec<_>>().join("<br>")
}

/// Words that are longer than `width` have a line of their own.
fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// JSON inside a `script` element, which would end at the first `</script` in a text.
pub(crate) fn script(json: &str) -> String {
    replace(json, |character| (character == '<').then_some("\\u003c"))
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
    fn nothing_of_a_text_is_markup() {
        assert_eq!(
            html(HOSTILE),
            "&lt;/script&gt;&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;amp; %{y}"
        );
        assert_eq!(plot(HOSTILE), "&lt;/script&gt;&lt;b a=\"1\" b='2'&gt;&amp;amp; %&#123;y}");
    }

    #[test]
    fn json_stays_the_same_json_and_ends_no_script() {
        let json = serde_json::to_string(HOSTILE).expect("a string is JSON");
        let escaped = script(&json);
        assert!(!escaped.contains('<'));
        assert_eq!(serde_json::from_str::<String>(&escaped).expect("still JSON"), HOSTILE);
    }

    #[test]
    fn lines_break_between_words_only() {
        assert_eq!(plot_wrapped("one two three", 7), "one two<br>three");
        assert_eq!(plot_wrapped("a bb ccc dddd", 12), "a bb ccc<br>dddd");
        assert_eq!(plot_wrapped("indivisible a<b", 4), "indivisible<br>a&lt;b");
        assert_eq!(plot_wrapped("", 4), "");
    }
}
