//! Names that the formats allow. In other names, every forbidden character becomes an underscore.

#[cfg(feature = "recorder")]
use std::borrow::Cow;

/// Returns `true` if `name` is a metric name: letters, digits, underscores and colons, no digit
/// first.
pub(crate) fn is_metric_name(name: &str) -> bool {
    is_name(name, begins_metric)
}

/// Returns `true` if `name` is a label name: letters, digits and underscores, no digit first.
pub(crate) fn is_label_name(name: &str) -> bool {
    is_name(name, begins_label)
}

fn begins_metric(char: char) -> bool {
    begins_label(char) || char == ':'
}

fn begins_label(char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_'
}

fn is_name(name: &str, may_begin: fn(char) -> bool) -> bool {
    let is_good =
        |(place, char): (usize, char)| may_begin(char) || (place > 0 && char.is_ascii_digit());
    !name.is_empty() && name.char_indices().all(is_good)
}

/// Returns `name` as a metric name.
#[cfg(feature = "recorder")]
pub(crate) fn metric_name(name: &str) -> Cow<'_, str> {
    sanitized(name, begins_metric)
}

/// Returns `name` as a label name. The names of the formats and names that begin with `__`, as
/// Prometheus' internal ones do, get the prefix `exported_`, as in Prometheus.
#[cfg(feature = "recorder")]
pub(crate) fn label_name(name: &str) -> Cow<'_, str> {
    let name = sanitized(name, begins_label);
    if matches!(&*name, "le" | "quantile") || name.starts_with("__") {
        return Cow::Owned(format!("exported_{name}"));
    }
    name
}

#[cfg(feature = "recorder")]
fn sanitized(name: &str, may_begin: fn(char) -> bool) -> Cow<'_, str> {
    if is_name(name, may_begin) {
        return Cow::Borrowed(name);
    }
    let mut good = String::new();
    if name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        good.push('_');
    }
    let keep = |char: char| may_begin(char) || char.is_ascii_digit();
    good.extend(name.chars().map(|char| if keep(char) { char } else { '_' }));
    Cow::Owned(good)
}

#[cfg(all(test, feature = "recorder"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_allowed_becomes_an_underscore() {
        for (name, metric, label) in [
            ("requests_total", "requests_total", "requests_total"),
            ("a1", "a1", "a1"),
            ("le", "le", "exported_le"),
            ("__name__", "__name__", "exported___name__"),
            ("-_x", "__x", "exported___x"),
            ("http.server:duration", "http_server:duration", "http_server_duration"),
            ("5xx", "_5xx", "_5xx"),
            ("", "_", "_"),
            ("größe", "gr__e", "gr__e"),
            ("a\nb{c=\"d\"} 1", "a_b_c__d___1", "a_b_c__d___1"),
        ] {
            assert_eq!((&*metric_name(name), &*label_name(name)), (metric, label), "{name}");
            assert_eq!(matches!(metric_name(name), Cow::Borrowed(_)), name == metric, "{name}");
        }
    }
}
