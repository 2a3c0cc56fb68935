//! The builder of an exporter.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::clock::{Clock, System};
use super::exporter::OtlpExporter;
use super::receiver::Receiver;
use crate::provider::PercidMeterProvider;

/// The specification's defaults.
const ENDPOINT: &str = "http://localhost:4318/v1/metrics";
const INTERVAL: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(10);

/// The range of all times: never zero, and never so long that an addition overflows.
const MIN_TIME: Duration = Duration::from_millis(1);
const MAX_TIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A builder of an [`OtlpExporter`].
///
/// ```no_run
/// use std::time::Duration;
/// use percid_opentelemetry::PercidMeterProvider;
/// use percid_opentelemetry::otlp::OtlpBuilder;
///
/// let provider = PercidMeterProvider::builder().build();
/// let exporter = OtlpBuilder::new()
///     .with_endpoint("http://collector:4318/v1/metrics")
///     .with_interval(Duration::from_secs(10))
///     .start(&provider)?;
/// // ...
/// if let Err(error) = exporter.shutdown() {
///     eprintln!("the last metrics were lost: {error}");
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct OtlpBuilder {
    endpoint: String,
    headers: Vec<(String, String)>,
    interval: Duration,
    timeout: Duration,
    clock: Arc<dyn Clock>,
}

impl OtlpBuilder {
    /// Creates a builder: exports to `http://localhost:4318/v1/metrics`, every 60 seconds, with a
    /// timeout of 10 seconds.
    pub fn new() -> OtlpBuilder {
        let (endpoint, headers) = (ENDPOINT.to_owned(), Vec::new());
        let clock = Arc::new(System);
        OtlpBuilder { endpoint, headers, interval: INTERVAL, timeout: TIMEOUT, clock }
    }

    /// Sets the whole URL of the receiver: nothing is appended. `https` needs the feature
    /// `otlp-tls`. Proxies are not used, and redirections are not followed.
    pub fn with_endpoint(mut self, url: impl Into<String>) -> OtlpBuilder {
        self.endpoint = url.into();
        self
    }

    /// Adds a header to each request, such as a key.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> OtlpBuilder {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the time between two exports, from 1 ms to a year.
    pub fn with_interval(mut self, interval: Duration) -> OtlpBuilder {
        self.interval = interval.clamp(MIN_TIME, MAX_TIME);
        self
    }

    /// Sets the time for all attempts to send a collection, from 1 ms to a year.
    pub fn with_timeout(mut self, timeout: Duration) -> OtlpBuilder {
        self.timeout = timeout.clamp(MIN_TIME, MAX_TIME);
        self
    }

    /// Replaces the system's clock, by which the exporter waits. For tests, which need not wait.
    #[doc(hidden)]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> OtlpBuilder {
        self.clock = clock;
        self
    }

    /// Starts a thread that exports the collections of `provider`. The first collection is made
    /// after one interval.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for an invalid endpoint or header. Otherwise
    /// the reason why the thread cannot be started, or for `https` that the system has no trusted
    /// certificates.
    pub fn start(self, provider: &PercidMeterProvider) -> io::Result<OtlpExporter> {
        let receiver = Receiver::new(&self.endpoint, &self.headers)?;
        let times = (self.interval, self.timeout);
        OtlpExporter::start(provider.clone(), receiver, times, self.clock)
    }
}

impl Default for OtlpBuilder {
    fn default() -> Self {
        OtlpBuilder::new()
    }
}

impl fmt::Debug for OtlpBuilder {
    /// Omits the values of headers, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("OtlpBuilder")
            .field("endpoint", &self.endpoint)
            .field("headers", &headers)
            .field("interval", &self.interval)
            .field("timeout", &self.timeout)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_limited_and_secrets_are_not_printed() {
        let said = |builder: OtlpBuilder| format!("{builder:?}");
        let expected = "OtlpBuilder { endpoint: \"http://localhost:4318/v1/metrics\", headers: [], \
                        interval: 60s, timeout: 10s }";
        assert_eq!(said(OtlpBuilder::default()), expected);
        let builder = OtlpBuilder::new().with_endpoint("x").with_header("key", "secret");
        let builder = builder.with_interval(Duration::ZERO).with_timeout(Duration::MAX);
        let expected = "OtlpBuilder { endpoint: \"x\", headers: [\"key\"], interval: 1ms, \
                        timeout: 31536000s }";
        assert_eq!(said(builder.clone()), expected);
        let builder = builder.with_interval(Duration::MAX).with_timeout(Duration::ZERO);
        assert!(said(builder).ends_with("interval: 31536000s, timeout: 1ms }"));
    }
}
