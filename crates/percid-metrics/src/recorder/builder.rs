//! The builder of recorders, with the methods of metrics-exporter-prometheus' builder.

use std::fmt;
#[cfg(feature = "http-listener")]
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics_util::MetricKindMask;

use super::facade::PrometheusRecorder;
use super::handle::PrometheusHandle;
use super::idle::{Clock, Idle};
use super::shapes::{Matcher, Shape};
use super::store::{Settings, Store};
use crate::histogram::{BadSchema, Limits};
use crate::page::label_name;

/// Builds a [`PrometheusRecorder`], and installs it.
///
/// ```
/// use percid_metrics::PrometheusBuilder;
///
/// let recorder = PrometheusBuilder::new()
///     .add_global_label("service", "search")
///     .set_buckets(&[0.01, 0.1, 1.0])?
///     .build_recorder();
/// let handle = recorder.handle();
/// metrics::with_local_recorder(&recorder, || {
///     metrics::counter!("requests_total", "code" => "200").increment(3);
///     metrics::histogram!("seconds").record(0.05);
/// });
/// let page = handle.render();
/// assert!(page.contains("requests_total{code=\"200\",service=\"search\"} 3\n"), "{page}");
/// assert!(page.contains("seconds_bucket{service=\"search\",le=\"0.1\"} 1\n"), "{page}");
/// # Ok::<(), percid_metrics::BuildError>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until it is installed"]
pub struct PrometheusBuilder {
    settings: Settings,
    idle: (MetricKindMask, Option<Duration>),
    upkeep: Duration,
    clock: Clock,
    #[cfg(feature = "http-listener")]
    listener: SocketAddr,
    #[cfg(feature = "http-listener")]
    allowed: Vec<ipnet::IpNet>,
}

/// The error that a recorder cannot be built or installed.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// No limits or quantiles were given.
    EmptyBucketsOrQuantiles,
    /// A limit is NaN, or not above the one before it.
    BadLimit(f64),
    /// A quantile is not from 0 to 1.
    BadQuantile(f64),
    /// The schema does not exist.
    BadSchema(BadSchema),
    /// The text is not an address or a network such as `10.0.0.0/8`.
    InvalidAllowlistAddress(String),
    /// The process has a recorder already.
    FailedToSetGlobalRecorder,
    /// The page cannot be served, for the system's reason.
    FailedToCreateHttpListener(std::io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::EmptyBucketsOrQuantiles => f.write_str("there are no limits or quantiles"),
            BuildError::BadLimit(limit) => {
                write!(f, "the limit {limit} is no number, or not above the one before it")
            }
            BuildError::BadQuantile(quantile) => write!(f, "{quantile} is not from 0 to 1"),
            BuildError::BadSchema(error) => error.fmt(f),
            BuildError::InvalidAllowlistAddress(text) => {
                write!(f, "{text:?} is no address such as 10.0.0.0/8 or ::1")
            }
            BuildError::FailedToSetGlobalRecorder => {
                f.write_str("the process has a recorder already")
            }
            BuildError::FailedToCreateHttpListener(error) => {
                write!(f, "the page cannot be served: {error}")
            }
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::FailedToCreateHttpListener(error) => Some(error),
            BuildError::BadSchema(error) => Some(error),
            _ => None,
        }
    }
}

/// The default quantiles of summaries.
const QUANTILES: [f64; 7] = [0.0, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0];

/// The default interval between two checks for idle metrics.
const UPKEEP: Duration = Duration::from_secs(5);

impl PrometheusBuilder {
    /// Creates a builder: histograms are summaries, metrics are never removed, and the page is
    /// served on port 9000.
    pub fn new() -> PrometheusBuilder {
        PrometheusBuilder {
            settings: Settings { quantiles: QUANTILES.to_vec(), ..Settings::default() },
            idle: (MetricKindMask::NONE, None),
            upkeep: UPKEEP,
            clock: Clock::default(),
            #[cfg(feature = "http-listener")]
            listener: SocketAddr::from(([0, 0, 0, 0], 9000)),
            #[cfg(feature = "http-listener")]
            allowed: Vec::new(),
        }
    }

    /// Sets the address and port at which the page is served.
    #[cfg(feature = "http-listener")]
    pub fn with_http_listener(mut self, address: impl Into<SocketAddr>) -> PrometheusBuilder {
        self.listener = address.into();
        self
    }

    /// Adds an address or a network that may read the page. If none is added, all may read it.
    ///
    /// # Errors
    ///
    /// If the text is not an address.
    #[cfg(feature = "http-listener")]
    pub fn add_allowed_address(
        mut self,
        address: impl AsRef<str>,
    ) -> Result<PrometheusBuilder, BuildError> {
        let text = address.as_ref();
        let single = || text.parse::<std::net::IpAddr>().map(ipnet::IpNet::from);
        let network = text.parse().or_else(|_| single());
        let bad = |_| BuildError::InvalidAllowlistAddress(text.to_owned());
        self.allowed.push(network.map_err(bad)?);
        Ok(self)
    }

