//! The rseq area of the kernel: which one is registered, its size, and the fate of a process that
//! writes to the kernel's fields.
//!
//! All of it is tested in children of `fork`, which inherit the registration.

use std::time::Duration;

use percid::machine::{self, Registration, Rseq, RseqMode};
use percid::testing;

use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;

pub(crate) fn run(_: &Options) -> Verdict {
    let rseq = machine::read().rseq;
    let Some((area, size)) = testing::rseq_area() else {
        return Ok(format!("nothing to look at: registration {}", rseq.registration));
    };
    let Some(known) = known_to_the_kernel()? else {
        return Ok("the kernel cannot be asked what is registered (before Linux 5.13)".to_owned());
    };
    let unregistered = child(|| i32::from(!testing::unregister_this_thread()))? == Ended::Exited(0);
    let clobbered = child(|| {
        clobber(area);
        0
    })?;
    let figures = format!(
        "registered={:?} bytes={} announced={} mode={:?} unregistered={unregistered} clobbered={clobbered:?}",
        rseq.registration, known.size, rseq.feature_size, rseq.mode
    );
    let same = known.address == area as u64 && known.size == rseq.registered_size;
    let killed = clobbered == Ended::Killed(libc::SIGSEGV);
    let right = same
        && known.size as usize == size
        && is_right_size(&rseq)
        && known.signature == SIGNATURE
        && unregistered
        && (killed || (rseq.mode != Some(RseqMode::Fast) && clobbered == Ended::Exited(0)));
    if right { Ok(figures) } else { Err(format!("{figures} {rseq:?} {known:?}")) }
}

/// Returns `true` if the registered size is the required one, if percid registers the area.
fn is_right_size(rseq: &Rseq) -> bool {
    let right =
        if rseq.feature_size <= 64 && rseq.align <= 64 { rseq.feature_size.max(32) } else { 32 };
    rseq.registration != Registration::Percid || rseq.registered_size == right
}

/// The signature in the registrations of all libraries.
const SIGNATURE: u32 = match () {
    () if cfg!(target_arch = "aarch64") => 0xd428_bc00,
    () if cfg!(target_arch = "riscv64") => 0xf140_1073,
    () => 0x5305_3053,
};

/// The kernel's information for a tracer: its `ptrace_rseq_configuration`.
#[repr(C)]
#[derive(Debug, Default)]
struct Known {
    address: u64,
    size: u32,
    signature: u32,
    flags: u32,
    padding: u32,
}

const PTRACE_GET_RSEQ_CONFIGURATION: u32 = 0x420f;

/// Returns the kernel's information about this thread's registration (Linux 5.13), read from a
/// child that has inherited it.
fn known_to_the_kernel() -> Result<Option<Known>, String> {
    let child = fork(|| {
        // SAFETY: plain integers.
        unsafe {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::raise(libc::SIGSTOP);
        }
        0
    })?;
    let stopped = wait(child)?;
    let mut known = Known::default();
    // SAFETY: the child is ours and stopped, and `known` has room for this many bytes.
    let told = unsafe {
        let (request, room) = (PTRACE_GET_RSEQ_CONFIGURATION, size_of::<Known>());
        libc::syscall(libc::SYS_ptrace, request, child, room, &raw mut known)
    };
    let error = std::io::Error::last_os_error();
    // SAFETY: the child is ours; it is killed and waited for.
    unsafe { libc::kill(child, libc::SIGKILL) };
    wait(child)?;
    match (stopped, told) {
        (Ended::Stopped, 1..) => Ok(Some(known)),
        (Ended::Stopped, _) if error.raw_os_error() == Some(libc::EIO) => Ok(None),
        other => Err(format!("the kernel does not tell of a child ({other:?}): {error}")),
    }
}

/// Writes another node into the area, and gives the kernel reasons to look at it: changes of CPU.
fn clobber(area: *mut u8) {
    const NODE_ID: usize = 20;
    let field = area.wrapping_add(NODE_ID).cast::<u32>();
    // SAFETY: the field lies in the thread's own area.
    unsafe { field.write_volatile(field.read_volatile() ^ 1) };
    let cpus = pinning::allowed();
    for cpu in cpus.iter().chain(&cpus) {
        pinning::restrict(0, &[*cpu]);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The way in which a child ended, or that it has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Exited(i32),
    Killed(i32),
    Stopped,
}

fn child(body: impl FnOnce() -> i32) -> Result<Ended, String> {
    wait(fork(body)?)
}

/// Starts a child that runs `body` and exits with what it returns. This process has one thread, so
/// a child may do whatever it may.
fn fork(body: impl FnOnce() -> i32) -> Result<libc::pid_t, String> {
    // SAFETY: the child runs `body`, and ends without returning.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error().to_string()),
        0 => {
            let status = body();
            // SAFETY: ends the child.
            unsafe { libc::_exit(status) }
        }
        child => Ok(child),
    }
}

fn wait(child: libc::pid_t) -> Result<Ended, String> {
    let mut status = 0;
    // SAFETY: `status` is a valid place.
    if unsafe { libc::waitpid(child, &mut status, libc::WUNTRACED) } != child {
        return Err(std::io::Error::last_os_error().to_string());
    }
    Ok(match status {
        status if libc::WIFSTOPPED(status) => Ended::Stopped,
        status if libc::WIFSIGNALED(status) => Ended::Killed(libc::WTERMSIG(status)),
        status => Ended::Exited(libc::WEXITSTATUS(status)),
    })
}
