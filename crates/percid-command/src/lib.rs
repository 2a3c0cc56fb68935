//! Shared parts of percid's commands: output, progress, Ctrl-C, exit status, arguments, machines.
//! Without the feature `terminal` only machines, workloads and failures remain, which Python uses.

#[cfg(feature = "terminal")]
pub mod arguments;
mod background;
pub mod burst;
pub mod exit;
#[cfg(feature = "terminal")]
pub mod import;
#[cfg(feature = "terminal")]
pub mod interrupt;
#[cfg(feature = "terminal")]
pub mod module;
mod node_distances;
#[cfg(feature = "terminal")]
pub mod output;
pub mod placing;
pub mod presets;
#[cfg(feature = "terminal")]
pub mod progress;
#[cfg(feature = "terminal")]
pub mod report;
#[cfg(feature = "terminal")]
pub mod table;
#[cfg(feature = "terminal")]
pub mod text_table;
pub mod this_machine;
#[cfg(feature = "terminal")]
pub mod trace;
#[cfg(feature = "terminal")]
pub mod trace_questions;
#[cfg(feature = "terminal")]
pub mod trace_top;
#[cfg(feature = "terminal")]
pub mod trace_window;
#[cfg(feature = "terminal")]
pub mod usage_error;
#[cfg(feature = "terminal")]
pub mod version;
#[cfg(feature = "terminal")]
pub mod watch;
