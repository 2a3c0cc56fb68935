//! The client libraries, each with the same metrics: requests in flight, requests by path and status, and
//! how long they take.

use std::time::Instant;

use metrics::{counter, gauge, histogram};
use percid_metrics::PrometheusBuilder;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

const SECONDS: [f64; 8] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];

pub(crate) const NAMES: [&str; 5] = [
    "none",
    "percid",
    "metrics-exporter-prometheus",
    "prometheus-client",
    "prometheus-client-over-percid",
];

type Labels = [(&'static str, &'static str); 2];

/// The client library that counts.
#[derive(Clone)]
pub(crate) enum Client {
    None,
    /// The facade `metrics`, whatever is behind it.
    Facade,
    Registry {
        in_flight: Gauge,
        requests: Family<Labels, Counter>,
        seconds: Histogram,
    },
    RegistryOverPercid {
        in_flight: percid_metrics::Gauge,
        requests: percid_metrics::Family<Labels, percid_metrics::Counter>,
        seconds: percid_metrics::Histogram,
    },
}

impl Client {
    /// Makes it ready, for the process.
    pub(crate) fn new(name: &str) -> Result<Client, String> {
        match name {
            "none" => Ok(Client::None),
            "percid" => {
                let builder = PrometheusBuilder::new().set_buckets(&SECONDS);
                let builder = builder.map_err(|error| error.to_string())?;
                builder.install_recorder().map_err(|error| error.to_string())?;
                Ok(Client::Facade)
            }
            "metrics-exporter-prometheus" => {
                let builder = metrics_exporter_prometheus::PrometheusBuilder::new();
                let builder = builder.set_buckets(&SECONDS).map_err(|error| error.to_string())?;
                builder.install_recorder().map_err(|error| error.to_string())?;
                Ok(Client::Facade)
            }
            "prometheus-client" => Ok(Client::Registry {
                in_flight: Gauge::default(),
                requests: Family::default(),
                seconds: Histogram::new(SECONDS),
            }),
            "prometheus-client-over-percid" => Ok(Client::RegistryOverPercid {
                in_flight: percid_metrics::Gauge::default(),
                requests: percid_metrics::Family::default(),
                seconds: percid_metrics::Histogram::new(SECONDS),
            }),
            _ => Err(format!("there is no client {name}: one of {}", NAMES.join(", "))),
        }
    }

    /// Counts a request that has come. A function of its own, so that samples show it.
    #[inline(never)]
    pub(crate) fn metrics_of_request_begun(&self) {
        match self {
            Client::None => {}
            Client::Facade => gauge!("http_in_flight").increment(1.0),
            Client::Registry { in_flight, .. } => _ = in_flight.inc(),
            Client::RegistryOverPercid { in_flight, .. } => in_flight.inc(),
        }
    }

    /// Counts a request that is answered. The texts are constants, as routes and statuses are in the
    /// routers of services.
    #[inline(never)]
    pub(crate) fn metrics_of_request_answered(
        &self,
        path: &'static str,
        status: &'static str,
        began: Instant,
    ) {
        let took = || began.elapsed().as_secs_f64();
        let labels = [("path", path), ("status", status)];
        match self {
            Client::None => {}
            Client::Facade => {
                counter!("http_requests_total", "path" => path, "status" => status).increment(1);
                histogram!("http_request_seconds").record(took());
                gauge!("http_in_flight").decrement(1.0);
            }
            Client::Registry { in_flight, requests, seconds } => {
                requests.get_or_create(&labels).inc();
                seconds.observe(took());
                in_flight.dec();
            }
            Client::RegistryOverPercid { in_flight, requests, seconds } => {
                requests.with(&labels, percid_metrics::Counter::inc);
                seconds.observe(took());
                in_flight.dec();
            }
        }
    }
}
