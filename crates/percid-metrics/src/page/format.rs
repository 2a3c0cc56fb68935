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

    /// Returns the format that a client requests by its `Accept` header.
    pub fn accepted(accept: &str) -> Format {
        let asks = accept.split(',').any(|one| {
            let mut parts = one.split(';').map(str::trim);
            let is_it = parts.next() == Some("application/openmetrics-text");
            is_it && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        });
        if asks { Format::OpenMetrics } else { Format::Text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_what_the_client_asks_for() {
        for (accept, format) in [
            ("", Format::Text),
            ("*/*", Format::Text),
            ("application/openmetrics-text;version=1.0.0,text/plain", Format::OpenMetrics),
            ("text/plain;q=0.5, application/openmetrics-text; q=0.2", Format::OpenMetrics),
            ("application/openmetrics-text;q=0", Format::Text),
            ("application/openmetrics-text; version=1.0.0; q=0.0", Format::Text),
            ("application/openmetrics-text;q=0.00", Format::Text),
            ("application/openmetrics-text;q=0.000;version=1.0.0", Format::Text),
            ("application/openmetrics-text;q=0.001", Format::OpenMetrics),
            ("application/openmetrics-textual", Format::Text),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }
}
