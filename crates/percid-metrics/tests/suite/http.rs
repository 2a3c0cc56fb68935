//! The page over HTTP. The installed recorder belongs to the whole process; the other tests have
//! their own.
#![cfg(feature = "http-listener")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use metrics::counter;
use percid_metrics::{BuildError, PrometheusBuilder};

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    // In one write: a server does not wait for long for the rest of a request.
    let request = format!("{request}\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Installs a recorder, and returns the address of its page. Another program may take the free
/// port. Then nothing was installed, and another port is tried.
fn installed() -> SocketAddr {
    loop {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
        let builder = PrometheusBuilder::new().with_http_listener(free);
        let builder = builder.add_allowed_address("127.0.0.0/8").expect("a network");
        match builder.install() {
            Ok(()) => return free,
            Err(BuildError::FailedToCreateHttpListener(error))
                if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_page_is_served_to_those_who_may_read_it() {
    let free = installed();
    for user in 0..10_000 {
        counter!("requests_total", "user" => format!("u{user}")).increment(user);
    }
    let page = ask(free, "GET /metrics HTTP/1.1");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("text/plain; version=0.0.4"));
    assert!(page.contains("requests_total{user=\"u9999\"} 9999\n"));
    let page = ask(free, "GET / HTTP/1.1\r\nAccept: application/openmetrics-text;version=1.0.0");
    assert!(page.contains("application/openmetrics-text") && page.contains("# EOF\n"));
    assert!(
        ask(free, "GET /anything/else HTTP/1.1").contains("requests_total{user=\"u9999\"} 9999\n")
    );
    for (request, status, text) in [
        ("GET /health", 200, "OK\n"),
        ("POST /metrics", 405, "GET /metrics\n"),
        ("HEAD /metrics", 200, ""),
    ] {
        let answer = ask(free, &format!("{request} HTTP/1.1"));
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert_eq!(body, text, "{request}");
    }
    let again = PrometheusBuilder::new().with_http_listener(free).install();
    assert!(again.is_err_and(|error| error.to_string().starts_with("the page cannot be served: ")));
    let second = PrometheusBuilder::new().install_recorder();
    assert_eq!(second.expect_err("one is there").to_string(), "the process has a recorder already");
    assert!(PrometheusBuilder::new().add_allowed_address("10.0.0.0/99").is_err());
}
