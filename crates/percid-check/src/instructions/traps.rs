//! Traps in the text of the program, and their handler.
//!
//! A thread that runs into a trap gets `SIGTRAP`. Inside a section the kernel aborts that section
//! before it calls the handler: the instruction pointer of the interrupted thread is then the abort
//! address. The handler checks this, since it is the proof of the abort.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

use super::processor::{PASSED, TRAP, pointer};
use super::section::Section;
use crate::process::{self, Installed};
use crate::report::{Counts, count};

/// Traps that one operation may run into. An operation of percid has eight tries of each of its
/// steps, so this is enough for hundreds of steps.
const MOST_HITS: usize = 10_000;

/// The traps of the thread that is checked, for the handler.
static TRAPS: AtomicPtr<Traps<'static>> = AtomicPtr::new(ptr::null_mut());

/// The response to a trap in the thread that is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Response {
    /// Removes the trap, so that the next try passes it.
    Remove,
    /// Leaves it: all tries are aborted.
    Leave,
    /// Leaves it unless it is in `section`, and was hit `before` times: then removes all, and calls
    /// the interruption.
    Interrupt { section: usize, before: usize },
}

/// The traps. All fields are used by one thread only, the one that is checked, also in its handler.
pub(super) struct Traps<'c> {
    pub(super) sections: &'static [Section],
    text: File,
    thread: i32,
    /// The address of each section's trap; 0 without one.
    armed: Vec<Cell<usize>>,
    response: Cell<Response>,
    /// The sections whose traps were hit, in order.
    hits: Cell<Vec<usize>>,
    interrupted: Cell<bool>,
    wrong: Cell<Option<String>>,
    interrupt: &'c dyn Fn(),
    counts: &'c Counts,
    installed: Installed,
}

impl<'c> Traps<'c> {
    /// Prepares traps for the calling thread.
    ///
    /// # Errors
    ///
    /// The text cannot be changed.
    pub(super) fn new(
        sections: &'static [Section],
        interrupt: &'c dyn Fn(),
        counts: &'c Counts,
    ) -> io::Result<Box<Traps<'c>>> {
        let text = OpenOptions::new().read(true).write(true).open("/proc/self/mem")?;
        if let Some(first) = sections.first() {
            // Writes what is there, to learn whether that is allowed.
            text.write_all_at(&first.code_at(first.start)[..TRAP.len()], first.start as u64)?;
        }
        process::unblock(libc::SIGTRAP);
        let traps = Box::new(Traps {
            sections,
            text,
            thread: process::thread(),
            armed: vec![Cell::new(0); sections.len()],
            response: Cell::new(Response::Remove),
            hits: Cell::default(),
            interrupted: Cell::new(false),
            wrong: Cell::default(),
            interrupt,
            counts,
            installed: Installed::new(libc::SIGTRAP, handler)?,
        });
        TRAPS.store(ptr::from_ref(&*traps).cast_mut().cast(), SeqCst);
        Ok(traps)
    }

    /// Runs `operation` with traps at these addresses, each in its section. Returns the sections
    /// whose traps it has hit.
    ///
    /// # Errors
    ///
    /// A trap that did not abort, an operation that did not end, or one that `operation` returns.
    pub(super) fn run(
        &self,
        traps: &[(usize, usize)],
        response: Response,
        operation: impl FnOnce() -> Result<(), String>,
    ) -> Result<Vec<usize>, String> {
        self.response.set(response);
        self.interrupted.set(false);
        for &(section, address) in traps {
            self.arm(section, address)?;
        }
        let result = operation();
        self.disarm_all();
        let hits = self.hits.take();
        result?;
        self.wrong.take().map_or(Ok(hits), Err)
    }

    /// Returns `true` if the last run was interrupted.
    pub(super) fn has_interrupted(&self) -> bool {
        self.interrupted.get()
    }

    fn arm(&self, section: usize, address: usize) -> Result<(), String> {
        self.disarm(section);
        let written = self.text.write_all_at(&TRAP, address as u64);
        written.map_err(|error| format!("cannot write a trap: {error}"))?;
        self.armed[section].set(address);
        Ok(())
    }

    fn disarm(&self, section: usize) {
        let address = self.armed[section].replace(0);
        if address != 0 {
            let code = &self.sections[section].code_at(address)[..TRAP.len()];
            if let Err(error) = self.text.write_all_at(code, address as u64) {
                self.wrong.set(Some(format!("cannot remove a trap: {error}")));
            }
        }
    }

    fn disarm_all(&self) {
        (0..self.armed.len()).for_each(|section| self.disarm(section));
    }

    /// Handles a trap. Returns `false` if it is none of these.
    fn handle(&self, pointer: &mut usize) -> bool {
        if let Some(section) = self.sections.iter().position(|one| one.abort == *pointer) {
            if process::thread() == self.thread {
                count(&self.counts.aborts);
                self.hit(section);
            }
            // Another thread of the program does not get the time of this one: it goes on at the
            // abort address, like after any other signal.
            return true;
        }
        let address = *pointer - PASSED;
        let Some(section) = self.sections.iter().position(|one| one.contains(address)) else {
            return false;
        };
        *pointer = address;
        if process::thread() == self.thread {
            self.disarm(section);
            let place = self.sections[section].describe(address);
            self.wrong.set(Some(format!("the kernel did not abort a section at {place}")));
        }
        true
    }

    fn hit(&self, section: usize) {
        let mut hits = self.hits.take();
        hits.push(section);
        let too_many = hits.len() > MOST_HITS;
        self.hits.set(hits);
        if too_many {
            self.disarm_all();
            self.wrong.set(Some(format!(
                "{MOST_HITS} aborts do not end an operation; nor would it end without an ID"
            )));
            return;
        }
        match self.response.get() {
            Response::Remove => self.disarm(section),
            Response::Interrupt { section: target, before: 0 } if target == section => {
                self.disarm_all();
                self.interrupted.set(true);
                (self.interrupt)();
            }
            Response::Interrupt { section: target, before } if target == section => {
                self.response.set(Response::Interrupt { section, before: before - 1 });
            }
            Response::Leave | Response::Interrupt { .. } => (),
        }
    }
}

impl Drop for Traps<'_> {
    fn drop(&mut self) {
        self.disarm_all();
        TRAPS.store(ptr::null_mut(), SeqCst);
    }
}

extern "C" fn handler(signal: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    process::preserving_errno(|| {
        // SAFETY: the value is not dropped before the handler is removed. Another thread than its
        // own reads only fields that do not change.
        let traps = unsafe { TRAPS.load(SeqCst).as_ref() };
        // SAFETY: the kernel passes the context that it will restore.
        let pointer = pointer(unsafe { &mut *context.cast() });
        if !traps.is_some_and(|traps| traps.handle(pointer)) {
            // Not a trap of this check: it gets the handler that it would have without the check.
            if let Some(traps) = traps {
                traps.installed.restore();
            }
            process::signal(process::thread(), signal);
        }
    });
}
