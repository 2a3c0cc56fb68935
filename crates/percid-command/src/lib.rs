//! Shared parts of percid's commands: output, progress, Ctrl-C, exit status, arguments, machines.

pub mod arguments;
mod background;
pub mod burst;
pub mod exit;
pub mod import;
pub mod interrupt;
mod node_distances;
pub mod output;
pub mod placing;
pub mod presets;
pub mod progress;
pub mod report;
pub mod table;
pub mod text_table;
pub mod this_machine;
pub mod trace;
pub mod trace_questions;
pub mod trace_top;
pub mod trace_window;
pub mod usage_error;
pub mod version;
pub mod watch;
