//! The page over HTTP.
//!
//! The page is sent while it is made, so it is never in memory as a whole. If the client takes it
//! slowly, the thread that makes it waits. One page too many at a time is refused at once. A client
//! that takes nothing for too long loses its connection, and its page no longer counts.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::PrometheusHandle;
use super::timed_stream::TimedStream;
use crate::page::Format;

/// Number of bytes that are sent together, and number of such pieces that may wait.
const PIECE: usize = 32 << 10;
const PIECES: usize = 4;
/// Maximum number of pages that are made at a time. Another request is refused, to be repeated
/// later.
const PAGES: usize = 32;
/// Maximum number of connections at a time; others wait. A connection ends soon, unless a page is
/// sent to it.
const CONNECTIONS: usize = 256;
/// Maximum time until a client has sent its request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time without a byte after which a client loses its connection: three times Prometheus' timeout
/// for a page.
const STALLED: Duration = Duration::from_secs(30);

/// A bound address.
#[derive(Debug)]
pub(super) struct Listener {
    socket: TcpListener,
    allowed: Arc<[IpNet]>,
    pages: usize,
    stalled: Duration,
}

impl Listener {
    pub(super) fn bind(address: SocketAddr, allowed: Vec<IpNet>) -> io::Result<Listener> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket, allowed: allowed.into(), pages: PAGES, stalled: STALLED })
    }

    /// Serves the page in a thread of its own, for as long as the process lives.
    pub(super) fn serve(self, handle: PrometheusHandle) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let work = move || runtime.block_on(self.accept(handle));
        std::thread::Builder::new().name("percid-metrics".to_owned()).spawn(work)?;
        Ok(())
    }

    async fn accept(self, handle: PrometheusHandle) {
        let Ok(socket) = tokio::net::TcpListener::from_std(self.socket) else { return };
        // #[gamma::skip(expr, reason = "one more or less does no harm")]
        let connections = Arc::new(Semaphore::new(CONNECTIONS));
        let pages = Arc::new(Semaphore::new(self.pages));
        loop {
            let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return };
            let Ok((stream, peer)) = socket.accept().await else {
                // For example, the process has too many open files. Some may be closed after the
                // pause.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let stream = TimedStream::new(stream, self.stalled);
            let may_read = is_allowed(&self.allowed, peer.ip());
            let (handle, pages) = (handle.clone(), Arc::clone(&pages));
            tokio::spawn(async move {
                let source = || may_read.then(|| (handle.clone(), Arc::clone(&pages)));
                let answer = service_fn(|request| answer(request, source()));
                let mut server = http1::Builder::new();
                server.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
                // Errors of the client are ignored.
                let _ = server.serve_connection(TokioIo::new(stream), answer).await;
                drop(permit);
            });
        }
    }
}

fn is_allowed(allowed: &[IpNet], peer: IpAddr) -> bool {
    let peer = peer.to_canonical();
    allowed.is_empty() || allowed.iter().any(|network| network.contains(&peer))
}

type Body = BoxBody<Bytes, Infallible>;

/// Answers a request. `source` has the handle, and the semaphore of pages; `None` if the client may
/// not read them.
async fn answer(
    request: Request<Incoming>,
    source: Option<(PrometheusHandle, Arc<Semaphore>)>,
) -> Result<Response<Body>, Infallible> {
    let Some((handle, pages)) = source else {
        return Ok(plain(StatusCode::FORBIDDEN, "This address may not read the metrics.\n"));
    };
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, "GET /metrics\n"));
    }
    Ok(match request.uri().path() {
        "/health" => plain(StatusCode::OK, "OK\n"),
        // Like the listener of metrics-exporter-prometheus, whose paths a scraper may have.
        _ => match pages.try_acquire_owned() {
            Ok(permit) => page(&request, handle, permit),
            Err(_) => busy(),
        },
    })
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

fn busy() -> Response<Body> {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, "Other pages are being made.\n");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn page(
    request: &Request<Incoming>,
    handle: PrometheusHandle,
    permit: OwnedSemaphorePermit,
) -> Response<Body> {
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept.unwrap_or_default());
    let (sender, pieces) = mpsc::channel(PIECES);
    tokio::task::spawn_blocking(move || {
        let mut out = Pieces { _permit: permit, sender, waiting: Vec::with_capacity(PIECE) };
        // If this fails, the client has disconnected.
        let _ = handle.render_as(format, &mut out).and_then(|()| out.flush());
    });
    let mut response = Response::new(Sent(pieces).boxed());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    response
}