    /// Sets the quantiles of summaries.
    ///
    /// # Errors
    ///
    /// If there are no quantiles, or one is not from 0 to 1.
    pub fn set_quantiles(mut self, quantiles: &[f64]) -> Result<PrometheusBuilder, BuildError> {
        if quantiles.is_empty() {
            return Err(BuildError::EmptyBucketsOrQuantiles);
        }
        match quantiles.iter().find(|quantile| !(0.0..=1.0).contains(*quantile)) {
            Some(&bad) => Err(BuildError::BadQuantile(bad)),
            None => {
                self.settings.quantiles = quantiles.to_vec();
                Ok(self)
            }
        }
    }

    /// Sets the bucket limits of all histograms that have no others.
    ///
    /// # Errors
    ///
    /// If there are no limits, or they are not in ascending order.
    pub fn set_buckets(mut self, limits: &[f64]) -> Result<PrometheusBuilder, BuildError> {
        self.settings.shapes.others = checked(limits)?;
        Ok(self)
    }

    /// Sets the bucket limits of the histograms whose names match.
    ///
    /// # Errors
    ///
    /// If there are no limits, or they are not in ascending order.
    pub fn set_buckets_for_metric(
        mut self,
        matcher: Matcher,
        limits: &[f64],
    ) -> Result<PrometheusBuilder, BuildError> {
        self.settings.shapes.add(matcher, checked(limits)?);
        Ok(self)
    }

    /// Sets the time after which unchanged metrics of these kinds are removed. While a program has
    /// a handle to such a metric, it is only left out of the page. With `None`, no metric is
    /// removed.
    pub fn idle_timeout(
        mut self,
        kinds: MetricKindMask,
        timeout: Option<Duration>,
    ) -> PrometheusBuilder {
        self.idle = (kinds, timeout);
        self
    }

    /// Sets the interval between two checks for idle metrics. Each reading of the page is a check,
    /// too.
    pub fn upkeep_timeout(mut self, every: Duration) -> PrometheusBuilder {
        self.upkeep = every;
        self
    }

    /// Replaces the system's clock by which metrics are idle. For tests, which need not wait.
    #[doc(hidden)]
    pub fn idle_clock(
        mut self,
        now: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> PrometheusBuilder {
        self.clock = Clock(Arc::new(now));
        self
    }

    /// Adds a label to all metrics that have no label of that name.
    pub fn add_global_label(
        mut self,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> PrometheusBuilder {
        let name = label_name(&name.into()).into_owned();
        self.settings.labels.push((name, value.into()));
        self
    }

    /// Sets whether names end in the unit of their description.
    pub fn set_enable_unit_suffix(mut self, enabled: bool) -> PrometheusBuilder {
        self.settings.unit_suffix = enabled;
        self
    }

    /// Builds the recorder, for layers, for one thread, or for the program to install.
    pub fn build_recorder(self) -> PrometheusRecorder {
        let (kinds, timeout) = self.idle;
        let store = Store::new(self.settings, Idle::new(kinds, timeout, self.clock));
        PrometheusRecorder { store: Arc::new(store) }
    }

    /// Installs the process's recorder. The returned handle reads the page.
    ///
    /// # Errors
    ///
    /// If the process has a recorder already.
    pub fn install_recorder(self) -> Result<PrometheusHandle, BuildError> {
        let (upkeep, has_timeout) = (self.upkeep, self.idle.1.is_some());
        let recorder = self.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder)
            .map_err(|_| BuildError::FailedToSetGlobalRecorder)?;
        // #[gamma::skip(cond.always_true, reason = "without a timeout it forgets nothing")]
        if has_timeout {
            keep_up(handle.clone(), upkeep);
        }
        Ok(handle)
    }

    /// Installs the process's recorder, and serves the page over HTTP in a thread of its own: at
    /// every path but `/health`.
    ///
    /// At most 32 pages are made at a time. Another request gets the answer 503 with
    /// `Retry-After: 1` at once. Pages are written at the speed of the client. If a client takes no
    /// byte for 30 seconds, its connection is closed, and another page can be made. A client that
    /// takes a few bytes now and then keeps the connection until it has the whole page. A
    /// connection without a request for ten seconds is closed. The 257th connection at a time waits
    /// until another one ends.
    ///
    /// # Errors
    ///
    /// If the process has a recorder already, or the address cannot be bound.
    #[cfg(feature = "http-listener")]
    pub fn install(self) -> Result<(), BuildError> {
        let (address, allowed) = (self.listener, self.allowed.clone());
        let listener = super::http::Listener::bind(address, allowed)
            .map_err(BuildError::FailedToCreateHttpListener)?;
        let handle = self.install_recorder()?;
        listener.serve(handle).map_err(BuildError::FailedToCreateHttpListener)
    }
}

/// Checks for idle metrics regularly, for as long as the process lives. If there is no thread, only
/// reading the page checks for them.
fn keep_up(handle: PrometheusHandle, every: Duration) {
    let work = move || {
        loop {
            // #[gamma::skip(reason = "only a clock can see how often")]
            std::thread::sleep(every.max(Duration::from_millis(1)));
            handle.run_upkeep();
        }
    };
    // #[gamma::skip(literal, reason = "the name is for people")]
    let _ = std::thread::Builder::new().name("percid-metrics".to_owned()).spawn(work);
}

fn checked(limits: &[f64]) -> Result<Shape, BuildError> {
    if limits.is_empty() {
        return Err(BuildError::EmptyBucketsOrQuantiles);
    }
    if let Some(bad) = limits.iter().find(|limit| limit.is_nan()) {
        return Err(BuildError::BadLimit(*bad));
    }
    if let Some(pair) = limits.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(BuildError::BadLimit(pair[1]));
    }
    Ok(Shape::Limits(Limits::new(limits.iter().copied())))
}

