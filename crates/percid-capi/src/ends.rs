//! Possible ends of the C functions that the library calls.
//!
//! Most return. Some do not: a C++ exception passes through, the thread is cancelled or calls
//! `pthread_exit`, or the function jumps out. In each case the library releases the resources that
//! it holds for the function (a value, a visitor's turn, shards that are closed), in one of two
//! ways.
//!
//! *Unwinding* passes the frames of this crate: exceptions on all systems, and with glibc also the
//! end of a thread, which is an unwinding that nothing stops ("forced"). So these functions and
//! their callbacks have the ABI `C-unwind`, and no `catch_unwind` is between them. It would end the
//! process, as a C++ `catch (...)` without `throw;` does. Rust runs the destructors during the
//! unwinding. For exceptions the language guarantees it. For forced unwinding the language does not
//! define the effect on frames with destructors; the compilers run them too (tested with 1.87 and
//! 1.95, with and without optimisation, and by the tests of this crate).
//!
//! *Handlers* of `pthread_cleanup_push()` are called if nothing unwinds: by musl at the end of a
//! thread, and by glibc when `longjmp` leaves the frame of the call. The functions behind that
//! macro have the same names and take the same arguments in both (glibc's are part of the LSB).
//! musl's `longjmp` calls no handler, and leaves a list with an invalid frame: with musl, functions
//! must not jump out of the library. Nor must they throw: the installation for musl has its own
//! unwinder, which cannot handle C++ exceptions.
//!
//! The resources are in one place, a [`Call`], in the frame of the function that C has called: the
//! core returns one item after the other and has no frame on the stack while a C function runs. The
//! first of the two ways empties the `Call`, so that nothing is released twice.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::marker::PhantomPinned;
use std::mem::ManuallyDrop;
use std::ptr;

/// The buffer that the C library links into a thread's list: 32 bytes with glibc, 24 with musl.
/// cbindgen:ignore
#[repr(C)]
struct Buffer([UnsafeCell<usize>; 4]);

unsafe extern "C" {
    fn _pthread_cleanup_push(
        buffer: *const Buffer,
        handler: unsafe extern "C-unwind" fn(*mut c_void),
        argument: *mut c_void,
    );
    fn _pthread_cleanup_pop(buffer: *const Buffer, execute: c_int);
}

/// Runs `body`, which calls functions of C, with the library's resources for them. They are dropped
/// when `body` returns, or C's function ends in another way.
#[inline(always)]
pub(crate) fn holding<S, R>(state: S, body: impl FnOnce(&mut S) -> R) -> R {
    let call = Call::new(state);
    call.register();
    // SAFETY: nothing else uses the state until it is released, and `body` does not continue after
    // that.
    body(unsafe { &mut *call.state.get() })
}

/// The resources that the library holds while it calls functions of C. Released when dropped, or by
/// the handler.
struct Call<S> {
    state: UnsafeCell<ManuallyDrop<S>>,
    is_over: Cell<bool>,
    buffer: Buffer,
    /// The C library stores the address of this value.
    _pinned: PhantomPinned,
}

impl<S> Call<S> {
    #[inline(always)]
    fn new(state: S) -> Call<S> {
        Call {
            state: UnsafeCell::new(ManuallyDrop::new(state)),
            is_over: Cell::new(false),
            buffer: Buffer([const { UnsafeCell::new(0) }; 4]),
            _pinned: PhantomPinned,
        }
    }

    #[inline(always)]
    fn register(&self) {
        let argument = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: the buffer is not moved until it is removed from the list: by `drop`, or by the C
        // library when it calls the handler, whose argument is a registered `Call`.
        unsafe { _pthread_cleanup_push(&self.buffer, Call::<S>::handler, argument) };
    }

    fn give_back(&self) {
        if !self.is_over.replace(true) {
            // SAFETY: `is_over` allows this once, and the function that used the state does not
            // continue.
            unsafe { ManuallyDrop::drop(&mut *self.state.get()) };
        }
    }

    /// # Safety
    ///
    /// The argument is a call that has been registered and not dropped.
    unsafe extern "C-unwind" fn handler(argument: *mut c_void) {
        // SAFETY: the caller guarantees a call that has been registered and not dropped.
        unsafe { &*argument.cast::<Call<S>>() }.give_back();
    }
}

impl<S> Drop for Call<S> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: it is the last remaining buffer that this thread has pushed: later ones were
        // popped before.
        unsafe { _pthread_cleanup_pop(&self.buffer, 0) };
        self.give_back();
    }
}

thread_local! {
    /// The innermost visit of this thread.
    static VISITS: Cell<*const Visiting> = const { Cell::new(ptr::null()) };
}

/// A visit of an object by this thread, while it lives. It prevents the destruction of the object.
#[derive(Debug)]
struct Visiting {
    object: *const c_void,
    outer: *const Visiting,
}

/// Leaves a visit when dropped.
#[derive(Debug)]
struct Left(*const Visiting);

impl Drop for Left {
    fn drop(&mut self) {
        VISITS.set(self.0);
    }
}

/// Does the same as [`holding`], and registers the visit for [`is_visiting`].
pub(crate) fn visiting<O, S, R>(object: &O, state: S, body: impl FnOnce(&mut S) -> R) -> R {
    let outer = VISITS.get();
    let visiting = Visiting { object: ptr::from_ref(object).cast(), outer };
    holding((state, Left(outer)), |(state, _)| {
        VISITS.set(&visiting);
        body(state)
    })
}

/// Returns `true` if the calling thread is in a visit of this object.
pub(crate) fn is_visiting<O>(object: &O) -> bool {
    let mut next = VISITS.get();
    // SAFETY: visits are removed from this list before their frames end.
    while let Some(visiting) = unsafe { next.as_ref() } {
        if ptr::eq(visiting.object, ptr::from_ref(object).cast()) {
            return true;
        }
        next = visiting.outer;
    }
    false
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn what_is_held_is_given_back_once() {
        let held = Rc::new(());
        let seen = holding(Rc::clone(&held), |held| Rc::strong_count(held));
        assert_eq!((seen, Rc::strong_count(&held)), (2, 1));
        let call = Call::new(Rc::clone(&held));
        call.register();
        // The C library does this for a thread that ends without unwinding.
        // SAFETY: the call was registered and not dropped.
        unsafe { Call::<Rc<()>>::handler(ptr::from_ref(&call).cast_mut().cast()) };
        assert_eq!(Rc::strong_count(&held), 1);
        drop(call);
        assert_eq!(Rc::strong_count(&held), 1);
    }

    #[test]
    fn a_thread_knows_what_it_visits() {
        let (one, other) = (1, 2);
        visiting(&one, (), |()| {
            assert!(is_visiting(&one) && !is_visiting(&other));
            visiting(&other, (), |()| assert!(is_visiting(&one) && is_visiting(&other)));
            assert!(is_visiting(&one) && !is_visiting(&other));
            let elsewhere = || std::thread::spawn(move || VISITS.get().is_null()).join();
            assert!(elsewhere().expect("no panic"));
        });
        assert!(!is_visiting(&one));
    }
}
