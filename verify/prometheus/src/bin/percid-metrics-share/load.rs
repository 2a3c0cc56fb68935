//! The load, and what it shows.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::samples::{Recording, Samples};

const CONNECTIONS: usize = 8;
/// Requests that a connection has sent without having read the answers: one system call carries all, so
/// that the service's time is not the kernel's alone.
const AT_ONCE: usize = 16;
const REQUEST: &str = "GET /index HTTP/1.1\r\nHost: x\r\n\r\n";
/// Length of the service's answer.
const ANSWER: usize = "HTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\nok\n".len();

/// One run.
#[derive(Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) samples: Samples,
    pub(crate) requests_per_second: f64,
}

impl Measured {
    /// Returns the share of the service's samples that are in metrics.
    pub(crate) fn share(&self) -> f64 {
        self.samples.in_metrics as f64 / self.samples.all as f64
    }

    pub(crate) fn json(&self, client: &str) -> Value {
        json!({
            "client": client,
            "share": self.share(),
            "samples": self.samples.all,
            "samples_in_metrics": self.samples.in_metrics,
            "requests_per_second": self.requests_per_second,
        })
    }
}

pub(crate) fn measure(client: &str, length: Duration) -> Result<Measured, String> {
    let mut service = Recording::start(&["serve", client])?;
    let address = service.first_line()?;
    let address = address.parse().map_err(|_| format!("{client}: no service"))?;
    let began = Instant::now();
    let answered = load(address, length)?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(Measured { samples: service.end()?, requests_per_second: answered as f64 / seconds })
}

/// Returns the number of requests that are answered in this time.
fn load(service: SocketAddr, length: Duration) -> Result<u64, String> {
    let (answered, end) = (AtomicU64::new(0), Instant::now() + length);
    let connection = || -> std::io::Result<()> {
        let mut connection = TcpStream::connect(service)?;
        connection.set_nodelay(true)?;
        let (requests, mut answers) = (REQUEST.repeat(AT_ONCE), [0; ANSWER * AT_ONCE]);
        while Instant::now() < end {
            connection.write_all(requests.as_bytes())?;
            connection.read_exact(&mut answers)?;
            answered.fetch_add(AT_ONCE as u64, Relaxed);
        }
        Ok(())
    };
    let all_went_well = thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(connection)).collect();
        threads.into_iter().all(|thread| matches!(thread.join(), Ok(Ok(()))))
    });
    if !all_went_well {
        return Err("a connection broke".to_owned());
    }
    Ok(answered.into_inner())
}
