//! A small web service with percid's metrics: through the facade `metrics`, and in the registry of
//! prometheus-client.
//!
//! usage: percid-prometheus SERVICE METRICS CLIENT-METRICS
//!
//! The three are addresses, as 127.0.0.1:8080: that of the service, that of the facade's page, and
//! that of the registry's page. The service answers one line to every request, keeps connections
//! open, and runs until it is ended.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use metrics::{Unit, counter, describe_counter, describe_histogram, gauge, histogram};
use percid_metrics::{Counter, Family, Histogram, PrometheusBuilder};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

const SECONDS: [f64; 8] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];

/// The metrics of prometheus-client's registry.
#[derive(Clone)]
struct OfClient {
    requests: Family<Vec<(String, String)>, Counter>,
    bytes: Histogram,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [service, page, client_page] = &arguments[..] else {
        return Err("usage: percid-prometheus SERVICE METRICS CLIENT-METRICS".into());
    };
    let page: SocketAddr = page.parse()?;
    PrometheusBuilder::new().with_http_listener(page).set_buckets(&SECONDS)?.install()?;
    describe_counter!("http_requests_total", Unit::Count, "Requests by path and status");
    describe_histogram!("http_request_seconds", Unit::Seconds, "Time until a request is answered");
    let of_client =
        OfClient { requests: Family::default(), bytes: Histogram::new([10.0, 100.0, 1000.0]) };
    let mut registry = Registry::default();
    registry.register("client_requests", "Requests by path", of_client.requests.clone());
    registry.register("client_request_bytes", "Lengths of requests", of_client.bytes.clone());
    serve_registry(TcpListener::bind(client_page)?, registry);
    for connection in TcpListener::bind(service)?.incoming() {
        let (connection, of_client) = (connection?, of_client.clone());
        // A client that closes its connection does not wait for an answer.
        thread::spawn(move || _ = answer_all(&connection, &of_client));
    }
    Ok(())
}

fn answer_all(connection: &TcpStream, of_client: &OfClient) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut lines = BufReader::new(connection).lines();
    while let Some(line) = lines.next().transpose()? {
        let path = line.split(' ').nth(1).unwrap_or("/").to_owned();
        while lines.next().transpose()?.is_some_and(|header| !header.is_empty()) {}
        gauge!("http_in_flight").increment(1.0);
        let began = Instant::now();
        let (status, text) =
            if path.starts_with("/missing") { (404, "no\n") } else { (200, "ok\n") };
        // Counted before it is sent: a client with the answer finds it counted.
        counter!("http_requests_total", "path" => path.clone(), "status" => status.to_string())
            .increment(1);
        of_client.requests.with(&vec![("path".to_owned(), path)], Counter::inc);
        of_client.bytes.observe(line.len() as f64);
        histogram!("http_request_seconds").record(began.elapsed().as_secs_f64());
        gauge!("http_in_flight").decrement(1.0);
        let length = text.len();
        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{text}");
        (&mut &*connection).write_all(answer.as_bytes())?;
    }
    Ok(())
}

/// Serves the page of prometheus-client's registry, which has no server of its own.
fn serve_registry(listener: TcpListener, registry: Registry) {
    let registry = Arc::new(registry);
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let mut page = String::new();
            let written = text::encode(&mut page, &registry).map_err(io::Error::other);
            // The next scrape comes soon.
            let _ = written.and_then(|()| send_page(connection, &page));
        }
    });
}

fn send_page(mut connection: TcpStream, page: &str) -> io::Result<()> {
    let mut lines = BufReader::new(&connection).lines();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let length = page.len();
    write!(
        connection,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{page}"
    )
}
