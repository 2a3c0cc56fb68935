//! An OTLP receiver on this machine, which gives the answers of a test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use prost::Message;

/// The server's reaction to a request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Status, further headers (each with its end of line) and body.
    Says(u16, &'static str, Vec<u8>),
    /// Closes the connection.
    Closes,
    /// Does not answer until the client closes the connection.
    Hangs,
}

/// Far longer than any step takes, on any machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) const OK: Answer = Answer::Says(200, "", Vec::new());

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    /// Method and path.
    pub(crate) line: String,
    /// In lower case.
    pub(crate) headers: Vec<String>,
    pub(crate) message: ExportMetricsServiceRequest,
}

pub(crate) struct Server {
    pub(crate) endpoint: String,
    requests: Receiver<Request>,
}

impl Server {
    /// Starts a server. It gives these answers to the first requests, and the last one to all later
    /// requests.
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, requests) = channel();
        let answers: Vec<Answer> = answers.into_iter().collect();
        std::thread::spawn(move || serve(&listener, answers, &sender));
        Server { endpoint: format!("http://{address}/v1/metrics"), requests }
    }

    /// Returns the next request. If none comes, something is wrong, and this returns `None` after
    /// some minutes.
    pub(crate) fn request(&self) -> Option<Request> {
        self.requests.recv_timeout(PATIENCE).ok()
    }

    /// Returns the received requests that were not returned yet.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

/// Serves one connection after the other: an exporter has one.
fn serve(listener: &TcpListener, answers: Vec<Answer>, requests: &Sender<Request>) {
    let last = answers.last().cloned().unwrap_or(OK);
    let mut answers = answers.into_iter();
    for connection in listener.incoming() {
        let mut connection = BufReader::new(connection.expect("a connection"));
        while let Some(request) = read(&mut connection) {
            // The test may have ended.
            _ = requests.send(request);
            let answer = answers.next().unwrap_or_else(|| last.clone());
            if !give(connection.get_mut(), answer) {
                break;
            }
        }
    }
}

fn read(connection: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).ok().filter(|&length| length > 0)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let line = lines.remove(0);
    let headers: Vec<String> = lines.iter().map(|line| line.to_ascii_lowercase()).collect();
    let length = headers.iter().find_map(|it| it.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().expect("a length")];
    connection.read_exact(&mut body).ok()?;
    let message = ExportMetricsServiceRequest::decode(&*body).expect("a message of OTLP");
    Some(Request { line, headers, message })
}

/// Returns `true` if the connection continues.
fn give(connection: &mut TcpStream, answer: Answer) -> bool {
    let (status, headers, body) = match answer {
        Answer::Says(status, headers, body) => (status, headers, body),
        Answer::Closes => return false,
        Answer::Hangs => {
            _ = connection.set_read_timeout(Some(PATIENCE));
            if connection.read(&mut [0]).is_ok() {
                return false;
            }
            // The client has not closed the connection. The test detects this by the answer.
            (200, "", Vec::new())
        }
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status} Said\r\n{headers}Content-Length: {length}\r\n\r\n");
    let sent = connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(&body));
    sent.is_ok()
}
