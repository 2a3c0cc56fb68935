//! Restartable sequences: the choice of the area, its size, and the registration of percid's own.
//!
//! Facts and field offsets: `linux/rseq.h` of the kernel's user-space interface. percid
//! writes only the field `rseq_cs` of a registered area; newer kernels kill a process that writes
//! any other.
//!
//! # Choice of the area
//!
//! A thread has one registration, of one area, with one signature. percid uses the first of these
//! that exists:
//!
//! 1. The C library's, if it registers threads (glibc 2.35 and later).
//! 2. Otherwise the thread-local `__rseq_abi`, if some library of the program defines it. Libraries
//!    shared one area under this name before the C library had any, and allocators still define it
//!    (tcmalloc, if the C library's registration is switched off by
//!    `GLIBC_TUNABLES=glibc.pthread.rseq=0`). The first library in a thread that needs it registers
//!    it, with 32 bytes; `cpu_id` shows the others that it is registered. Sharing it is sound
//!    because
//!    * the kernel confirms to the deciding thread that this area is the registered one and that
//!      its signature is percid's. It returns EBUSY for a registration like the existing one,
//!      EINVAL if another area is registered, and EPERM if the signature differs. A library has one
//!      signature for all its threads, and a thread whose area has a CPU number in `cpu_id` has
//!      registered that area;
//!    * each section stores `rseq_cs` before it begins, sections do not nest, and the kernel ends
//!      the one that a signal handler interrupts: so none needs the value that another library's
//!      section left there, and percid's descriptors stay mapped;
//!    * the definitions in use (the kernel's self-tests, librseq, tcmalloc) start with -1 in
//!      `cpu_id`, so a thread that is not registered has no ID in percid's table. They start with 0
//!      in `mm_cid`, which is a valid ID: the kernel source is refused there;
//!    * the other fields that a library writes do not affect a section: tcmalloc keeps state in
//!      `cpu_id_start`, which percid neither reads nor writes;
//!    * it lies at one distance from the thread pointer in all threads, by the model of the
//!      reference.
//! 3. Otherwise percid's own, with as many bytes as the kernel announces.
//!
//! If another area is registered nevertheless, percid cannot find it ([`Registration::Occupied`]).

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::process;
use crate::architectures::SECTIONS_EXIST;
use crate::sys::registration::{Registration, RseqMode};
use crate::sys::rseq_area::Area;
#[cfg(test)]
use crate::sys::steps::{self, Step};
use crate::sys::thread;

/// The four bytes in front of every abort address, which the kernel compares with those given at
/// registration. The C library uses these bytes, and a thread can have only one such value.
// #[gamma::skip(reason = "with another one the C library's registration is refused; the rest is of other processors")]
pub(crate) const SIGNATURE: u32 = match () {
    () if cfg!(target_arch = "aarch64") => 0xd428_bc00,
    () if cfg!(target_arch = "riscv64") => 0xf140_1073,
    () => 0x5305_3053,
};

/// The size of the original interface, which every kernel accepts with an alignment of the same
/// size. Kernels that announce more keep an area of this size in their compatible mode.
const ORIGINAL_SIZE: u32 = 32;

/// The largest size and alignment of an area that percid registers itself.
pub(crate) const MAX_OWN_SIZE: u32 = size_of::<Area>() as u32;

const AT_RSEQ_FEATURE_SIZE: u64 = 27;
const AT_RSEQ_ALIGN: u64 = 28;

/// Returns the registration of this process's threads. The first calling thread decides it once,
/// because all threads must find their area at the same distance from the thread pointer.
///
/// The first call registers the calling thread unless it is registered. Async-signal-safe.
pub(crate) fn registration() -> Registration {
    decided(&DECIDED, discover)
}

fn decided(place: &AtomicU32, discover: impl FnOnce() -> Registration) -> Registration {
    let known = place.load(Relaxed);
    if known != 0 {
        return Registration::unpack(known);
    }
    let found = discover().pack();
    // The second thread adopts the first answer.
    let first = place.compare_exchange(0, found, Relaxed, Relaxed).err();
    Registration::unpack(first.unwrap_or(found))
}

/// A packed [`Registration`]; 0 until it is known.
static DECIDED: AtomicU32 = AtomicU32::new(0);

impl Registration {
    fn pack(self) -> u32 {
        match self {
            Registration::Libc => 1,
            Registration::Percid => 2,
            Registration::Shared => 3,
            Registration::Occupied => 4,
            Registration::Unsupported => 5,
            Registration::Refused(errno) => 6 + errno as u32,
        }
    }

    fn unpack(packed: u32) -> Registration {
        match packed {
            1 => Registration::Libc,
            2 => Registration::Percid,
            3 => Registration::Shared,
            4 => Registration::Occupied,
            5 => Registration::Unsupported,
            refused => Registration::Refused((refused - 6) as i32),
        }
    }

