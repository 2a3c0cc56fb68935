//! The memory that the threads of this process run on: stacks, thread-local storage, and what the C
//! library and the kernel keep of a thread there, such as its rseq area. Allocates: not
//! async-signal-safe.
//!
//! None of it may be armed. A handler of faults cannot run on a stack without access rights, nor
//! without thread-local storage; and what the kernel writes there when a thread ends or is
//! preempted does not wait for anybody.
//!
//! # How it is found
//!
//! The C library puts a thread's stack, its thread-local variables and its own record of the thread
//! side by side, the stack lowest and a guard below that. An address in the record is known, the
//! *anchor* (see [`anchors`]). So a thread's memory begins where the mapping with its anchor
//! begins, and ends as far behind the anchor as in a thread that is started to look at itself
//! ([`Shape`]): the kernel counts the mapping above as one with it, if that is of the same kind.
//! The first thread's stack has a name of its own, and its anchor is elsewhere, beside memory of
//! others, so below that only the thread-local variables count.
//!
//! # What is not seen
//!
//! * of other threads: the alternate signal stack, and thread-local variables of libraries that
//!   were loaded late (`dlopen`), which are on the heap;
//! * stacks that the program made for itself (coroutines), but for the calling thread and for those
//!   that wait in a system call, each of whose stack pointers is seen;
//! * threads without an anchor, which the program has made without the C library, unless they wait
//!   in a system call.

mod anchors;
mod shape;

use std::ops::Range;
use std::time::Duration;

use self::anchors::Anchor;
use self::shape::Shape;
use super::file;
use super::maps::{self, Mapping};
use super::process::{self, Thread};

/// How often threads are looked at, a millisecond apart, until all have an anchor.
const LOOKS: u32 = 10;

/// The same, as long as there is a thread of which nothing is seen.
const MOST_LOOKS: u32 = 1000;

/// Returns the first address in a range that belongs to the memory of a thread, as far as that is
/// seen. All of it might, where `/proc` cannot be read any more.
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
        // Else a thread has ended meanwhile, and its memory may be something else by now.
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

/// Where a thread's stack pointer is, while it waits in a system call.
#[derive(Debug)]
struct Waiting {
    pointer: Option<usize>,
    /// Whether the thread has no anchor.
    alone: bool,
}

impl Waiting {
    /// Where the stack ends is known by the anchor alone: without one all of the mapping counts.
    fn memory(&self, mappings: &[Mapping]) -> Option<Range<usize>> {
        let place = self.pointer?..self.pointer? + 1;
        let mapping = maps::overlapping(mappings, &place).first();
        Some(mapping.filter(|_| self.alone).map_or(place, |mapping| mapping.range.clone()))
    }
}

/// Returns the anchors of all threads, and where those that wait do so. A thread that starts has no
/// anchor yet: that is waited for. One that ends has none any more, and its stack may be something
/// else by now.
fn look() -> (Vec<Anchor>, Vec<Waiting>) {
    let mut times = 0;
    loop {
        let threads = process::threads();
        let (anchors, without) = anchors::all(&threads);
        let waiting = |thread: &Thread| {
            let pointer = stack_pointer(thread.in_proc);
            let alone = without.contains(thread);
            // In this order: what it was before it ended it has left by now.
            let is_over = alone && process::is_ending(thread.in_proc);
            (!is_over).then_some(Waiting { pointer, alone })
        };
        let waiting: Vec<_> = threads.iter().filter_map(waiting).collect();
        // One that waits has been made without the C library, most likely.
        let is_unseen = |thread: &Waiting| thread.alone && thread.pointer.is_none();
        let patience = if waiting.iter().any(is_unseen) { MOST_LOOKS } else { LOOKS };
        if !waiting.iter().any(|thread| thread.alone) || times >= patience {
            return (anchors, waiting);
        }
        times += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns what only the calling thread itself can say of its memory.
fn own() -> Vec<Range<usize>> {
    let here = 0u8;
    let here = (&raw const here).addr();
    let mut found = shape::thread_local_blocks();
    found.push(here..here + 1);
    found.extend(alternate_stack());
    // Of the first thread too, whose stack has no name where the kernel did not make it (valgrind).
    found.extend(shape::own_stack());
    found
}

/// Returns the calling thread's alternate signal stack.
fn alternate_stack() -> Option<Range<usize>> {
    let mut stack = std::mem::MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: asks only; the place is valid.
    let known = unsafe { libc::sigaltstack(std::ptr::null(), stack.as_mut_ptr()) } == 0;
    // SAFETY: the call has succeeded, so it filled the structure.
    let stack = known.then(|| unsafe { stack.assume_init() })?;
    let start = stack.ss_sp.addr();
    (stack.ss_flags & libc::SS_DISABLE == 0).then(|| start..start + stack.ss_size)
}

/// Returns where the stack of a thread is at present, if that waits in a system call; by the number
/// that `/proc` has for it.
fn stack_pointer(thread: u32) -> Option<usize> {
    let mut text = [0; 256];
    let text = file::read_start(format_args!("/proc/self/task/{thread}/syscall"), &mut text)?;
    stack_pointer_in(std::str::from_utf8(text).ok()?)
}

/// The call's number, its arguments, the stack pointer and the program counter; or `running`.
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

    /// A thread that waits, and one that runs.
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

    /// The kernel counts the memory above a stack as one mapping with it, if that is of the same
    /// kind; and the stack may be of any memory.
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
        // SAFETY: room for both.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let argument = std::ptr::without_provenance_mut(ends[0] as usize);
        // SAFETY: the middle of the mapping is the thread's alone, and stays.
        let thread = unsafe { own_stack::start(all.add(STACK), STACK, wait, argument) };
        assert_eq!(places.map(refused), [false, false, true, false], "the second is the guard");
        assert!(refused(start + STACK + PAGE), "its lowest page");
        // SAFETY: open; nothing else knows of it.
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
