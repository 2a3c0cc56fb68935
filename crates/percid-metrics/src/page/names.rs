//! Names, as the formats allow them: every other character becomes an underscore.

use std::borrow::Cow;

/// The name of a metric: letters, digits, underscores and colons, no digit first.
pub(crate) fn metric_name(name: &str) -> Cow<'_, str> {
    sanitized(name, |char| char.is_ascii_alphabetic() || char == '_' || char == ':')
}

/// The name of a label: letters, digits and underscores, no digit first.
pub(crate) fn label_name(name: &str) -> Cow<'_, str> {
    sanitized(name, |char| char.is_ascii_alphabetic() || char == '_')
}

fn sanitized(name: &str, may_begin: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_good =
        |(place, char): (usize, char)| may_begin(char) || (place > 0 && char.is_ascii_digit());
    if !name.is_empty() && name.char_indices().all(is_good) {
        return Cow::Borrowed(name);
    }
    let mut good = String::with_capacity(name.len() + 1);
    if name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        good.push('_');
    }
    let keep = |char: char| may_begin(char) || char.is_ascii_digit();
    good.extend(name.chars().map(|char| if keep(char) { char } else { '_' }));
    Cow::Owned(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_allowed_becomes_an_underscore() {
        for (name, metric, label) in [
            ("requests_total", "requests_total", "requests_total"),
            ("http.server:duration", "http_server:duration", "http_server_duration"),
            ("5xx", "_5xx", "_5xx"),
            ("", "_", "_"),
            ("größe", "gr__e", "gr__e"),
            ("a\nb{c=\"d\"} 1", "a_b_c__d___1", "a_b_c__d___1"),
        ] {
            assert_eq!((&*metric_name(name), &*label_name(name)), (metric, label), "{name}");
        }
    }
}
