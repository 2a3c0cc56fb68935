//! Recording as the Linux kernel offers it.

mod buffers;
mod clock;
mod command;
mod cpus;
mod numa_balancing;
mod perf;
mod regions;
mod session;
mod snapshot;
mod stream;
#[cfg(test)]
mod testing;
mod tracefs;

pub use session::record_to;
