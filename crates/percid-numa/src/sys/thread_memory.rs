//! The memory that the threads of this process need to run: stacks, thread-local storage, and data
//! of the C library and the kernel for each thread, such as its rseq area. Allocates: not
//! async-signal-safe.
//!
//! None of it may be armed. A fault handler cannot run on a stack without access rights, nor
//! without thread-local storage. Writes of the kernel there, when a thread ends or is preempted,
//! fail instead of waiting.
//!
//! # Search
//!
//! The C library places a thread's stack, its thread-local variables and its own record of the
//! thread side by side, the stack lowest and a guard below that. An address in the record is known,
//! the *anchor* (see [`anchors`]). So a thread's memory begins where the mapping with its anchor
//! begins. It ends as far behind the anchor as in a thread that is started to measure itself
//! ([`Shape`]): the kernel merges the mapping above with it, if that is of the same kind. The first
//! thread's stack has a name of its own. Its anchor is elsewhere, beside other memory, so below
//! that only the thread-local variables count.
//!
//! # Undetected memory
//!
//! * of other threads: the alternate signal stack, and thread-local variables of libraries that
//!   were loaded late (`dlopen`), which are on the heap;
//! * stacks that the program made itself (coroutines), except for that of the calling thread and
//!   those of threads that wait in a system call, whose stack pointers are known;
//! * threads without an anchor, which the program made without the C library, unless they wait in a
//!   system call.

mod anchors;
mod shape;

use std::ops::Range;
use std::time::Duration;

use self::anchors::Anchor;
use self::shape::Shape;
use super::file;
use super::maps::{self, Mapping};
use super::process::{self, Thread};

/// Number of times that threads are checked, a millisecond apart, until all have an anchor.
const LOOKS: u32 = 10;

/// Number of checks if there is a thread of which nothing is detected.
const MOST_LOOKS: u32 = 1000;

/// Returns the first address in a range that belongs to the memory of a thread, if that is
/// detected. Returns the start of the range if `/proc` cannot be read any more, because any address
/// may be one.
pub(crate) fn place_in(range: &Range<usize>) -> Option<usize> {
    let shape = Shape::measure();
    let mut looks = 0;
    loop {
        let (anchors, waiting) = look();
        let Some(mappings) = maps::all().filter(|_| !waiting.is_empty()) else {
            return Some(range.start);
        };
        let place = maps::first_in(range, memory(shape, &anchors, &waiting, &mappings))?;
        looks += 1;
        // If the anchors changed, a thread has ended, and its memory may have another use now.
        if looks == LOOKS || anchors::all(&process::threads()).0 == anchors {
            return Some(place);
        }
    }
}

fn memory(
    shape: Shape,
    anchors: &[Anchor],
    waiting: &[Waiting],
    mappings: &[Mapping],
) -> Vec<Range<usize>> {
    let mut found: Vec<_> =
        anchors.iter().filter_map(|anchor| shape.memory(anchor, mappings)).collect();
    let is_stack = |mapping: &&Mapping| mapping.stack;
    found.extend(mappings.iter().filter(is_stack).map(|mapping| mapping.range.clone()));
    found.extend(own());
    found.extend(waiting.iter().filter_map(|thread| thread.memory(mappings)));
    found
}

/// A thread and its stack pointer, which is known while it waits in a system call.
#[derive(Debug)]
struct Waiting {
    pointer: Option<usize>,
    /// `true` if the thread has no anchor.
    alone: bool,
}

impl Waiting {
    /// Returns the memory of the stack at its pointer. Only the anchor shows where a stack ends:
    /// without one all of the mapping counts.
    fn memory(&self, mappings: &[Mapping]) -> Option<Range<usize>> {
        let place = self.pointer?..self.pointer? + 1;
        let mapping = maps::overlapping(mappings, &place).first();
        Some(mapping.filter(|_| self.alone).map_or(place, |mapping| mapping.range.clone()))
    }
}

