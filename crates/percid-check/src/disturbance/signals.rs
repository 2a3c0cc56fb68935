//! Signals whose handler operates on the structure.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::SeqCst};
use std::thread;

use crate::process::{self, Installed};
use crate::random::Random;
use crate::report::{Counts, count};
use crate::structure::Structure;

/// The signals of the process, for the handler.
static SIGNALS: AtomicPtr<Signals<'static>> = AtomicPtr::new(ptr::null_mut());

/// The signals of a run.
pub(super) struct Signals<'s> {
    structure: &'s dyn Structure,
    counts: &'s Counts,
    sent: AtomicU64,
    handled: AtomicU64,
    _installed: Installed,
}

/// Returns the signal: the last one, which programs use least.
fn number() -> c_int {
    libc::SIGRTMAX()
}

impl<'s> Signals<'s> {
    pub(super) fn new(
        structure: &'s dyn Structure,
        counts: &'s Counts,
    ) -> io::Result<Box<Signals<'s>>> {
        let signals = Box::new(Signals {
            structure,
            counts,
            sent: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            _installed: Installed::new(number(), handler)?,
        });
        SIGNALS.store(ptr::from_ref(&*signals).cast_mut().cast(), SeqCst);
        Ok(signals)
    }

    /// Lets the calling thread be interrupted.
    pub(super) fn unblock(&self) {
        process::unblock(number());
    }

    pub(super) fn send(&self, thread: i32) {
        self.sent.fetch_add(1, SeqCst);
        if !process::signal(thread, number()) {
            self.sent.fetch_sub(1, SeqCst);
        }
    }

    /// Waits until no handler runs.
    pub(super) fn settle(&self) {
        while self.handled.load(SeqCst) < self.sent.load(SeqCst) {
            thread::yield_now();
        }
    }

    fn handle(&self) {
        // Unlike the others, the choices of handlers depend on their order.
        let mut random = Random::new(self.sent.load(SeqCst));
        self.structure.interrupt(&mut random);
        count(&self.counts.signals);
        self.handled.fetch_add(1, SeqCst);
    }
}

impl Drop for Signals<'_> {
    fn drop(&mut self) {
        self.settle();
        SIGNALS.store(ptr::null_mut(), SeqCst);
    }
}

extern "C" fn handler(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    process::preserving_errno(|| {
        // SAFETY: the value is not dropped before all signals are handled.
        if let Some(signals) = unsafe { SIGNALS.load(SeqCst).as_ref() } {
            signals.handle();
        }
    });
}
