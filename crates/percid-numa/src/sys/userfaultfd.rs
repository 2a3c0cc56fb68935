//! Write protection with `userfaultfd(2)`: a thread of percid's answers the faults.
//!
//! Numbers and structures are those of `linux/userfaultfd.h`, the kernel's interface for programs.

use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::{errno, memory};

/// The number of the interface (`UFFD_API`).
const API: u64 = 0xaa;
/// Requested features. Messages show that write protection caused a fault
/// (`UFFD_FEATURE_PAGEFAULT_FLAG_WP`, Linux 5.7), and which thread waits
/// (`UFFD_FEATURE_THREAD_ID`, Linux 4.14). Nothing else is requested:
/// `UFFD_FEATURE_EVENT_FORK` would protect the memory of children, whose faults no thread here
/// answers.
const FEATURES: u64 = 1 << 0 | 1 << 8;
/// Feature with which writers fail instead of waiting, with a signal or in a system call with
/// `EFAULT` (`UFFD_FEATURE_SIGBUS`, Linux 4.14).
const FAIL: u64 = 1 << 7;
/// `UFFDIO_REGISTER_MODE_WP`. Never the other modes: with them the kernel would not handle page
/// faults itself.
const MODE_WRITE_PROTECT: u64 = 1 << 1;
/// `UFFDIO_WRITEPROTECT_MODE_WP`; without it the protection is removed and waiting threads are
/// woken.
const PROTECT: u64 = 1 << 0;
/// `UFFD_EVENT_PAGEFAULT`.
const PAGE_FAULT: u8 = 0x12;

/// The bit of `_UFFDIO_WRITEPROTECT` among the calls that a registration allows.
const CAN_PROTECT: u64 = 1 << 6;

/// Returns the number of a call: direction, size of the argument, letter, number
/// (`asm-generic/ioctl.h`).
const fn call(direction: u32, bytes: usize, number: u32) -> u32 {
    direction << 30 | (bytes as u32) << 16 | 0xaa << 8 | number
}
const NEW: u32 = call(0, 0, 0x00);
const REGISTER: u32 = call(3, size_of::<Registration>(), 0x00);
const UNREGISTER: u32 = call(2, size_of::<Span>(), 0x01);
const WAKE: u32 = call(2, size_of::<Span>(), 0x02);
const WRITE_PROTECT: u32 = call(3, size_of::<Protection>(), 0x06);
const HANDSHAKE: u32 = call(3, size_of::<Handshake>(), 0x3f);

/// `struct uffdio_api`.
#[repr(C)]
struct Handshake {
    api: u64,
    features: u64,
    calls: u64,
}

/// `struct uffdio_range`.
#[repr(C)]
struct Span {
    start: u64,
    bytes: u64,
}

impl From<&Range<usize>> for Span {
    fn from(range: &Range<usize>) -> Span {
        Span { start: range.start as u64, bytes: range.len() as u64 }
    }
}

/// `struct uffdio_register`.
#[repr(C)]
struct Registration {
    span: Span,
    mode: u64,
    calls: u64,
}

/// `struct uffdio_writeprotect`.
#[repr(C)]
struct Protection {
    span: Span,
    mode: u64,
}

/// The message about a fault (`struct uffd_msg`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Message {
    event: u8,
    reserved: [u8; 7],
    flags: u64,
    address: u64,
    thread: u32,
    more: u32,
}

impl Message {
    /// Returns the address of a write, and the number of the thread that waits (which may belong to
    /// another process).
    pub(crate) fn write(&self) -> Option<(usize, u32)> {
        (self.event == PAGE_FAULT).then_some((self.address as usize, self.thread))
    }
}

/// The reason why there is no descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The process may not have a descriptor that also handles faults in system calls.
    NotPermitted,
    /// The kernel does not support write protection with `userfaultfd`.
    NotSupported,
    /// Another error, by `errno`.
    Other(i32),
}

/// A descriptor. Its calls change no contents of memory, only which threads wait: so none of them
/// is unsafe.
#[derive(Debug)]
pub(crate) struct Userfaultfd(OwnedFd);

impl Userfaultfd {
    /// Opens a descriptor that handles faults in system calls as well as in the program: by the
    /// system call if that is permitted, otherwise through the device (Linux 6.1). Reading it never
    /// blocks.
    ///
    /// The first call in a process tests whether writes are detected at all.
    pub(crate) fn open() -> Result<Userfaultfd, Refusal> {
        let opened = Userfaultfd::with_features(FEATURES)?;
        if writes_are_seen()? { Ok(opened) } else { Err(Refusal::NotSupported) }
    }

    fn with_features(features: u64) -> Result<Userfaultfd, Refusal> {
        let opened = Userfaultfd(descriptor()?);
        let mut handshake = Handshake { api: API, features, calls: 0 };
        match opened.control(HANDSHAKE, &mut handshake) {
            Ok(()) => Ok(opened),
            Err(libc::EINVAL) => Err(Refusal::NotSupported),
            Err(errno) => Err(Refusal::Other(errno)),
        }
    }

