//! Choosing the source, once per process.

use std::ffi::CStr;
use std::fmt;

use super::kernel::{self, Generation};
use super::once::Once;
use super::{Source, Unavailable, UnknownSource, prepare};
use crate::sys::atomic::AtomicU32;
use crate::sys::cell::UnsafeCell;
use crate::sys::{process, stderr};

/// Which source the process uses, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The source.
    pub source: Source,
    /// Why this one.
    pub reason: Reason,
}

/// Why a source was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// `PERCID_SOURCE` asked for it.
    Override,
    /// The kernel's IDs are cache-local and dense.
    KernelIsCacheLocal,
    /// The kernel has no IDs.
    KernelHasNone,
    /// The kernel's IDs are worse than percid's own.
    KernelIs(Generation),
    /// The kernel's IDs are not dense in this process.
    KernelIsSparse,
    /// percid's own IDs cannot be had, and the kernel's are better than none.
    TableIsNot(Unavailable),
    /// No IDs can be had.
    NoIds(Unavailable),
    /// Another thread, or the code that this signal handler interrupted, is choosing at this moment.
    BeingChosen,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Override => f.write_str("PERCID_SOURCE asks for it"),
            Reason::KernelIsCacheLocal => {
                f.write_str("the kernel's IDs are cache-local and dense (Linux 6.14 to 6.18)")
            }
            Reason::KernelHasNone => f.write_str("the kernel has no IDs of its own (before 6.3)"),
            Reason::KernelIs(Generation::CacheCold) => {
                f.write_str("the kernel's IDs change after every pause (Linux 6.3 to 6.12)")
            }
            Reason::KernelIs(Generation::NotCompacting) => {
                f.write_str("the kernel's IDs never become dense again (Linux 6.13)")
            }
            Reason::KernelIs(_) => f.write_str(
                "the kernel's IDs may belong to threads and exceed their bound (Linux 6.19 on)",
            ),
            Reason::KernelIsSparse => {
                f.write_str("the kernel's IDs are not dense: one lies above the number of threads")
            }
            Reason::TableIsNot(why) => write!(f, "percid's table cannot be used: {why}"),
            Reason::NoIds(why) => write!(f, "no IDs can be had: {why}"),
            Reason::BeingChosen => f.write_str("the source is being chosen at this moment"),
        }
    }
}

/// The choice of this process.
static CHOICE: Once<Choice> = Once { state: AtomicU32::new(0), value: UnsafeCell::new(None) };

/// The choice, made now if nobody has; `None` while somebody else is at it.
pub(crate) fn get() -> Option<Choice> {
    CHOICE.get_or_decide(process::thread_id, process::has_thread, || {
        overridden().unwrap_or_else(automatic)
    })
}

/// The kernel's IDs where they are cache-local and dense, else percid's table, else the kernel's as
/// they are, else none.
fn automatic() -> Choice {
    let kernel = prepare(Source::Kernel);
    let reason = match (kernel, Generation::running()) {
        (Err(_), _) => Reason::KernelHasNone,
        (Ok(()), Some(Generation::CacheLocal)) if kernel::looks_dense() => {
            return Choice { source: Source::Kernel, reason: Reason::KernelIsCacheLocal };
        }
        (Ok(()), Some(Generation::CacheLocal)) => Reason::KernelIsSparse,
        (Ok(()), generation) => Reason::KernelIs(generation.unwrap_or(Generation::Owned)),
    };
    match (prepare(Source::Table), kernel) {
        (Ok(()), _) => Choice { source: Source::Table, reason },
        (Err(why), Ok(())) => Choice { source: Source::Kernel, reason: Reason::TableIsNot(why) },
        (Err(why), Err(_)) => Choice { source: Source::Atomic, reason: Reason::NoIds(why) },
    }
}

/// What `PERCID_SOURCE` asks for, if that can be had; a message says so if it cannot.
fn overridden() -> Option<Choice> {
    let wish = wish()?;
    let source = match wish.to_str().unwrap_or_default().parse::<Source>() {
        Ok(source) => source,
        Err(UnknownSource) => {
            stderr::say(format_args!("PERCID_SOURCE={wish:?} ignored: {UnknownSource}"));
            return None;
        }
    };
    match prepare(source) {
        Ok(()) => Some(Choice { source, reason: Reason::Override }),
        Err(why) => {
            stderr::say(format_args!("PERCID_SOURCE={source} is not possible: {why}"));
            None
        }
    }
}

/// The variable's value, unless it is missing or empty. Read without the standard library's lock on the
/// environment, which the interrupted code might hold.
fn wish() -> Option<&'static CStr> {
    // SAFETY: the name is a terminated string.
    let value = unsafe { libc::getenv(c"PERCID_SOURCE".as_ptr()) };
    // SAFETY: the C library returns null or a terminated string of the environment.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) }).filter(|value| !value.is_empty())
}
