//! The page over HTTP.
//!
//! It is written while it is sent: the thread that makes it waits where the client takes it slowly, so it
//! is never in memory as a whole.

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
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use tokio::sync::Semaphore;
use tokio::sync::mpsc;

use super::PrometheusHandle;
use crate::page::Format;

/// Bytes that are sent together, and how many such pieces may wait.
const PIECE: usize = 32 << 10;
const PIECES: usize = 4;
/// Clients at a time; others wait.
const CLIENTS: usize = 32;
/// For so long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// An address that is bound.
#[derive(Debug)]
pub(super) struct Listener {
    socket: TcpListener,
    allowed: Arc<[IpNet]>,
}

impl Listener {
    pub(super) fn bind(address: SocketAddr, allowed: Vec<IpNet>) -> io::Result<Listener> {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket, allowed: allowed.into() })
    }

    /// Serves the page in a thread of its own, as long as the process lives.
    pub(super) fn serve(self, handle: PrometheusHandle) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let work = move || runtime.block_on(self.accept(handle));
        std::thread::Builder::new().name("percid-metrics".to_owned()).spawn(work)?;
        Ok(())
    }

    async fn accept(self, handle: PrometheusHandle) {
        let Ok(socket) = tokio::net::TcpListener::from_std(self.socket) else { return };
        let clients = Arc::new(Semaphore::new(CLIENTS));
        loop {
            let Ok(permit) = Arc::clone(&clients).acquire_owned().await else { return };
            let Ok((stream, peer)) = socket.accept().await else {
                // Out of files, for example: others may be closed by then.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let may_read = is_allowed(&self.allowed, peer.ip());
            let handle = handle.clone();
            tokio::spawn(async move {
                let answer = service_fn(|request| answer(request, handle.clone(), may_read));
                let mut server = http1::Builder::new();
                server.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
                // A client that goes away is none of the program's matters.
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

async fn answer(
    request: Request<Incoming>,
    handle: PrometheusHandle,
    may_read: bool,
) -> Result<Response<Body>, Infallible> {
    if !may_read {
        return Ok(plain(StatusCode::FORBIDDEN, "This address may not read the metrics.\n"));
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, "GET /metrics\n"));
    }
    Ok(match request.uri().path() {
        "/health" => plain(StatusCode::OK, "OK\n"),
        "/" | "/metrics" => page(&request, handle),
        _ => plain(StatusCode::NOT_FOUND, "The metrics are at /metrics.\n"),
    })
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

fn page(request: &Request<Incoming>, handle: PrometheusHandle) -> Response<Body> {
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept.unwrap_or_default());
    let (sender, pieces) = mpsc::channel(PIECES);
    tokio::task::spawn_blocking(move || {
        let mut out = Pieces { sender, waiting: Vec::with_capacity(PIECE) };
        // The client has gone if this fails.
        let _ = handle.render_as(format, &mut out).and_then(|()| out.flush());
    });
    let mut response = Response::new(Sent(pieces).boxed());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    response
}

/// What is sent.
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
