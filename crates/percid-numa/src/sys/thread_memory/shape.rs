//! The layout of a thread's memory around its anchor, measured by a thread on itself.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::anchors;
use crate::sys::signals;

/// Bytes of the program's thread-specific values (`pthread_setspecific`), which musl stores behind
/// a thread's record: 128 of them.
#[cfg(target_env = "musl")]
const BEHIND_RECORD: usize = 128 * size_of::<usize>();

/// Size of the measuring thread's stack; it needs no more.
const STACK: usize = 64 << 10;

/// The memory around a thread's anchor, in bytes; the same in all threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Distance to the first of the thread-local variables.
    pub(super) before: usize,
    /// Distance to the end of the thread's memory.
    pub(super) behind: usize,
}

impl Shape {
    /// Starts a thread that measures itself. If none can be started, all of a mapping counts.
    pub(super) fn measure() -> Shape {
        let look = || Some(Shape::new(anchors::own()?, own_stack()?, &thread_local_blocks()));
        let start = || std::thread::Builder::new().stack_size(STACK).spawn(look).ok();
        let seen = signals::without_the_programs(start).and_then(|thread| thread.join().ok()?);
        seen.unwrap_or(Shape { before: usize::MAX, behind: usize::MAX })
    }

    fn new(anchor: usize, stack: Range<usize>, blocks: &[Range<usize>]) -> Shape {
        // A library that was loaded late has its variables elsewhere.
        let near = |block: &&Range<usize>| (stack.start..end_of(&stack)).contains(&block.start);
        let blocks = || blocks.iter().filter(near);
        let record = anchor.min(anchors::thread());
        let start = blocks().map(|block| block.start).fold(record, usize::min);
        let end = blocks().map(|block| block.end).fold(anchor + 1, usize::max);
        Shape { before: anchor - start, behind: end_of_memory(&stack, end) - anchor }
    }
}

/// Returns an upper bound of the end of a thread's mapping, to find the blocks in it.
#[cfg(not(target_env = "musl"))]
fn end_of(stack: &Range<usize>) -> usize {
    stack.end
}

/// Returns the same for musl, where the variables are behind the stack that it reports.
#[cfg(target_env = "musl")]
fn end_of(stack: &Range<usize>) -> usize {
    stack.end + (1 << 30)
}

/// Returns the end of a thread's memory: glibc counts all of it as the stack.
#[cfg(not(target_env = "musl"))]
fn end_of_memory(stack: &Range<usize>, known: usize) -> usize {
    stack.end.max(known)
}

#[cfg(target_env = "musl")]
fn end_of_memory(_: &Range<usize>, known: usize) -> usize {
    known + BEHIND_RECORD
}

/// Returns the stack of the calling thread as the C library reports it, without the guard; `None`
/// if it does not. With glibc the thread's variables and its record are its upper end.
pub(super) fn own_stack() -> Option<Range<usize>> {
    let mut attributes = MaybeUninit::uninit();
    let (mut lowest, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: all places are valid; the attributes are used between their creation and their
    // destruction.
    let known = unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let answer = libc::pthread_attr_getstack(attributes.as_ptr(), &mut lowest, &mut bytes);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        answer == 0
    };
    let start = lowest.addr();
    known.then(|| start..start + bytes)
}

/// Returns the calling thread's blocks of thread-local variables: one of each module that has any
/// and was used by this thread.
pub(super) fn thread_local_blocks() -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    // SAFETY: the callback gets a pointer to the list, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add_block), (&raw mut blocks).cast()) };
    blocks
}

/// # Safety
///
/// `info` describes a module; `blocks` points to the list.
unsafe extern "C" fn add_block(
    info: *mut libc::dl_phdr_info,
    size: usize,
    blocks: *mut c_void,
) -> libc::c_int {
    // SAFETY: the caller passes valid pointers to a description and to the list.
    let (info, blocks) = unsafe { (&*info, &mut *blocks.cast::<Vec<Range<usize>>>()) };
    let start = info.dlpi_tls_data.addr();
    // Old C libraries have shorter descriptions.
    if size < size_of::<libc::dl_phdr_info>() || start == 0 {
        return 0;
    }
    // SAFETY: the loader's table has that many headers.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let of_variables = headers.iter().find(|header| header.p_type == libc::PT_TLS);
    blocks.extend(of_variables.map(|header| start..start + header.p_memsz as usize));
    0
}
