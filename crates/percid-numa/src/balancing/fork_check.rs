//! Detection of a child process: a check whether the process is still the one that made a value.
//!
//! Process numbers are not enough: the first process of another PID namespace has number 1, as its
//! parent may have, and numbers are reused. Memory that the kernel wipes in every child is
//! reliable.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::sys::{memory, process};

/// The process that made this value.
#[derive(Debug)]
pub(crate) struct ForkCheck {
    /// Not 0 in that process, 0 in its children; in a page of its own. `None` if the kernel cannot
    /// wipe memory.
    mark: Option<NonNull<AtomicU32>>,
    number: u32,
}

// SAFETY: the mark is an atomic in a mapping that belongs to this value.
unsafe impl Send for ForkCheck {}
// SAFETY: the mark is an atomic, and `number` never changes.
unsafe impl Sync for ForkCheck {}

impl ForkCheck {
    /// Remembers the calling process.
    pub(crate) fn new() -> ForkCheck {
        let page = memory::map_wiped_on_fork(memory::page_size());
        let mark = page.map(NonNull::cast::<AtomicU32>);
        if let Some(mark) = mark {
            // SAFETY: a new mapping, aligned and large enough; zeros are a valid atomic.
            unsafe { mark.as_ref() }.store(1, Relaxed);
        }
        ForkCheck { mark, number: process::id() }
    }

    /// Returns `true` if the calling process is a child of that process.
    pub(crate) fn is_child(&self) -> bool {
        match self.mark {
            // SAFETY: the mapping lives as long as this value.
            Some(mark) => unsafe { mark.as_ref() }.load(Relaxed) == 0,
            None => process::id() != self.number,
        }
    }
}

impl Drop for ForkCheck {
    fn drop(&mut self) {
        if let Some(mark) = self.mark {
            // SAFETY: this value owns the mapping, and nothing refers to it any more.
            unsafe { memory::unmap(mark.cast(), memory::page_size()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tells_child_and_parent_apart(fork_check: &ForkCheck) {
        assert!(!fork_check.is_child());
        // SAFETY: the child only reads memory and exits.
        match unsafe { libc::fork() } {
            // SAFETY: ends the child at once.
            0 => unsafe { libc::_exit(i32::from(fork_check.is_child())) },
            child => {
                let mut status = 0;
                // SAFETY: the status has a valid place.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert_eq!(libc::WEXITSTATUS(status), 1);
            }
        }
        assert!(!fork_check.is_child());
    }

    #[test]
    fn a_child_is_elsewhere_and_the_parent_stays_here() {
        tells_child_and_parent_apart(&ForkCheck::new());
    }

    #[test]
    fn a_child_is_elsewhere_too_where_the_kernel_cannot_wipe_memory() {
        tells_child_and_parent_apart(&ForkCheck { mark: None, number: process::id() });
    }
}