    /// Returns `true` if threads have an area.
    pub(crate) fn succeeded(self) -> bool {
        matches!(self, Registration::Libc | Registration::Percid | Registration::Shared)
    }
}

/// Returns the offset from the thread pointer to the area of a registration. If there is none, it
/// is percid's own block, which is harmless to read.
pub(crate) fn area_offset(registration: Registration) -> isize {
    let elsewhere = match registration {
        Registration::Libc => thread::libc_rseq().map(|libc| libc.offset),
        Registration::Shared => thread::shared_offset(),
        _ => None,
    };
    elsewhere.unwrap_or_else(thread::own_offset)
}

fn discover() -> Registration {
    // #[gamma::skip(reason = "of other processors")]
    if !SECTIONS_EXIST {
        return Registration::Unsupported;
    }
    // The library's symbols are not sufficient: a sandbox may have refused this thread.
    let libc = thread::libc_rseq().filter(|libc| libc.size > 0);
    if libc.is_some_and(|libc| cpu_id(libc.offset).is_some()) {
        return Registration::Libc;
    }
    let (result, found) = match thread::shared_offset() {
        Some(offset) => (register_shared(offset, feature_size()).map(drop), Registration::Shared),
        None => (register_own(), Registration::Percid),
    };
    judge(result, found, cpu_id(area_offset(found)).is_some())
}

/// Returns the registration that follows from the kernel's result; `in_use` is `true` if the area
/// has a CPU number.
fn judge(result: Result<(), i32>, found: Registration, in_use: bool) -> Registration {
    match result {
        Ok(()) => found,
        // No kernel returns this for 32 aligned bytes, unless the thread has another registration.
        Err(libc::EINVAL) => Registration::Occupied,
        Err(libc::EPERM) if in_use => Registration::Occupied,
        Err(errno) => Registration::Refused(errno),
    }
}

/// Registers the calling thread, if threads are registered on demand and this one is not. Returns
/// `true` if it has an area now. Calls the kernel once per thread: a refusal is final.
pub(crate) fn register_thread() -> bool {
    match registration() {
        Registration::Percid => register_own().is_ok(),
        Registration::Shared => thread::shared_offset().is_some_and(|offset| {
            cpu_id(offset).is_some()
                || once(|| register_shared(offset, feature_size()).map(drop)).is_ok()
        }),
        _ => false,
    }
}

/// Registers the calling thread's own area unless that has been done or refused before.
///
/// # Errors
///
/// The `errno`; the same one again without a system call if the thread was refused before.
fn register_own() -> Result<(), i32> {
    if cpu_id(thread::own_offset()).is_some() {
        return Ok(());
    }
    once(|| register_own_as(own_size(feature_size(), alignment())))
}

fn register_own_as(preferred: u32) -> Result<(), i32> {
    if !thread_end::announce() {
        return Err(libc::ENOMEM);
    }
    let area = thread::own().cast();
    let result = match rseq(area, preferred, 0) {
        // The announced size is the one at the start of the program: a process that was moved to
        // another machine may run on a kernel that requires more.
        Err(libc::EINVAL) if preferred != ORIGINAL_SIZE => {
            rseq(area, ORIGINAL_SIZE, 0).map(|()| ORIGINAL_SIZE)
        }
        other => other.map(|()| preferred),
    };
    match result {
        // SAFETY: the block belongs to this thread.
        Ok(size) => unsafe { (*thread::own()).registered = size },
        // A handler that ran between the check and the call has registered the same area.
        Err(_) if cpu_id(thread::own_offset()).is_some() => {}
        Err(errno) => return Err(errno),
    }
    Ok(())
}

/// Returns the number of bytes of percid's own area to register, for a kernel that announces `size`
/// and `alignment`: as many, or those of the original interface if there is no room for them.
fn own_size(size: u32, alignment: u32) -> u32 {
    if size <= MAX_OWN_SIZE && alignment <= MAX_OWN_SIZE {
        size.max(ORIGINAL_SIZE)
    } else {
        ORIGINAL_SIZE
    }
}

/// Registers the calling thread's shared area, with 32 bytes, unless that has been done. Returns
/// the number of registered bytes: another library may have registered as many as the kernel
/// announces.
///
/// # Errors
///
/// The `errno`: `EINVAL` if another area is registered, `EPERM` also if the signature differs.
fn register_shared(offset: isize, announced: u32) -> Result<u32, i32> {
    let area = thread::at(offset).cast();
    match rseq(area, ORIGINAL_SIZE, 0) {
        Ok(()) | Err(libc::EBUSY) => return Ok(ORIGINAL_SIZE),
        // The thread has a registration, so the next call only queries it: it never registers more
        // than 32 bytes of an area whose size is not known.
        Err(libc::EINVAL) if announced > ORIGINAL_SIZE => {}
        Err(errno) => return Err(errno),
    }
    match rseq(area, announced, 0) {
        Err(libc::EBUSY) => Ok(announced),
        Err(errno) => Err(errno),
        Ok(()) => Err(libc::EINVAL),
    }
}

