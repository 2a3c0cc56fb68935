//! A web service that counts its requests and measures their duration.
//!
//!     cargo run -p percid-metrics --features http-listener --example service
//!
//! Then run `curl http://127.0.0.1:8080/hello` a few times, and
//! `curl http://127.0.0.1:9000/metrics`. Ctrl-C ends it.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Instant;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use percid_metrics::PrometheusBuilder;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [service, page] = [8080, 9000].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    PrometheusBuilder::new()
        .with_http_listener(page)
        .set_buckets(&[1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0])?
        .install()?;
    describe_counter!("http_requests_total", Unit::Count, "Requests by path and status.");
    describe_histogram!("http_request_seconds", Unit::Seconds, "Until a request is answered.");
    let listener = TcpListener::bind(service).await?;
    eprintln!("http://{service}/hello is counted on http://{page}/metrics");
    loop {
        let (connection, _) = listener.accept().await?;
        tokio::spawn(async move {
            let server = hyper::server::conn::http1::Builder::new();
            // Errors are ignored: the client has closed its connection.
            let _ = server.serve_connection(TokioIo::new(connection), service_fn(answer)).await;
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let began = Instant::now();
    // Label only the known routes. A client may request any path, and each would have a series.
    let (path, status, text) = match request.uri().path() {
        "/hello" => ("/hello", StatusCode::OK, "hello\n"),
        _ => ("other", StatusCode::NOT_FOUND, "there is nothing\n"),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    counter!("http_requests_total", "path" => path, "status" => status.as_str().to_owned())
        .increment(1);
    histogram!("http_request_seconds").record(began.elapsed().as_secs_f64());
    Ok(response)
}
