//! Processes that overcommit CPUs: they never sleep and touch their own memory.
//!
//! They are processes rather than threads of this process. Threads would hold concurrency IDs, and
//! each first write of a burst to a page would interrupt the CPU that they run on.

use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use percid_command::exit::{Exit, Failure};

use crate::bench::cpu;

/// Distance in bytes between two written addresses.
const LINE: usize = 64;

/// Processes that run until this is dropped.
#[derive(Debug)]
pub(super) struct Competitors {
    children: Vec<Child>,
}

impl Competitors {
    /// Starts `each` processes on every CPU, and waits until all have touched their `kib` of
    /// memory.
    pub(super) fn start(cpus: &[u32], each: u64, kib: u64) -> Result<Self, Failure> {
        let failed = |cause| Failure::new("cannot start a process that competes for a CPU", cause);
        let mut all = Competitors { children: Vec::new() };
        let mut outputs = Vec::new();
        for cpu in cpus.iter().flat_map(|&cpu| (0..each).map(move |_| cpu)) {
            let (child, output) = start(cpu, kib).map_err(failed)?;
            all.children.push(child);
            outputs.push(output);
        }
        outputs.into_iter().try_for_each(wait_until_ready).map_err(failed)?;
        Ok(all)
    }
}

impl Drop for Competitors {
    fn drop(&mut self) {
        for child in &mut self.children {
            // A child that has ended by itself needs no signal.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(cpu: u32, kib: u64) -> io::Result<(Child, ChildStdout)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "intermittent", "--compete", &cpu.to_string()]);
    command.args(["--other-memory", &kib.to_string()]);
    // stdin is closed when this process ends, for any reason.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    Ok((child, output))
}

const READY: &str = "competing";

fn wait_until_ready(output: ChildStdout) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    match line.trim_end() == READY {
        true => Ok(()),
        false => Err(io::Error::other("it ended before it had begun")),
    }
}

/// Runs as such a process.
pub(crate) fn compete(on: u32, kib: u64) -> Result<Exit, Failure> {
    cpu::pin_this_thread(on).map_err(|cause| Failure::new("cannot pin to the CPU", cause))?;
    let lowered = cpu::lower_realtime_priority();
    let is_realtime = lowered.map_err(|cause| Failure::new("cannot lower the priority", cause))?;
    thread::spawn(end_with_stdin);
    let mut memory = vec![0_u8; kib as usize * 1024];
    touch(&mut memory);
    let told = writeln!(io::stdout(), "{READY}");
    told.map_err(|cause| Failure::new("cannot say that it competes", cause))?;
    loop {
        touch(&mut memory);
        // With several processes of one real-time priority, the first would keep the CPU for long.
        if is_realtime {
            thread::yield_now();
        }
    }
}

fn touch(memory: &mut [u8]) {
    for byte in memory.iter_mut().step_by(LINE) {
        *byte = black_box(byte.wrapping_add(1));
    }
}

fn end_with_stdin() {
    let _ = io::stdin().read_to_end(&mut Vec::new());
    std::process::exit(0);
}
