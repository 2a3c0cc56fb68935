//! What the commands of percid have in common: how they print, tell progress, are interrupted, end, and find machines.

pub mod arguments;
pub mod burst;
pub mod given;

pub mod interrupt;
pub mod outcome;
pub mod output;
pub mod progress;
pub mod report;
pub mod sheet;
pub mod table;
pub mod this_machine;
pub mod usage_error;
pub mod watch;