/// The body of a response: a page in pieces.
struct Sent(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// A writer whose bytes are sent in pieces.
struct Pieces {
    /// Released before the sender is dropped: a client that has the whole page may request the next
    /// one.
    _permit: OwnedSemaphorePermit,
    sender: mpsc::Sender<Bytes>,
    waiting: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.waiting, Vec::with_capacity(PIECE));
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.sender.blocking_send(Bytes::from(piece)).map_err(gone)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::net::TcpStream;
    use std::sync::{Mutex, PoisonError};
    use std::time::Instant;

    use metrics::{counter, with_local_recorder};
    use metrics_util::MetricKindMask;

    use super::*;
    use crate::PrometheusBuilder;

    /// Requests a path, and returns the answer's status line with a reader of the rest.
    fn ask(address: SocketAddr, path: &str) -> (String, BufReader<TcpStream>) {
        let mut stream = TcpStream::connect(address).expect("it listens");
        // The test fails if no answer comes.
        stream.set_read_timeout(Some(Duration::from_secs(600))).expect("a time");
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let (mut status, mut answer) = (String::new(), BufReader::new(stream));
        answer.read_line(&mut status).expect("an answer");
        (status, answer)
    }

    fn rest(mut answer: BufReader<TcpStream>) -> String {
        let mut text = String::new();
        answer.read_to_string(&mut text).expect("the rest");
        text
    }

    #[test]
    fn an_address_that_may_not_read_is_told_so() {
        let networks = |texts: &[&str]| -> Vec<IpNet> {
            texts.iter().map(|text| text.parse().expect("a network")).collect()
        };
        for (allowed, peer, is_it) in [
            (&[][..], "10.1.2.3", true),
            (&["10.0.0.0/8"], "10.1.2.3", true),
            (&["10.0.0.0/8"], "11.1.2.3", false),
            (&["10.0.0.0/8"], "::ffff:10.1.2.3", true),
            (&["10.0.0.0/8", "::1/128"], "::1", true),
        ] {
            let peer = peer.parse().expect("an address");
            assert_eq!(is_allowed(&networks(allowed), peer), is_it, "{peer} of {allowed:?}");
        }
        let (mut listener, address) = listener();
        listener.allowed = networks(&["10.0.0.0/8"]).into();
        listener.serve(PrometheusBuilder::new().build_recorder().handle()).expect("a thread");
        for path in ["/metrics", "/health"] {
            let (status, answer) = ask(address, path);
            assert_eq!(status, "HTTP/1.1 403 Forbidden\r\n");
            assert!(rest(answer).ends_with("\r\n\r\nThis address may not read the metrics.\n"));
        }
    }

    #[test]
    fn a_page_is_sent_in_pieces_while_there_is_a_client() {
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("a permit");
        let (sender, mut sent) = mpsc::channel(PIECES);
        let mut out = Pieces { _permit: permit, sender, waiting: Vec::new() };
        out.write_all(&[7; PIECE - 1]).expect("room");
        assert!(sent.try_recv().is_err());
        out.write_all(&[7]).expect("room");
        assert_eq!(sent.try_recv().map(|piece| piece.len()), Ok(PIECE));
        drop(sent);
        let error = out.write_all(&[7; PIECE]).expect_err("nobody takes it");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    fn listener() -> (Listener, SocketAddr) {
        let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), Vec::new());
        let listener = listener.expect("an address");
        let address = listener.socket.local_addr().expect("it is bound");
        (listener, address)
    }

    /// The only page that may be made is longer than the system's socket buffers (a few MB).
    #[test]
    fn a_client_that_stops_reading_gives_its_page_back() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let long: Arc<str> = "x".repeat(PIECE).into();
        with_local_recorder(&recorder, || {
            (0..2000)
                .for_each(|n| counter!(format!("c{n}"), "long" => Arc::clone(&long)).increment(1));
        });
        let (mut listener, address) = listener();
        (listener.pages, listener.stalled) = (1, Duration::from_millis(1));
        listener.serve(recorder.handle()).expect("a thread");
        let (status, stalled) = ask(address, "/metrics");
        assert_eq!(status, "HTTP/1.1 200 OK\r\n");
        let mut others = std::iter::repeat_with(|| ask(address, "/metrics").0).take(100_000);
        let next = others.find(|status| !status.contains("503"));
        assert_eq!(next.as_deref(), Some("HTTP/1.1 200 OK\r\n"));
        let text = io::read_to_string(stalled);
        assert_eq!(text.expect_err("not all of it").kind(), io::ErrorKind::ConnectionReset);
    }

    /// Pages wait for a clock that blocks.
    #[test]
    fn one_page_too_many_is_refused_at_once_and_made_later() {
        let gate = Arc::new(Mutex::new(()));
        let of_clock = Arc::clone(&gate);
        let now = move || {
            drop(of_clock.lock().unwrap_or_else(PoisonError::into_inner));
            Instant::now()
        };
        let recorder = PrometheusBuilder::new()
            .idle_timeout(MetricKindMask::ALL, Some(Duration::from_secs(3600)))
            .idle_clock(now)
            .build_recorder();
        with_local_recorder(&recorder, || counter!("a").increment(1));
        let (listener, address) = listener();
        let closed = gate.lock().expect("nobody panics");
        listener.serve(recorder.handle()).expect("a thread");
        let begun: Vec<_> = (0..32).map(|_| ask(address, "/metrics")).collect();
        assert!(begun.iter().all(|(status, _)| status == "HTTP/1.1 200 OK\r\n"));
        let (status, answer) = ask(address, "/metrics");
        assert_eq!(status, "HTTP/1.1 503 Service Unavailable\r\n");
        assert!(rest(answer).contains("retry-after: 1\r\n"));
        assert_eq!(ask(address, "/health").0, "HTTP/1.1 200 OK\r\n");
        drop(closed);
        for (_, answer) in begun {
            assert!(rest(answer).contains("\na 1\n"));
        }
        assert!(rest(ask(address, "/metrics").1).contains("\na 1\n"));
    }
}