    /// Registers a range, so that it can be protected.
    ///
    /// # Errors
    ///
    /// The `errno`: `EINVAL` if it is not private memory without a file, `EBUSY` if another
    /// descriptor has it.
    pub(crate) fn register(&self, range: &Range<usize>) -> Result<(), i32> {
        let mut argument = Registration { span: range.into(), mode: MODE_WRITE_PROTECT, calls: 0 };
        self.control(REGISTER, &mut argument)?;
        if argument.calls & CAN_PROTECT != 0 {
            return Ok(());
        }
        let _ = self.unregister(range);
        Err(libc::EINVAL)
    }

    /// Ends the registration of a range, and removes its protection. Threads that wait there
    /// continue to wait: see [`wake`](Userfaultfd::wake).
    ///
    /// # Errors
    ///
    /// The `errno`: `EINVAL` if the first page is not mapped, or if memory is mapped there that
    /// cannot be registered.
    pub(crate) fn unregister(&self, range: &Range<usize>) -> Result<(), i32> {
        self.control(UNREGISTER, &mut Span::from(range))
    }

    /// Protects the pages of a range that have memory: writers wait from now on.
    ///
    /// # Errors
    ///
    /// The `errno`: `ENOENT` if part of the range is not registered; on kernels before 6.4 also if
    /// it consists of several mappings.
    pub(crate) fn protect(&self, range: &Range<usize>) -> Result<(), i32> {
        self.control(WRITE_PROTECT, &mut Protection { span: range.into(), mode: PROTECT })
    }

    /// Removes the protection and wakes the threads that wait there.
    ///
    /// # Errors
    ///
    /// The same as for [`protect`](Userfaultfd::protect); then no thread was woken.
    pub(crate) fn unprotect(&self, range: &Range<usize>) -> Result<(), i32> {
        self.control(WRITE_PROTECT, &mut Protection { span: range.into(), mode: 0 })
    }

    /// Wakes threads that wait in a range, so that they retry, whatever is mapped there now.
    ///
    /// # Errors
    ///
    /// The `errno`; none is known for pages below the end of the address space.
    pub(crate) fn wake(&self, range: &Range<usize>) -> Result<(), i32> {
        self.control(WAKE, &mut Span::from(range))
    }

    /// Reads messages of waiting threads, at most as many as fit. Returns the number of messages.
    pub(crate) fn read(&self, messages: &mut [Message]) -> usize {
        let bytes = size_of_val(messages);
        // SAFETY: the buffer is writable for its whole length, and every bit pattern is a message.
        let got = unsafe {
            libc::syscall(libc::SYS_read, self.0.as_raw_fd(), messages.as_mut_ptr(), bytes)
        };
        usize::try_from(got).unwrap_or(0) / size_of::<Message>()
    }

    fn control<T>(&self, call: u32, argument: &mut T) -> Result<(), i32> {
        let place: *mut T = argument;
        // SAFETY: the argument is the structure that the call takes, and outlives the call.
        let done = unsafe { libc::syscall(libc::SYS_ioctl, self.0.as_raw_fd(), call, place) };
        if done == 0 { Ok(()) } else { Err(errno()) }
    }
}

impl AsRawFd for Userfaultfd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Returns `true` if a write to protected memory is detected. Linux before 6.10 on aarch64
/// registers memory and protects it without an error, and then lets every write pass (observed on
/// 5.10).
///
/// Tested with a page on which writers fail, by a system call that writes there: so no thread
/// waits, and no signal is sent. The result is stored, since it does not change while the kernel
/// runs.
fn writes_are_seen() -> Result<bool, Refusal> {
    static KNOWN: AtomicU8 = AtomicU8::new(0);
    const SEEN: u8 = 1;
    const MISSED: u8 = 2;
    let known = match KNOWN.load(Relaxed) {
        0 => {
            let seen = is_seen(PROTECT)?;
            KNOWN.store(if seen { SEEN } else { MISSED }, Relaxed);
            return Ok(seen);
        }
        known => known,
    };
    Ok(known == SEEN)
}

/// Returns `true` if a write to a page is detected after `UFFDIO_WRITEPROTECT` with this mode.
fn is_seen(mode: u64) -> Result<bool, Refusal> {
    let descriptor = Userfaultfd::with_features(FEATURES | FAIL)?;
    let bytes = memory::page_size();
    let page = memory::map(bytes).ok_or(Refusal::Other(libc::ENOMEM))?;
    // Only a page that has memory can be protected.
    // SAFETY: the mapping is new, and used here only.
    unsafe { page.write_volatile(1) };
    let start = page.as_ptr() as usize;
    let range = start..start + bytes;
    let result = descriptor.register(&range).and_then(|()| {
        let span = Span::from(&range);
        descriptor.control(WRITE_PROTECT, &mut Protection { span, mode })?;
        write_of_the_kernel(page)
    });
    drop(descriptor);
    // SAFETY: nothing else uses the mapping.
    unsafe { memory::unmap(page, bytes) };
    match result {
        Ok(()) => Ok(false),
        Err(libc::EFAULT) => Ok(true),
        // The kernel registers this memory for other modes only.
        Err(libc::EINVAL) => Ok(false),
        Err(errno) => Err(Refusal::Other(errno)),
    }
}

