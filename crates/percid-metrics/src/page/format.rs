//! A page's text format, and the choice of it by the client.

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' own format, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// Returns the value of the `Content-Type` header.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Returns the format that a client prefers by its `Accept` header, and OpenMetrics if it takes
    /// both alike (RFC 9110, sections 12.4.2 and 12.5.1). OpenMetrics must be named. Its version, if
    /// there is one, must be 1.0.0 or 0.0.1.
    pub fn accepted(accept: &str) -> Format {
        let (mut open_metrics, mut text) = (0.0, Preference::default());
        for (name, version, quality) in accept.split(',').map(range) {
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            if is("application/openmetrics-text") {
                if matches!(version, None | Some("1.0.0" | "0.0.1")) {
                    open_metrics = quality.max(open_metrics);
                }
                continue;
            }
            let names = ["*/*", "text/*", "text/plain"];
            let Some(exactness) = names.iter().position(|name| is(name)) else { continue };
            let exactness = exactness + 1;
            // The most exact range that a type belongs to has its quality.
            let more_exact = exactness > text.exactness;
            if more_exact || exactness == text.exactness && quality > text.quality {
                text = Preference { exactness, quality };
            }
        }
        match open_metrics > 0.0 && open_metrics >= text.quality {
            true => Format::OpenMetrics,
            false => Format::Text,
        }
    }
}

#[derive(Default)]
struct Preference {
    /// 0: there is none.
    exactness: usize,
    quality: f32,
}

/// Returns the type, version and quality of a range of types. A quality that is none is 0. Allocates
/// nothing: C programs may be out of memory.
fn range(text: &str) -> (&str, Option<&str>, f32) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let (mut version, mut quality) = (None, 1.0);
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        if key.eq_ignore_ascii_case("q") {
            quality = value.trim().parse().unwrap_or(0.0);
        } else if key.eq_ignore_ascii_case("version") {
            version = Some(value.trim_matches('"'));
        }
    }
    (name, version, if (0.0..=1.0).contains(&quality) { quality } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of Prometheus 2.42.
    const PROMETHEUS: &str = "application/openmetrics-text;version=1.0.0,\
         application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

    #[test]
    fn the_format_is_what_the_client_asks_for() {
        for (accept, format) in [
            ("", Format::Text),
            ("*/*", Format::Text),
            ("application/openmetrics-text;version=1.0.0,text/plain", Format::OpenMetrics),
            ("text/plain;q=0.5, application/openmetrics-text; q=0.2", Format::Text),
            ("text/plain;q=0.2, application/openmetrics-text; q=0.5", Format::OpenMetrics),
            ("text/plain;q=0.5, application/openmetrics-text; q=0.5", Format::OpenMetrics),
            (
                "Application/OpenMetrics-Text; Version=1.0.0; Q=0.5, TEXT/PLAIN; Q=0.4",
                Format::OpenMetrics,
            ),
            ("application/openmetrics-text;version=2.0.0,text/plain;q=0.1", Format::Text),
            ("application/openmetrics-text;version=\"0.0.1\";q=0.8,*/*;q=0.1", Format::OpenMetrics),
            ("application/openmetrics-text;q=0.5,*/*", Format::Text),
            ("application/openmetrics-text;q=0.5,text/*;q=0.9,*/*;q=0.1", Format::Text),
            ("application/openmetrics-text;q=0.5,text/plain;q=0.1,*/*", Format::OpenMetrics),
            ("application/openmetrics-text;q=much", Format::Text),
            ("application/openmetrics-text;q=NaN,text/plain", Format::Text),
            ("application/openmetrics-text;q=0", Format::Text),
            ("application/openmetrics-text; version=1.0.0; q=0.0", Format::Text),
            ("application/openmetrics-text;q=0.00", Format::Text),
            ("application/openmetrics-text;q=0.000;version=1.0.0", Format::Text),
            ("application/openmetrics-text;q=0.001", Format::OpenMetrics),
            (PROMETHEUS, Format::OpenMetrics),
            ("application/openmetrics-textual", Format::Text),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }
}
