//! Restartable sequences: whose area to use, how large it is, and registering one of our own.
//!
//! Facts and field offsets: `linux/rseq.h` of the kernel's user-space interface. percid writes one
//! field only, `rseq_cs`; newer kernels kill a process that writes any other.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::thread;

/// The kernel's area. Only its first 28 bytes are used; 32 is the size of the original interface.
#[repr(C, align(32))]
#[derive(Debug)]
pub(crate) struct Area {
    cpu_id_start: u32,
    cpu_id: i32,
    rseq_cs: u64,
    flags: u32,
    node_id: u32,
    mm_cid: u32,
    padding: u32,
}

const _: () = {
    assert!(size_of::<Area>() == 32);
    assert!(std::mem::offset_of!(Area, cpu_id) == 4);
    assert!(std::mem::offset_of!(Area, rseq_cs) == 8);
    assert!(std::mem::offset_of!(Area, mm_cid) == 24);
};

/// The four bytes in front of every abort address, which the kernel compares with those given at
/// registration. The C library uses these, and a process can have only one such value per thread.
pub(crate) const SIGNATURE: u32 =
    if cfg!(target_arch = "aarch64") { 0xd428_bc00 } else { 0x5305_3053 };

const AT_RSEQ_FEATURE_SIZE: u64 = 27;
const AT_RSEQ_ALIGN: u64 = 28;

/// Who registers the threads of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Registration {
    /// The C library registers every thread when it starts.
    Libc,
    /// percid registers each thread when it first needs to, since the C library does not.
    Own,
    /// Nobody can: the kernel's answer to our attempt, an `errno`.
    Refused(i32),
    /// percid has no critical sections for this architecture.
    Unsupported,
}

impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Registration::Libc => f.write_str("by the C library"),
            Registration::Own => f.write_str("by percid, thread by thread"),
            Registration::Refused(errno) => write!(f, "refused: {}", ErrnoName(*errno)),
            Registration::Unsupported => f.write_str("not supported on this architecture"),
        }
    }
}

/// An `errno` by the name that manual pages use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrnoName(pub(crate) i32);

impl fmt::Display for ErrnoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            libc::ENOSYS => f.write_str("ENOSYS (the kernel has no such call)"),
            libc::EPERM => f.write_str("EPERM (a sandbox forbids the call)"),
            libc::EINVAL => {
                f.write_str("EINVAL (another library's area is registered, or the call is too new)")
            }
            libc::ENOMEM => f.write_str("ENOMEM (out of memory)"),
            other => write!(f, "errno {other}"),
        }
    }
}

/// Who registers the threads of this process; decided once, by the first thread that asks, because all
/// threads must look for their area at the same distance from the thread pointer.
///
/// Asking registers the calling thread if the C library has not.
pub(crate) fn registration() -> Registration {
    let known = DECIDED.load(Relaxed);
    if known != 0 {
        return Registration::unpack(known);
    }
    let found = discover().pack();
    // Whoever comes second adopts the first answer.
    let first = DECIDED.compare_exchange(0, found, Relaxed, Relaxed).err();
    Registration::unpack(first.unwrap_or(found))
}

/// A packed [`Registration`]; 0 until it is known.
static DECIDED: AtomicU32 = AtomicU32::new(0);

impl Registration {
    fn pack(self) -> u32 {
        match self {
            Registration::Libc => 1,
            Registration::Own => 2,
            Registration::Unsupported => 3,
            Registration::Refused(errno) => 4 + errno as u32,
        }
    }

    fn unpack(packed: u32) -> Registration {
        match packed {
            1 => Registration::Libc,
            2 => Registration::Own,
            3 => Registration::Unsupported,
            refused => Registration::Refused((refused - 4) as i32),
        }
    }
}

/// From the thread pointer to the area of a registration. Where there is none it is percid's own block,
/// which is harmless to look at.
pub(crate) fn area_offset(registration: Registration) -> isize {
    match (registration, thread::libc_rseq()) {
        (Registration::Libc, Some(libc)) => libc.offset,
        _ => thread::own_offset(),
    }
}

fn discover() -> Registration {
    if cfg!(any(percid_portable, not(any(target_arch = "x86_64", target_arch = "aarch64")))) {
        return Registration::Unsupported;
    }
    // The library's word is not enough: a sandbox may have refused this very thread.
    let libc = thread::libc_rseq().filter(|libc| libc.size > 0);
    if libc.is_some_and(|libc| cpu_id(libc.offset).is_some()) {
        return Registration::Libc;
    }
    register_own().map_or_else(Registration::Refused, |()| Registration::Own)
}

/// Registers the calling thread's own area unless that has been done or refused before.
///
/// # Errors
///
/// The `errno`; the same one again without a system call if the thread was refused before.
pub(crate) fn register_own() -> Result<(), i32> {
    let block = thread::own();
    if cpu_id(thread::own_offset()).is_some() {
        return Ok(());
    }
    // SAFETY: the block belongs to this thread; a signal handler that interrupts us here does the same
    // idempotent work.
    let refused = unsafe { &raw mut (*block).refused };
    // SAFETY: as above.
    match unsafe { *refused } {
        0 => {}
        errno => return Err(errno as i32),
    }
    if !thread_end::announce() {
        return Err(libc::ENOMEM);
    }
    let result = rseq(0);
    // A handler that ran between the check and the call may have registered this same area.
    if result.is_ok() || cpu_id(thread::own_offset()).is_some() {
        return Ok(());
    }
    // SAFETY: as above.
    result.inspect_err(|&errno| unsafe { *refused = errno as u32 })
}