/// Calls `register` unless it has failed in this thread before.
fn once(register: impl FnOnce() -> Result<(), i32>) -> Result<(), i32> {
    // SAFETY: the block belongs to this thread; a signal handler that interrupts it here does the
    // same idempotent work.
    let refused = unsafe { &raw mut (*thread::own()).refused };
    // SAFETY: the pointer is to this thread's block.
    match unsafe { *refused } {
        // SAFETY: the pointer is to this thread's block.
        0 => register().inspect_err(|&errno| unsafe { *refused = errno as u32 }),
        errno => Err(errno as i32),
    }
}

/// Unregisters the calling thread's own area. It is not registered again.
#[cfg(any(not(target_env = "gnu"), all(test, not(percid_portable))))]
fn unregister_own() {
    let block = thread::own();
    // A handler that ran between the two steps would run sections without protection.
    let _signals = super::signals::block_all();
    // SAFETY: the block belongs to this thread, and no handler interrupts it.
    unsafe {
        (*block).refused = libc::ESRCH as u32;
        let size = std::mem::take(&mut (*block).registered);
        if size != 0 && rseq(block.cast(), size, UNREGISTER).is_ok() {
            // The kernel leaves a 0 there, which is a valid ID, and code that runs later in the
            // thread's end may still count. The kernel no longer owns the area, so percid may write
            // to it.
            (&raw mut (*block).area.mm_cid).write_volatile(u32::MAX);
        }
    }
}

/// Unregisters any area of the calling thread: the negative control of the kernel source.
// #[gamma::skip(reason = "of the suites in verify/: it is not built with the crate's own tests")]
#[cfg(feature = "testing")]
pub(crate) fn unregister_by_hand() -> bool {
    let registration = registration();
    let area = thread::at(area_offset(registration)).cast();
    rseq(area, registered_size(registration), UNREGISTER).is_ok()
}

/// Returns the calling thread's area and the size of its registration, for the proofs.
// #[gamma::skip(reason = "of the suites in verify/: it is not built with the crate's own tests")]
#[cfg(feature = "testing")]
pub(crate) fn area() -> Option<(*mut u8, usize)> {
    let registration = registration();
    register_thread();
    let (offset, size) = (area_offset(registration), registered_size(registration) as usize);
    (size != 0 && cpu_id(offset).is_some()).then(|| (thread::at(offset), size))
}

/// The flag of the system call that unregisters an area.
#[cfg(any(not(target_env = "gnu"), feature = "testing", all(test, not(percid_portable))))]
const UNREGISTER: i32 = 1;

/// Makes the system call, for an area in the calling thread's static thread-local storage. That
/// exists as long as the thread or until the area is unregistered. The kernel checks the alignment.
fn rseq(area: *mut Area, size: u32, flags: i32) -> Result<(), i32> {
    #[cfg(test)]
    if let Some(answer) = steps::at(Step::Rseq(area.addr(), size, flags)) {
        return answer;
    }
    // SAFETY: the kernel writes to that many bytes of the area, which exists for that purpose.
    let result = unsafe { libc::syscall(libc::SYS_rseq, area, size, flags, SIGNATURE) };
    if result == 0 { Ok(()) } else { Err(crate::sys::errno()) }
}

/// With glibc the area exists beyond the thread's last instruction: its stack is not freed before
/// the kernel has reported the thread's end.
#[cfg(target_env = "gnu")]
mod thread_end {
    /// Returns `true`: nothing has to be done.
    pub(super) fn announce() -> bool {
        true
    }
}

/// With other C libraries (musl) a detached thread unmaps its own stack, and the area in it, before
/// it ends. If it were preempted in between, the kernel would write to an unmapped area, and kill
/// the process. So the area is unregistered when the thread's keys are destroyed.
#[cfg(not(target_env = "gnu"))]
mod thread_end {
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    /// One more than the key; 0 before it is created.
    static KEY: AtomicU32 = AtomicU32::new(0);

    /// Makes sure that the area is unregistered at the end of the calling thread.
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
                // SAFETY: no other thread uses this key.
                unsafe { libc::pthread_key_delete(made) };
                Some(first - 1)
            }
        }
    }

    extern "C" fn at_end(_: *mut c_void) {
        super::unregister_own();
    }
}

