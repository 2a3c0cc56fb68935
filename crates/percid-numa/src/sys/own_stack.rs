//! A thread whose stack, and all data that the C library keeps for it, is in memory that the caller
//! provides.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::{memory, signals};

/// The function that such a thread runs.
pub(crate) type Body = extern "C" fn(*mut libc::c_void) -> *mut libc::c_void;

/// A running thread, which must be joined.
#[derive(Debug)]
pub(crate) struct Thread(libc::pthread_t);

/// Starts a thread with all signals of the program blocked. The lowest page of the stack becomes
/// inaccessible.
///
/// # Errors
///
/// Returns the error number: `EAGAIN` if no thread can be made, `EINVAL` if the program's
/// thread-local variables leave too little of the stack.
///
/// # Safety
///
/// * The stack must consist of whole pages, stay mapped and be used by nothing else until the
///   thread is joined.
/// * It must be sound to call `body` with the argument.
pub(crate) unsafe fn start(
    stack: NonNull<u8>,
    bytes: usize,
    body: Body,
    argument: *mut libc::c_void,
) -> Result<Thread, i32> {
    let guard = memory::page_size();
    // SAFETY: the caller owns the page, and only a stack overflow accesses it.
    unsafe { memory::protect(stack.as_ptr() as usize, guard, libc::PROT_NONE)? };
    let mut attributes = MaybeUninit::uninit();
    let mut thread = MaybeUninit::uninit();
    // SAFETY: all places are valid; the attributes are used between their creation and their
    // destruction.
    let error = unsafe {
        let lowest = stack.as_ptr().add(guard).cast();
        libc::pthread_attr_init(attributes.as_mut_ptr());
        let unfit = libc::pthread_attr_setstack(attributes.as_mut_ptr(), lowest, bytes - guard);
        let error = match unfit {
            0 => signals::without_the_programs(|| {
                libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), body, argument)
            }),
            unfit => unfit,
        };
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        error
    };
    // SAFETY: the call has succeeded, so it filled the place.
    if error == 0 { Ok(Thread(unsafe { thread.assume_init() })) } else { Err(error) }
}

impl Thread {
    /// Waits for the end of the thread.
    pub(crate) fn join(self) {
        // SAFETY: the thread was started joinable, and is joined once.
        unsafe { libc::pthread_join(self.0, std::ptr::null_mut()) };
    }
}
