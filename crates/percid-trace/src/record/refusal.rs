//! Reasons why nothing was recorded.

use std::ffi::OsString;
use std::fmt;
use std::io;

use super::options::Backend;
use crate::event::Tid;

/// The reason why nothing was recorded.
#[derive(Debug)]
pub enum Refusal {
    /// This machine permits no way of recording. For each way that was tried: which right or
    /// setting is missing.
    NotPermitted(Vec<(Backend, String)>),
    /// The requested counters are not available, for this reason.
    NoCounters(String),
    /// There is no such process.
    NoProcess(Tid),
    /// There is no such command.
    NoCommand(OsString),
    /// The command cannot be started.
    Unstartable(OsString, io::Error),
    /// Something failed when the recording had begun.
    Failed(Backend, String),
    /// This system is not Linux.
    NotSupported,
}

impl Refusal {
    /// Returns the exit status of a shell in this case: 127 if there is no such command, 126 if it
    /// cannot be started, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Refusal::NoCommand(_) => 127,
            Refusal::Unstartable(..) => 126,
            Refusal::NotPermitted(_)
            | Refusal::NoCounters(_)
            | Refusal::NoProcess(_)
            | Refusal::Failed(..)
            | Refusal::NotSupported => 1,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotPermitted(backends) => {
                write!(f, "this machine does not permit to record; either way would do:")?;
                backends
                    .iter()
                    .try_for_each(|(backend, missing)| write!(f, "\n  {backend}: {missing}"))
            }
            Refusal::NoCounters(why) => write!(f, "{why}"),
            Refusal::NoProcess(pid) => write!(f, "there is no process {pid}"),
            Refusal::NoCommand(name) => write!(f, "{}: command not found", name.display()),
            Refusal::Unstartable(name, error) => {
                write!(f, "{}: cannot be started: {error}", name.display())
            }
            Refusal::Failed(backend, error) => write!(f, "{backend}: {error}"),
            Refusal::NotSupported => {
                f.write_str("recording needs Linux's tracefs or perf events: not supported here")
            }
        }
    }
}

impl std::error::Error for Refusal {}
