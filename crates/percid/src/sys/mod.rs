//! The system layer: all accesses to the kernel and to the C library.
//!
//! `linux/` contains the layer for 64-bit Linux. `elsewhere/` contains the one for other systems: a
//! file for each, their common parts, and stubs. `--cfg percid_elsewhere` uses that on Linux, for
//! tests. With `--cfg percid_plain` as well, it uses the file for systems that have no file of
//! their own.
//!
//! On Linux everything below this module is async-signal-safe unless a function's documentation
//! excludes it: plain system calls into buffers on the stack, no allocation, no lock. The slow
//! paths of the ID sources may run inside a signal handler, and they call nothing else.

pub(crate) mod atomic;
pub(crate) mod cell;
pub(crate) mod cpuset;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))))]
mod elsewhere;
#[cfg_attr(not(unix), path = "elsewhere/no_errno.rs")]
pub(crate) mod errno;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod linux;
#[cfg(all(unix, not(any(miri, all(percid_elsewhere, percid_plain)))))]
mod pages;
pub(crate) mod race_detector;
pub(crate) mod registration;
mod rseq_area;
#[cfg(test)]
pub(crate) mod steps;
pub(crate) mod thread;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod weak;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))))]
pub(crate) use elsewhere::*;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) use linux::*;

#[cfg(any(
    test,
    all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))
))]
pub(crate) use errno::errno;
pub(crate) use errno::preserving_errno;
#[cfg(test)]
pub(crate) use errno::set_errno;

/// The largest number of CPUs that any Linux kernel supports (`NR_CPUS`, x86-64 with `MAXSMP`).
pub(crate) const MAX_CPUS: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(not(unix), ignore = "errno is kept on Unix")]
    fn errno_is_put_back() {
        set_errno(4242);
        preserving_errno(|| set_errno(11));
        assert_eq!(errno(), 4242);
    }
}
