//! A server without content that records the requests.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Serves until the test ends.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Receiver<String>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its number");
        let (sender, requests) = channel();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // A connection that fails has fetched nothing.
                let _ = answer(connection, &sender);
            }
        });
        Server { address, requests }
    }

    /// Returns the first lines of the requests since the last call, sorted.
    pub(crate) fn requests(&self) -> Vec<String> {
        let mut requests: Vec<String> = self.requests.try_iter().collect();
        requests.sort();
        requests
    }
}

fn answer(mut connection: TcpStream, requests: &Sender<String>) -> std::io::Result<()> {
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut line = String::new();
    BufReader::new(&connection).read_line(&mut line)?;
    let _ = requests.send(line.trim_end().to_owned());
    connection
        .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}