/// Makes the kernel write to a page; `EFAULT` if it cannot.
fn write_of_the_kernel(page: NonNull<u8>) -> Result<(), i32> {
    /// The size of the kernel's signal set.
    const BYTES: usize = 8;
    let (place, nothing) = (page.as_ptr(), std::ptr::null::<u8>());
    // SAFETY: the call reads the blocked signals, changes none, and has room for them.
    let done =
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, nothing, place, BYTES) };
    if done == 0 { Ok(()) } else { Err(errno()) }
}

fn descriptor() -> Result<OwnedFd, Refusal> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the call takes flags only.
    let by_call = own(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) });
    let refused = match by_call {
        Ok(opened) => return Ok(opened),
        Err(errno @ (libc::EPERM | libc::EACCES | libc::ENOSYS)) => errno,
        Err(errno) => return Err(Refusal::Other(errno)),
    };
    // SAFETY: the path is a terminated string.
    let device = own(unsafe {
        let path = c"/dev/userfaultfd".as_ptr();
        libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, libc::O_RDWR | libc::O_CLOEXEC)
    });
    let by_device = device.and_then(|device| {
        // SAFETY: the call takes flags only.
        own(unsafe { libc::syscall(libc::SYS_ioctl, device.as_raw_fd(), NEW, flags) })
    });
    by_device.map_err(|_| match refused {
        libc::ENOSYS => Refusal::NotSupported,
        _ => Refusal::NotPermitted,
    })
}

/// Takes ownership of the descriptor that a system call opened.
fn own(result: libc::c_long) -> Result<OwnedFd, i32> {
    match RawFd::try_from(result) {
        // SAFETY: the descriptor was just opened, and nothing else owns it.
        Ok(opened) if opened >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(opened) }),
        _ => Err(errno()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process;

    /// Compares with the numbers of the header's macros (`_IO`, `_IOR`, `_IOWR` with the sizes of
    /// the structures).
    #[test]
    fn calls_have_the_numbers_of_the_interface() {
        let calls = [NEW, REGISTER, UNREGISTER, WAKE, WRITE_PROTECT, HANDSHAKE];
        let expected = [0xaa00, 0xc020_aa00, 0x8010_aa01, 0x8010_aa02, 0xc018_aa06, 0xc018_aa3f];
        assert_eq!((calls, size_of::<Message>()), (expected, 32));
    }

    /// Negative control: a page that is not protected, as on a kernel that only appears to protect
    /// it.
    #[test]
    fn writes_are_seen_where_memory_is_protected_and_nowhere_else() {
        match is_seen(PROTECT) {
            // The aarch64 kernels in the tests are 6.10 or later.
            Ok(seen) => assert!(seen),
            Err(refusal) => {
                return percid_skips::not_checked("userfaultfd", &format!("{refusal:?}"));
            }
        }
        assert_eq!(is_seen(0), Ok(false));
        assert_eq!(writes_are_seen(), Ok(true));
    }

    #[test]
    fn a_write_waits_and_says_who() {
        let descriptor = match Userfaultfd::open() {
            Ok(descriptor) => descriptor,
            Err(refusal) => {
                return percid_skips::not_checked("userfaultfd", &format!("{refusal:?}"));
            }
        };
        let page = memory::page_size();
        let start = memory::map(2 * page).expect("memory").as_ptr() as usize;
        let word = |index: usize| start + index * page;
        // SAFETY: the mapping is this test's own, and never unmapped.
        let of = |index: usize| unsafe { &*(word(index) as *const std::sync::atomic::AtomicU64) };
        of(0).store(1, std::sync::atomic::Ordering::Relaxed);
        let range = start..start + page;
        assert_eq!(descriptor.protect(&range), Err(libc::ENOENT), "not registered");
        assert_eq!(descriptor.register(&range), Ok(()));
        assert_eq!(descriptor.protect(&range), Ok(()));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                of(0).fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                process::thread_id()
            });
            let mut messages = [Message::default(); 4];
            while descriptor.read(&mut messages) == 0 {
                std::thread::yield_now();
            }
            assert!(!writer.is_finished());
            assert_eq!(descriptor.unprotect(&range), Ok(()));
            let thread = writer.join().expect("no panic");
            assert_eq!(messages[0].write(), Some((start, thread)));
        });
        assert_eq!(of(0).load(std::sync::atomic::Ordering::Relaxed), 2);
        assert_eq!(descriptor.unregister(&range), Ok(()));
    }
}