impl Default for PrometheusBuilder {
    fn default() -> Self {
        PrometheusBuilder::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;

    #[test]
    fn bad_settings_are_refused_with_the_reason() {
        let builder = PrometheusBuilder::new;
        let text = |result: Result<PrometheusBuilder, BuildError>| {
            result.map(|_| ()).expect_err("it is refused").to_string()
        };
        assert_eq!(text(builder().set_buckets(&[])), "there are no limits or quantiles");
        let order = "the limit 1 is no number, or not above the one before it";
        assert_eq!(text(builder().set_buckets(&[2.0, 1.0])), order);
        let nan = "the limit NaN is no number, or not above the one before it";
        assert_eq!(text(builder().set_buckets(&[f64::NAN])), nan);
        assert_eq!(text(builder().set_buckets(&[1.0, 2.0, 2.0])), order.replace('1', "2"));
        for bad in [1.5, -0.5, f64::NAN, 1.0f64.next_up()] {
            let error = text(builder().set_quantiles(&[0.0, 1.0, bad]));
            assert_eq!(error, format!("{bad} is not from 0 to 1"));
        }
        assert_eq!(text(builder().set_quantiles(&[])), "there are no limits or quantiles");
        assert!(builder().set_quantiles(&[0.0, 1.0]).is_ok());
        let others = Matcher::Full("a".to_owned());
        assert_eq!(
            text(builder().set_buckets_for_metric(others, &[])),
            "there are no limits or quantiles"
        );
    }

    #[test]
    fn errors_of_others_are_sources() {
        let schema = Histogram::native(9).map(|_| ()).expect_err("there is none");
        let failed = std::io::Error::other("why");
        for (error, text, source) in [
            (
                BuildError::BadSchema(schema),
                "the schema 9 is not from 0 to 8",
                Some("the schema 9 is not from 0 to 8"),
            ),
            (
                BuildError::FailedToCreateHttpListener(failed),
                "the page cannot be served: why",
                Some("why"),
            ),
            (
                BuildError::InvalidAllowlistAddress("x".to_owned()),
                "\"x\" is no address such as 10.0.0.0/8 or ::1",
                None,
            ),
            (BuildError::FailedToSetGlobalRecorder, "the process has a recorder already", None),
        ] {
            assert_eq!(error.to_string(), text);
            let found = std::error::Error::source(&error).map(ToString::to_string);
            assert_eq!(found.as_deref(), source);
        }
    }

    #[cfg(feature = "http-listener")]
    #[test]
    fn the_page_is_served_where_the_builder_says() {
        let builder = PrometheusBuilder::default();
        assert_eq!(builder.listener.to_string(), "0.0.0.0:9000");
        assert!(builder.allowed.is_empty());
        let builder = builder.with_http_listener(([127, 0, 0, 1], 7)).add_allowed_address("::1");
        let builder =
            builder.and_then(|it| it.add_allowed_address("10.0.0.0/8")).expect("addresses");
        assert_eq!(builder.listener.to_string(), "127.0.0.1:7");
        let allowed = builder.allowed.iter().map(ToString::to_string);
        assert_eq!(allowed.collect::<Vec<_>>(), ["::1/128", "10.0.0.0/8"]);
    }

    /// Uses the process's recorder. Other tests here have their own.
    #[test]
    fn an_installed_recorder_forgets_without_a_page() {
        let every = Duration::from_millis(7);
        let builder = PrometheusBuilder::new().upkeep_timeout(every);
        assert_eq!(
            (builder.upkeep, PrometheusBuilder::new().upkeep),
            (every, Duration::from_secs(5))
        );
        let builder = builder.idle_timeout(MetricKindMask::ALL, Some(Duration::ZERO));
        let handle = builder.install_recorder().expect("the first one");
        metrics::counter!("a").increment(1);
        let start = Instant::now();
        while !handle.store.counters.is_empty() {
            assert!(start.elapsed() < Duration::from_secs(600), "it is forgotten");
            std::thread::yield_now();
        }
        let second = PrometheusBuilder::new().install_recorder().map(drop);
        assert!(matches!(second, Err(BuildError::FailedToSetGlobalRecorder)));
    }
}