/// Returns the anchors of all threads, and the stack pointers of those that wait. A thread that
/// starts has no anchor yet: the function waits for it. A thread that ends has none any more, and
/// its stack may have another use now.
fn look() -> (Vec<Anchor>, Vec<Waiting>) {
    let mut times = 0;
    loop {
        let threads = process::threads();
        let (anchors, without) = anchors::all(&threads);
        let waiting = |thread: &Thread| {
            let pointer = stack_pointer(thread.in_proc);
            let alone = without.contains(thread);
            // In this order: a thread that is ending now has left the stack of the recorded
            // pointer.
            let is_over = alone && process::is_ending(thread.in_proc);
            (!is_over).then_some(Waiting { pointer, alone })
        };
        let waiting: Vec<_> = threads.iter().filter_map(waiting).collect();
        // A thread that waits without an anchor was most likely made without the C library.
        let is_unseen = |thread: &Waiting| thread.alone && thread.pointer.is_none();
        let patience = if waiting.iter().any(is_unseen) { MOST_LOOKS } else { LOOKS };
        if !waiting.iter().any(|thread| thread.alone) || times >= patience {
            return (anchors, waiting);
        }
        times += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the memory that only the calling thread itself can find out.
fn own() -> Vec<Range<usize>> {
    let here = 0u8;
    let here = (&raw const here).addr();
    let mut found = shape::thread_local_blocks();
    found.push(here..here + 1);
    found.extend(alternate_stack());
    // Also for the first thread: its stack has no name if the kernel did not make it (valgrind).
    found.extend(shape::own_stack());
    found
}

/// Returns the calling thread's alternate signal stack.
fn alternate_stack() -> Option<Range<usize>> {
    let mut stack = std::mem::MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: the call only reads the setting into a valid place.
    let known = unsafe { libc::sigaltstack(std::ptr::null(), stack.as_mut_ptr()) } == 0;
    // SAFETY: the call has succeeded, so it filled the structure.
    let stack = known.then(|| unsafe { stack.assume_init() })?;
    let start = stack.ss_sp.addr();
    (stack.ss_flags & libc::SS_DISABLE == 0).then(|| start..start + stack.ss_size)
}

/// Returns the present stack pointer of a thread (by its number in `/proc`), if it waits in a
/// system call.
fn stack_pointer(thread: u32) -> Option<usize> {
    let mut text = [0; 256];
    let text = file::read_start(format_args!("/proc/self/task/{thread}/syscall"), &mut text)?;
    stack_pointer_in(std::str::from_utf8(text).ok()?)
}

/// Parses the call's number, its arguments, the stack pointer and the program counter; or
/// `running`.
fn stack_pointer_in(text: &str) -> Option<usize> {
    let pointer = text.split_ascii_whitespace().rev().nth(1)?;
    usize::from_str_radix(pointer.strip_prefix("0x")?, 16).ok()
}

impl Shape {
    /// Returns the memory of the thread with this anchor.
    fn memory(&self, anchor: &Anchor, mappings: &[Mapping]) -> Option<Range<usize>> {
        let place = anchor.place..anchor.place + 1;
        let mapping = maps::overlapping(mappings, &place).first()?;
        let Range { start, end } = mapping.range;
        let start = match anchor.alone {
            true => start,
            false => start.max(anchor.place.saturating_sub(self.before)),
        };
        Some(start..end.min(anchor.place.saturating_add(self.behind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{memory, own_stack};
    use std::sync::mpsc;

    const PAGE: usize = 4096;

    fn page_at(address: usize) -> Range<usize> {
        let start = address & !(PAGE - 1);
        start..start + PAGE
    }

    fn refused(address: usize) -> bool {
        place_in(&page_at(address)).is_some()
    }

    thread_local! {
        static VARIABLE: u64 = const { 7 };
    }

    fn variable() -> usize {
        VARIABLE.with(|variable| std::ptr::from_ref(variable).addr())
    }

    #[test]
    fn all_of_the_own_stack_and_what_is_local_to_the_thread() {
        let attributes = shape::own_stack().expect("a stack");
        assert!(refused(attributes.start) && refused(attributes.end - 1));
        assert!(refused(attributes.start + attributes.len() / 2), "not used yet");
        assert!(refused(variable()));
        let stack = alternate_stack().expect("Rust's threads have one");
        assert!(refused(stack.start) && refused(stack.end - 1));
        let boxed = vec![1u8; 1 << 20];
        assert!(!refused(boxed.as_ptr().addr() + (1 << 19)));
    }

    /// Checks a thread that waits, and one that runs.
    #[test]
    fn other_threads_stacks() {
        for busy in [false, true] {
            let (tell, told) = mpsc::channel();
            let (end, ended) = mpsc::channel::<()>();
            let thread = std::thread::spawn(move || {
                let stack = shape::own_stack().expect("a stack");
                tell.send((stack, variable())).expect("the test");
                if !busy {
                    let _ = ended.recv();
                }
                while busy && ended.try_recv() != Err(mpsc::TryRecvError::Disconnected) {}
            });
            let (stack, variable) = told.recv().expect("the thread");
            for place in [stack.start, stack.start + stack.len() / 2, stack.end - 1, variable] {
                assert!(refused(place), "busy: {busy}: {place:#x} in {stack:x?}");
            }
            drop(end);
            thread.join().expect("no panic");
        }
    }

    /// The kernel merges the memory above a stack with it, if that is of the same kind; and the
    /// stack may be in any memory.
    #[test]
    fn memory_beside_a_stack_is_the_programs() {
        const STACK: usize = 64 * PAGE;
        let all = memory::map(3 * STACK).expect("memory");
        let start = all.as_ptr().addr();
        let places = [start, start + STACK, start + 2 * STACK - 1, start + 2 * STACK];
        assert_eq!(places.map(refused), [false; 4], "no thread yet");
        extern "C" fn wait(pipe: *mut libc::c_void) -> *mut libc::c_void {
            let mut byte = 0u8;
            // SAFETY: the place is this thread's.
            unsafe { libc::read(pipe.addr() as i32, (&raw mut byte).cast(), 1) };
            std::ptr::null_mut()
        }
        let mut ends = [0; 2];
        // SAFETY: the array has room for both descriptors.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let argument = std::ptr::without_provenance_mut(ends[0] as usize);
        // SAFETY: only the thread uses the middle of the mapping, which stays.
        let thread = unsafe { own_stack::start(all.add(STACK), STACK, wait, argument) };
        assert_eq!(places.map(refused), [false, false, true, false], "the second is the guard");
        assert!(refused(start + STACK + PAGE), "its lowest page");
        // SAFETY: the descriptor is open, and nothing else owns it.
        unsafe { libc::close(ends[1]) };
        thread.expect("a thread").join();
        assert_eq!(places.map(refused), [false; 4], "no thread any more");
    }

    #[test]
    fn the_first_threads_stack_and_variables() {
        let mappings = maps::all().expect("/proc");
        let stack = mappings.iter().find(|mapping| mapping.stack).expect("a stack");
        assert!(refused(stack.range.start) && refused(stack.range.end - 1));
        let (anchors, without) = anchors::all(&process::threads());
        let mut firsts = anchors.iter().filter(|anchor| !anchor.alone);
        assert!(refused(firsts.next().expect("the first thread's").place));
        assert!(firsts.next().is_none());
        assert!(without.iter().all(|thread| thread.number != process::thread_id()));
    }

    #[test]
    fn lines_about_system_calls() {
        assert_eq!(stack_pointer_in("running\n"), None);
        assert_eq!(stack_pointer_in("-1 0x7ffd10 0x7f0000\n"), Some(0x7ffd10));
        let waits = "202 0x7f 0x89 0x0 0x0 0x0 0xffffffff 0x7f12ab 0x7f34\n";
        assert_eq!(stack_pointer_in(waits), Some(0x7f12ab));
        assert_eq!(stack_pointer_in(""), None);
    }
}