/// Takes the registration of the calling thread's own area back. It is not registered again.
#[cfg(not(target_env = "gnu"))]
fn unregister_own() {
    // SAFETY: the block belongs to this thread.
    unsafe { (*thread::own()).refused = libc::ESRCH as u32 };
    // The answer does not matter: nothing can be done about a failure.
    let _ = rseq(UNREGISTER);
}

/// Takes any registration of the calling thread back: the negative control of the kernel source.
#[cfg(feature = "testing")]
pub(crate) fn unregister_by_hand() -> bool {
    let area = thread::at(area_offset(registration())).cast::<Area>();
    // SAFETY: as in `rseq`; the size is the original one, which every C library so far registers.
    unsafe { libc::syscall(libc::SYS_rseq, area, size_of::<Area>(), UNREGISTER, SIGNATURE) == 0 }
}

/// The flag of the system call that takes a registration back.
#[cfg(any(not(target_env = "gnu"), feature = "testing"))]
const UNREGISTER: i32 = 1;

/// The system call, for the calling thread's own area.
fn rseq(flags: i32) -> Result<(), i32> {
    let area = thread::own().cast::<Area>();
    // SAFETY: the area is the block's first field; it is aligned to 32 bytes and lives as long as the
    // thread, or until it is unregistered.
    let result =
        unsafe { libc::syscall(libc::SYS_rseq, area, size_of::<Area>(), flags, SIGNATURE) };
    if result == 0 { Ok(()) } else { Err(super::errno()) }
}

/// With glibc the area outlives the thread's last instruction: the stack it lies in is not given back
/// before the kernel has reported the thread's end.
#[cfg(target_env = "gnu")]
mod thread_end {
    /// Nothing has to be done.
    pub(super) fn announce() -> bool {
        true
    }
}

/// Elsewhere (musl) a detached thread unmaps its own stack, and the area in it, before it ends. If it were
/// preempted in between, the kernel would write to an area that is gone, and kill the process. So the
/// registration is taken back when the thread's keys are destroyed.
#[cfg(not(target_env = "gnu"))]
mod thread_end {
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    /// One more than the key; 0 before it is made.
    static KEY: AtomicU32 = AtomicU32::new(0);

    /// Sees to it that the registration is taken back at the end of the calling thread.
    pub(super) fn announce() -> bool {
        let Some(key) = key() else { return false };
        // SAFETY: the key exists; any value but null makes the destructor run.
        unsafe { libc::pthread_setspecific(key, std::ptr::dangling::<c_void>()) == 0 }
    }

    fn key() -> Option<libc::pthread_key_t> {
        if let Some(key) = KEY.load(Relaxed).checked_sub(1) {
            return Some(key);
        }
        let mut made = 0;
        // SAFETY: `made` is a valid place, and the destructor may run in any thread.
        if unsafe { libc::pthread_key_create(&mut made, Some(at_end)) } != 0 {
            return None;
        }
        match KEY.compare_exchange(0, made + 1, Relaxed, Relaxed) {
            Ok(_) => Some(made),
            Err(first) => {
                // SAFETY: nobody else knows this key.
                unsafe { libc::pthread_key_delete(made) };
                Some(first - 1)
            }
        }
    }

    extern "C" fn at_end(_: *mut c_void) {
        super::unregister_own();
    }
}

/// The CPU that runs the calling thread, according to the area at `offset`; `None` if that area is
/// not registered. It may be out of date when the caller looks at it.
pub(crate) fn cpu_id(offset: isize) -> Option<u32> {
    let area = thread::at(offset).cast::<Area>();
    // SAFETY: `offset` leads to an rseq area of this thread, by the callers in this crate. The kernel
    // changes the field behind the compiler's back, hence volatile.
    u32::try_from(unsafe { (&raw const (*area).cpu_id).read_volatile() }).ok()
}

/// The kernel's concurrency ID of the calling thread; meaningful only if the area is registered and
/// [`features`] has it. It may be out of date when the caller looks at it.
pub(crate) fn mm_cid(offset: isize) -> u32 {
    let area = thread::at(offset).cast::<Area>();
    // SAFETY: as in `cpu_id`; 28 bytes are there in every area since the first version.
    unsafe { (&raw const (*area).mm_cid).read_volatile() }
}

/// How many bytes of the area the kernel fills: 0 or 20 on kernels that only know the original
/// fields, 28 with `node_id` and `mm_cid`.
pub(crate) fn feature_size() -> u32 {
    // SAFETY: the call only reads the auxiliary vector.
    unsafe { libc::getauxval(AT_RSEQ_FEATURE_SIZE) as u32 }
}

/// The alignment the kernel wants of larger areas; 0 on kernels that do not say.
pub(crate) fn alignment() -> u32 {
    // SAFETY: as in `feature_size`.
    unsafe { libc::getauxval(AT_RSEQ_ALIGN) as u32 }
}

/// The size of the area the C library promises, in bytes; 0 if it registers none.
pub(crate) fn libc_size() -> u32 {
    thread::libc_rseq().map_or(0, |libc| libc.size)
}

/// How many bytes of a registered area are live.
///
/// Before glibc 2.41 the library said 32 or 20 and registered 32 bytes in both cases; since then it
/// says what it registered.
pub(crate) fn usable_size(registration: Registration) -> u32 {
    let promised = match registration {
        Registration::Libc => libc_size(),
        Registration::Own => size_of::<Area>() as u32,
        Registration::Refused(_) | Registration::Unsupported => return 0,
    };
    match promised {
        20 | 32 => feature_size().clamp(20, 32),
        larger => larger,
    }
}

/// Whether the kernel keeps a concurrency ID in the registered area.
pub(crate) fn has_mm_cid(registration: Registration) -> bool {
    feature_size() >= 28 && usable_size(registration) >= 28
}
