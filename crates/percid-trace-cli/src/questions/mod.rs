//! What can be asked of a recorded schedule: a file for each question.

pub(crate) mod latency;
mod names;
mod recording;
mod times;
