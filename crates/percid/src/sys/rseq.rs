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
            libc::EBUSY => f.write_str("EBUSY (another library has registered its own area)"),
            libc::EINVAL => f.write_str("EINVAL (the kernel does not accept the call)"),
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
/// The area lives in the thread's static storage and so outlives the thread's last instruction: it
/// is never unregistered.
///
/// # Errors
///
/// The `errno`; the same one again without a system call if the thread was refused before.
pub(crate) fn register_own() -> Result<(), i32> {
    let block = thread::own();
    if cpu_id(thread::own_offset()).is_some() {
        return Ok(());
    }
    // SAFETY: the block belongs to this thread; the kernel has not been told of it yet, and a signal
    // handler that interrupts us here does the same idempotent work.
    let refused = unsafe { &mut (*block).refused };
    if *refused != 0 {
        return Err(*refused as i32);
    }
    // SAFETY: the area is valid, aligned to 32 bytes and lives as long as the thread.
    let result = unsafe {
        libc::syscall(libc::SYS_rseq, &raw mut (*block).area, size_of::<Area>(), 0, SIGNATURE)
    };
    if result == 0 {
        return Ok(());
    }
    let errno = super::errno();
    // A handler that ran between the check and the call may have registered this same area.
    if errno == libc::EBUSY && cpu_id(thread::own_offset()).is_some() {
        return Ok(());
    }
    *refused = errno as u32;
    Err(errno)
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