/// Returns the CPU that runs the calling thread, according to the area at `offset`; `None` if that
/// area is not registered. It may be out of date when the caller uses it.
#[inline]
pub(crate) fn cpu_id(offset: isize) -> Option<u32> {
    let area = thread::at(offset).cast::<Area>();
    // SAFETY: all callers in this crate pass the offset of an rseq area of this thread. The read is
    // volatile because the kernel changes the field.
    u32::try_from(unsafe { (&raw const (*area).cpu_id).read_volatile() }).ok()
}

/// Returns the kernel's concurrency ID of the calling thread. It is meaningful only if the area is
/// registered and [`has_mm_cid`] is `true`. It may be out of date when the caller uses it.
#[inline]
pub(crate) fn mm_cid(offset: isize) -> u32 {
    let area = thread::at(offset).cast::<Area>();
    // SAFETY: all callers in this crate pass the offset of an rseq area of this thread, and every
    // area has had 28 bytes since the first version.
    unsafe { (&raw const (*area).mm_cid).read_volatile() }
}

/// Returns CPU, node and concurrency ID of the calling thread, which it registers if it must; `None`
/// if it has no area. The last two have existed since Linux 6.3, and areas that are shared with
/// another library show a concurrency ID of 0 in threads that are not registered.
pub(crate) fn numbers() -> Option<(u32, Option<u32>, Option<u32>)> {
    let registration = registration();
    if !registration.succeeded() {
        return None;
    }
    let offset = area_offset(registration);
    let cpu = cpu_id(offset).or_else(|| register_thread().then(|| cpu_id(offset))?)?;
    if registration == Registration::Shared || !has_mm_cid(registration) {
        return Some((cpu, None, None));
    }
    let area = thread::at(offset).cast::<Area>();
    // SAFETY: the area of this thread, of which the kernel fills this field. The read is volatile
    // because the kernel changes it.
    let node = unsafe { (&raw const (*area).node_id).read_volatile() };
    Some((cpu, Some(node), Some(mm_cid(offset))))
}

/// Returns the number of bytes of the area that the kernel fills: 0 or 20 on kernels that only know
/// the original fields, 28 with `node_id` and `mm_cid`.
pub(crate) fn feature_size() -> u32 {
    process::auxiliary(AT_RSEQ_FEATURE_SIZE) as u32
}

/// Returns the alignment that the kernel requires of larger areas; 0 on kernels that do not report
/// it.
pub(crate) fn alignment() -> u32 {
    process::auxiliary(AT_RSEQ_ALIGN) as u32
}

/// Returns the number of bytes registered for the calling thread; 0 if none.
///
/// Before version 2.41 glibc reports 32 or 20 and registers 32 bytes in both cases. Since then it
/// reports the number that the kernel fills, and registers as many, but at least 32.
pub(crate) fn registered_size(registration: Registration) -> u32 {
    match registration {
        Registration::Libc => libc_size().max(ORIGINAL_SIZE),
        // SAFETY: the block belongs to this thread.
        Registration::Percid => unsafe { (*thread::own()).registered },
        Registration::Shared => {
            let size = |offset| register_shared(offset, feature_size()).ok();
            thread::shared_offset().and_then(size).unwrap_or(0)
        }
        Registration::Occupied | Registration::Refused(_) | Registration::Unsupported => 0,
    }
}

/// Returns the size of the C library's areas as it reports it, in bytes; 0 if it registers none.
fn libc_size() -> u32 {
    thread::libc_rseq().map_or(0, |libc| libc.size)
}

/// Returns the number of bytes of a registered area that the kernel fills, up to the 32 of the
/// original interface, which every library registers.
pub(crate) fn usable_size(registration: Registration) -> u32 {
    if registration.succeeded() { usable(feature_size()) } else { 0 }
}

/// Returns the same for a kernel that announces `size` bytes.
fn usable(size: u32) -> u32 {
    size.clamp(20, ORIGINAL_SIZE)
}

/// Returns `true` if the kernel keeps a concurrency ID in the registered area.
pub(crate) fn has_mm_cid(registration: Registration) -> bool {
    holds_mm_cid(usable_size(registration))
}

fn holds_mm_cid(usable: u32) -> bool {
    usable as usize >= std::mem::offset_of!(Area, mm_cid) + size_of::<u32>()
}

impl RseqMode {
    /// Returns the mode of an area of which `registered` bytes are registered, with a kernel that
    /// announces `size` bytes; `None` if none are.
    pub(crate) fn of(registered: u32, size: u32) -> Option<RseqMode> {
        match registered {
            0 => None,
            larger if larger > ORIGINAL_SIZE => Some(RseqMode::Fast),
            _ if size > ORIGINAL_SIZE => Some(RseqMode::Compatible),
            _ => Some(RseqMode::Single),
        }
    }
}

#[cfg(all(test, not(percid_portable)))]
#[path = "rseq_tests.rs"]
mod tests;
