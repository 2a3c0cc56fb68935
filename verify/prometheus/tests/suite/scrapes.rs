//! The service under load, and a real Prometheus server that reads it all the time.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const CLIENTS: usize = 4;
const REQUESTS: usize = 2500;
/// Number of requests of which one is for a missing page.
const MISSING: usize = 10;
/// Time limit: far longer than any step takes, on any machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// A process of this test's, which ends with it.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Process {
        Process(command.stderr(Stdio::null()).spawn().expect("it starts"))
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port")
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the answer of a server, without its headers.
fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut connection = TcpStream::connect(address).ok()?;
    write!(connection, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

/// Returns the server's answer to a query whose result is one number.
fn query(prometheus: SocketAddr, query: &str) -> Option<f64> {
    let path = format!("/api/v1/query?query={}", query.replace('+', "%2B").replace(' ', "%20"));
    let answer: Value = serde_json::from_str(&get(prometheus, &path)?).ok()?;
    answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

fn load(service: SocketAddr) {
    let mut connection = TcpStream::connect(service).expect("the service listens");
    connection.set_nodelay(true).expect("a socket");
    let mut answers = BufReader::new(connection.try_clone().expect("a second one"));
    for number in 0..REQUESTS {
        let path = if number % MISSING == 0 { "/missing" } else { "/index" };
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        connection.write_all(request.as_bytes()).expect("sent");
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            answers.read_line(&mut line).expect("an answer");
        }
        let mut body = [0; 3];
        answers.read_exact(&mut body).expect("its body");
    }
}

/// Returns `true` if Prometheus is installed; otherwise reports it. With
/// `PERCID_PROMETHEUS=require` it must be.
fn is_there() -> bool {
    let is_there = has("prometheus") && has("promtool");
    let is_required = std::env::var_os("PERCID_PROMETHEUS").is_some_and(|wish| wish == "require");
    assert!(is_there || !is_required, "Prometheus is missing: .ci/install-tools metrics");
    if !is_there {
        percid_skips::not_checked("pages by Prometheus", "it is not installed");
    }
    is_there
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// The service, and a Prometheus server that reads both of its pages.
struct Servers {
    service: SocketAddr,
    page: SocketAddr,
    prometheus: SocketAddr,
    processes: [Process; 2],
    _folder: tempfile::TempDir,
}

impl Servers {
    /// Starts the servers. Another program may take an address that was free: then one of the two
    /// ends, and others are chosen.
    fn start() -> Servers {
        loop {
            let mut servers = Servers::begin();
            let (mut reads, prometheus) = (false, servers.prometheus);
            wait_until("the server reads both pages, or has ended", || {
                reads = query(prometheus, "sum(up)") == Some(2.0);
                reads || servers.processes.iter_mut().any(Process::has_ended)
            });
            if reads {
                return servers;
            }
        }
    }

    fn begin() -> Servers {
        let [service, page, client_page, prometheus] = [(); 4].map(|()| free_address());
        let addresses = [service, page, client_page].map(|address| address.to_string());
        let service_runs =
            Process::start(Command::new(env!("CARGO_BIN_EXE_percid-prometheus")).args(addresses));
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("prometheus.yml");
        let targets = format!(
            "global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\nscrape_configs:\n\
             - job_name: service\n  static_configs:\n  - targets: ['{page}', '{client_page}']\n"
        );
        fs::write(&config, targets).expect("written");
        let prometheus_runs = Process::start(
            Command::new("prometheus")
                .arg(format!("--config.file={}", config.display()))
                .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
                .arg(format!("--web.listen-address={prometheus}")),
        );
        let processes = [service_runs, prometheus_runs];
        Servers { service, page, prometheus, processes, _folder: folder }
    }

    /// Returns the number of times that a page was read.
    fn scrapes(&self) -> f64 {
        query(self.prometheus, "sum(sum_over_time(up[1h]))").unwrap_or(0.0)
    }
}

#[test]
fn a_prometheus_server_has_exactly_what_was_counted() {
    if !is_there() {
        return;
    }
    let servers = Servers::start();
    let (service, prometheus) = (servers.service, servers.prometheus);
    let clients: Vec<_> = (0..CLIENTS).map(|_| thread::spawn(move || load(service))).collect();
    clients.into_iter().for_each(|client| client.join().expect("all were answered"));

    let (all, missing) = ((CLIENTS * REQUESTS) as f64, (CLIENTS * REQUESTS / MISSING) as f64);
    let bytes = missing * "GET /missing HTTP/1.1".len() as f64
        + (all - missing) * "GET /index HTTP/1.1".len() as f64;
    for (question, expected) in [
        ("sum(http_requests_total)", all),
        ("sum(http_requests_total{status=\"404\"})", missing),
        ("http_request_seconds_count", all),
        ("http_request_seconds_bucket{le=\"+Inf\"}", all),
        ("http_in_flight", 0.0),
        ("sum(client_requests_total)", all),
        ("client_request_bytes_count", all),
        ("client_request_bytes_sum", bytes),
    ] {
        let is_it = || query(prometheus, question) == Some(expected);
        wait_until(&format!("{question} is {expected}"), is_it);
        // It stays so in the next pages. A slow machine sometimes reads no page in time: then there
        // is no answer.
        let before = servers.scrapes();
        let next = || servers.scrapes() >= before + 4.0;
        wait_until("both pages are read twice", next);
        let mut last = None;
        wait_until("an answer", || {
            last = query(prometheus, question);
            last.is_some()
        });
        assert_eq!(last, Some(expected), "{question}");
    }
    let page = get(servers.page, "/metrics").expect("the page");
    promtool_accepts(&page);
    every_metric_of_the_dashboard_is_there(&page);
}

fn promtool_says(page: &str) -> String {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    promtool.stdin.take().expect("piped").write_all(page.as_bytes()).expect("read");
    let output = promtool.wait_with_output().expect("it ends");
    let all = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// Checks a page with promtool, which reports that the gauge has no help text.
fn promtool_accepts(page: &str) {
    let says = promtool_says(page);
    assert!(says.lines().all(|line| line == "http_in_flight no help text"), "{says}");
}

/// The control: what is right but for one character.
#[test]
fn promtool_finds_a_page_that_is_wrong() {
    if !is_there() {
        return;
    }
    let page =
        |value: &str| format!("# HELP a_total a\n# TYPE a_total counter\na_total{{b={value}}} 1\n");
    assert_eq!(promtool_says(&page("\"c\"")), "");
    assert!(promtool_says(&page("\"c\"d\"")).contains("error while linting"), "an unescaped quote");
}

/// Checks the names in the dashboard's queries.
fn every_metric_of_the_dashboard_is_there(page: &str) {
    let path = "../../crates/percid-metrics/grafana/dashboard.json";
    let text = fs::read_to_string(path).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut names = 0;
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets")) {
        let query = target["expr"].as_str().expect("a query");
        let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
        for name in query.split(|char| !is_part(char)).filter(|word| word.starts_with("http_")) {
            assert!(page.contains(&format!("\n{name}")), "{name}");
            names += 1;
        }
    }
    assert!(names >= 4, "{names}");
}

/// The control: a counter that is reset by reading it and then setting it to zero loses what comes
/// between.
#[test]
fn a_counter_that_is_read_and_then_reset_loses_counts() {
    let (counter, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let (added, read) = thread::scope(|scope| {
        let add = || {
            let mut added = 0;
            while !is_over.load(Relaxed) {
                counter.fetch_add(1, Relaxed);
                added += 1;
            }
            added
        };
        let adding = scope.spawn(add);
        let read = counter.load(Relaxed);
        while counter.load(Relaxed) == read {
            thread::yield_now();
        }
        counter.store(0, Relaxed);
        is_over.store(true, Relaxed);
        (adding.join().expect("no panic"), read)
    });
    assert!(read + counter.load(Relaxed) < added, "nothing was lost");
}
