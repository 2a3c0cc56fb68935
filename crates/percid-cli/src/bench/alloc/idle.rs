//! Memory that allocators keep for threads that have nothing allocated any more.
//!
//! Each allocator and number of threads is measured by a process of its own, because no allocator
//! returns everything.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt;
use std::io;
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::thread::{self, Builder};

use percid_alloc::PerCpu;
use serde::{Deserialize, Serialize};

#[cfg(feature = "peers")]
use crate::bench::loops::Mimalloc;
use crate::bench::memory::resident_kib;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;

/// The memory that a thread uses, in bytes.
const USED: usize = 1 << 20;

/// The stack of a thread, in bytes.
const STACK: usize = 256 << 10;

/// Number of threads that run at a time.
const AT_ONCE: usize = 2;

/// The allocators, by their names in the document.
const ALLOCATORS: &[&str] = &[
    "system",
    "per_cpu",
    #[cfg(feature = "peers")]
    "mimalloc",
    #[cfg(feature = "peers")]
    "per_cpu_mimalloc",
];

/// The memory that is kept for threads of which none has an object. Sizes in bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Idle {
    allocator: String,
    threads: usize,
    /// Growth of the process's anonymous memory.
    kept: usize,
    /// The part of it that PerCpu has cached.
    cached: usize,
}

/// Measures each allocator with each number of threads. Leaves out rows that Ctrl-C ended, and those
/// of more threads than this process may have, which are named.
pub(super) fn measure(threads: &[usize], interrupt: &Interrupt) -> Vec<Idle> {
    let pairs = threads.iter().flat_map(|&count| ALLOCATORS.iter().map(move |of| (*of, count)));
    let row = |(of, count)| {
        let failed = |why: &io::Error| {
            complain(format_args!("no row for {count} idle threads: {why}"));
        };
        by_child(of, count).inspect_err(failed).ok()
    };
    pairs.take_while(|_| !interrupt.pressed()).filter_map(row).collect()
}

fn by_child(of: &str, threads: usize) -> io::Result<Idle> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "alloc", "--idle-of", of, "--idle-threads", &threads.to_string()]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("the process ended with {}", output.status)));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Runs as such a process: prints the figure of one allocator.
pub(crate) fn child(of: &str, threads: usize) -> Result<Exit, Failure> {
    let idle = match of {
        "system" => kept_by(of, threads, &System, |_| 0),
        "per_cpu" => kept_by(of, threads, &PerCpu::new(System), cached),
        #[cfg(feature = "peers")]
        "mimalloc" => kept_by(of, threads, &Mimalloc, |_| 0),
        #[cfg(feature = "peers")]
        "per_cpu_mimalloc" => kept_by(of, threads, &PerCpu::new(Mimalloc), cached),
        _ => return Err(Failure::Usage(format!("--idle-of: expected {}", ALLOCATORS.join(", ")))),
    };
    let none = || io::Error::other("the kernel does not say how much memory it has");
    let idle = idle.ok_or_else(none).map_err(|cause| Failure::new("cannot measure", cause))?;
    println!("{}", serde_json::to_string(&idle).expect("numbers and a name"));
    Ok(Exit::Complete)
}

fn cached<A: GlobalAlloc>(allocator: &PerCpu<A>) -> usize {
    allocator.statistics().cached_bytes()
}

/// Lets threads use the allocator, two at a time, and returns what is kept when all wait.
fn kept_by<A: GlobalAlloc + Sync>(
    of: &str,
    threads: usize,
    allocator: &A,
    cached: fn(&A) -> usize,
) -> Option<Idle> {
    let end = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let numbers: Vec<usize> = (0..threads).collect();
        let mut groups = Vec::new();
        for members in numbers.chunks(AT_ONCE) {
            let turn = Arc::new(Barrier::new(members.len() + 1));
            for &number in members {
                let (turn, end) = (Arc::clone(&turn), &end);
                let thread = Builder::new().stack_size(STACK).spawn_scoped(scope, move || {
                    turn.wait();
                    use_and_free(allocator, number as u64);
                    turn.wait();
                    end.wait();
                });
                if let Err(cause) = thread {
                    complain(format_args!("a thread cannot be started: {cause}"));
                    // The others wait for this thread.
                    std::process::exit(1);
                }
            }
            groups.push(turn);
        }
        // All threads exist, so their stacks are no growth.
        let before = resident_kib();
        for turn in groups {
            turn.wait();
            turn.wait();
        }
        let after = resident_kib();
        let cached = cached(allocator);
        end.wait();
        let kept = after?.saturating_sub(before?) * 1024;
        Some(Idle { allocator: of.to_owned(), threads, kept, cached })
    })
}

/// Allocates small objects until they have [`USED`] bytes, writes to each, and frees all.
fn use_and_free(allocator: &impl GlobalAlloc, seed: u64) {
    let mut objects = Vec::with_capacity(USED / 16);
    let (mut random, mut left) = (seed, USED);
    while left > 0 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let power = 16 << ((random >> 32) % 6);
        let size = (power + (random >> 40) as usize % power).min(left.max(16));
        let layout = Layout::from_size_align(size, 8).expect("a layout");
        // SAFETY: the layout has a size, and the block as many bytes.
        let object = unsafe {
            let object = allocator.alloc(layout);
            if !object.is_null() {
                object.write_bytes(1, size);
            }
            object
        };
        objects.push((object, layout));
        left = left.saturating_sub(size);
    }
    for (object, layout) in objects {
        if !object.is_null() {
            // SAFETY: the object came from this allocator, with this layout, and is freed once.
            unsafe { allocator.dealloc(object, layout) };
        }
    }
}

/// A table of such figures.
pub(super) struct Table<'i>(pub(super) &'i [Idle]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nMemory kept for threads that have each used 1 MiB and have nothing now, KiB"
        )?;
        writeln!(
            f,
            "  {:<18}{:>8}{:>10}{:>18}",
            "allocator", "threads", "kept", "cached by percid"
        )?;
        for Idle { allocator, threads, kept, cached } in self.0 {
            let (kept, cached) = (kept / 1024, cached / 1024);
            writeln!(f, "  {allocator:<18}{threads:>8}{kept:>10}{cached:>18}")?;
        }
        Ok(())
    }
}
