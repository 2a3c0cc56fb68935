//! The service: a thread for each connection, and an answer of one line.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use crate::clients::Client;

/// Serves until the process is ended.
pub(crate) fn run(client: &str) -> Result<(), String> {
    let client = Client::new(client)?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    println!("{}", listener.local_addr().map_err(|error| error.to_string())?);
    for connection in listener.incoming() {
        let (connection, client) = (connection.map_err(|error| error.to_string())?, client.clone());
        // A client that closes its connection does not wait for an answer.
        thread::spawn(move || _ = answer_all(&connection, &client));
    }
    Ok(())
}

fn answer_all(connection: &TcpStream, client: &Client) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut requests = BufReader::new(connection);
    let mut line = String::new();
    loop {
        line.clear();
        if requests.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let (path, status, text) = match line.split(' ').nth(1) {
            Some("/index") => ("/index", "200", "ok\n"),
            _ => ("other", "404", "no\n"),
        };
        client.metrics_of_request_begun();
        let began = Instant::now();
        while line != "\r\n" {
            line.clear();
            if requests.read_line(&mut line)? == 0 {
                return Ok(());
            }
        }
        client.metrics_of_request_answered(path, status, began);
        let length = text.len();
        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{text}");
        (&mut &*connection).write_all(answer.as_bytes())?;
    }
}
