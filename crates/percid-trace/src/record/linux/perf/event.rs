//! The event that is attached, and what it means if that is refused.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_DUMMY, PERF_FLAG_FD_CLOEXEC, PERF_FORMAT_LOST, PERF_SAMPLE_CPU, PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use perf_event_open_sys::{ioctls, perf_event_open};

use crate::event::{Cpu, Tid};

/// The fields at the end of every record.
pub(super) const SAMPLE: u64 = (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU) as u64;

fn attributes() -> perf_event_attr {
    let mut attributes = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        size: size_of::<perf_event_attr>() as u32,
        config: u64::from(PERF_COUNT_SW_DUMMY),
        sample_type: SAMPLE,
        read_format: u64::from(PERF_FORMAT_LOST),
        clockid: libc::CLOCK_MONOTONIC,
        ..perf_event_attr::default()
    };
    attributes.set_disabled(1);
    attributes.set_inherit(1);
    // Without it an ordinary user may not.
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_task(1);
    attributes.set_context_switch(1);
    attributes.set_sample_id_all(1);
    attributes.set_use_clockid(1);
    // The reader is woken when a ring is half full, which is what a mark of zero means.
    attributes.set_watermark(1);
    attributes
}

/// Opens the event, which does not record yet. `None` if there is no such thread, or no such CPU
/// any more.
pub(super) fn open(cpu: Cpu, thread: Option<Tid>) -> Result<Option<OwnedFd>, String> {
    let mut attributes = attributes();
    let mut event = open_with(&mut attributes, cpu, thread);
    if matches!(&event, Err(error) if error.raw_os_error() == Some(libc::EINVAL)) {
        // Kernels before 6.0 do not count losses on request.
        attributes.read_format = 0;
        event = open_with(&mut attributes, cpu, thread);
    }
    let error = match event {
        Ok(event) => return Ok(Some(event)),
        Err(error) => error,
    };
    match error.raw_os_error() {
        Some(libc::ESRCH | libc::ENODEV) => Ok(None),
        code => Err(missing(code.unwrap_or_default(), &error, thread.is_none(), paranoid())),
    }
}

fn open_with(
    attributes: &mut perf_event_attr,
    cpu: Cpu,
    thread: Option<Tid>,
) -> io::Result<OwnedFd> {
    let pid = thread.map_or(-1, |thread| thread as libc::pid_t);
    let flags = u64::from(PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes live as long as the call, and what it returns has no other owner.
    unsafe {
        let fd = perf_event_open(attributes, pid, cpu as i32, -1, flags as _);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Returns the number of an event's records that did not fit; 0 if the kernel does not count them.
pub(super) fn lost(event: RawFd) -> u64 {
    let mut counts = [0u64; 2];
    // SAFETY: the array may be written for its whole length.
    let read = unsafe { libc::read(event, counts.as_mut_ptr().cast(), size_of_val(&counts)) };
    if read == size_of_val(&counts) as isize { counts[1] } else { 0 }
}

pub(super) fn paranoid() -> Option<i32> {
    fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

/// Returns the right or setting that is missing.
pub(super) fn missing(
    code: i32,
    error: &io::Error,
    whole_system: bool,
    paranoid: Option<i32>,
) -> String {
    let most = if whole_system { 0 } else { 2 };
    match (code, paranoid) {
        (_, None) | (libc::ENOSYS, _) => {
            "this kernel has no perf events, or a filter of system calls hides them".to_owned()
        }
        (libc::EACCES | libc::EPERM, Some(found)) if found > most => format!(
            "perf_event_paranoid is {found}, at most {most} is needed \
             (sysctl kernel.perf_event_paranoid={most}) or CAP_PERFMON"
        ),
        (libc::EACCES | libc::EPERM, _) => "perf_event_open is not permitted: the process belongs \
             to somebody else (CAP_PERFMON is needed), or a filter of system calls, as containers \
             have one, forbids it"
            .to_owned(),
        (libc::EMFILE | libc::ENFILE, _) => {
            "too many open files: there is one for each CPU and thread (ulimit -n)".to_owned()
        }
        _ => format!("perf_event_open: {error}"),
    }
}

/// Returns the meaning of an error when a ring is mapped.
pub(super) fn missing_memory(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => "no more memory for rings is permitted (sysctl \
             kernel.perf_event_mlock_kb, ulimit -l) without CAP_IPC_LOCK"
            .to_owned(),
        _ => format!("no memory for a ring: {error}"),
    }
}

/// Makes an event write into the ring of another.
pub(super) fn share(event: &OwnedFd, ring: BorrowedFd<'_>) -> Result<(), String> {
    // SAFETY: both are events.
    told(unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), ring.as_raw_fd() as _) })
}

pub(super) fn enable(event: RawFd) -> Result<(), String> {
    // SAFETY: it is an event.
    told(unsafe { ioctls::ENABLE(event, 0) })
}

pub(super) fn disable(event: RawFd) -> Result<(), String> {
    // SAFETY: it is an event.
    told(unsafe { ioctls::DISABLE(event, 0) })
}

pub(super) fn told(result: i32) -> Result<(), String> {
    if result < 0 { Err(format!("ioctl: {}", io::Error::last_os_error())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(code: i32, whole_system: bool, paranoid: Option<i32>) -> String {
        missing(code, &io::Error::from_raw_os_error(code), whole_system, paranoid)
    }

    #[test]
    fn a_refusal_says_what_is_missing() {
        let own = text(libc::EACCES, false, Some(4));
        assert!(own.contains("is 4, at most 2 is needed") && own.contains("CAP_PERFMON"), "{own}");
        let system = text(libc::EACCES, true, Some(2));
        assert!(system.contains("is 2, at most 0 is needed"), "{system}");
        assert!(text(libc::EPERM, false, Some(2)).contains("somebody else"));
        assert!(text(libc::ENOSYS, false, Some(2)).contains("no perf events"));
        assert!(text(libc::ENOENT, false, None).contains("no perf events"));
        assert!(text(libc::EMFILE, false, Some(2)).contains("ulimit -n"));
    }
}
