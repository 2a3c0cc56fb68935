//! Sets of CPUs, in the form of lists that the kernel uses.

use std::fmt::Write;
use std::fs;

use crate::event::{Cpu, Tid};
use percid_sim::cpu_list::{self, MAX_CPUS, count};

/// The CPUs that are there.
pub(super) fn online() -> Vec<Cpu> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").ok();
    list.and_then(|list| cpu_list::parse(&list)).into_iter().flatten().flatten().collect()
}

/// Returns the number of CPUs that the kernel counts in a class: `possible`, `online`.
pub(super) fn count_of(class: &str) -> Option<u32> {
    count(&fs::read_to_string(format!("/sys/devices/system/cpu/{class}")).ok()?)
}

/// The CPUs that a thread may run on; `None` if it has ended.
pub(super) fn allowed(thread: Tid) -> Option<String> {
    let mut mask = vec![0u8; 128];
    loop {
        // SAFETY: the mask may be written for its whole length. The library's wrapper would do the
        // same.
        let bytes = unsafe {
            libc::syscall(libc::SYS_sched_getaffinity, thread, mask.len(), mask.as_mut_ptr())
        };
        match usize::try_from(bytes) {
            Ok(bytes) => return Some(list(&mask[..bytes.min(mask.len())])),
            // Too short for this kernel, or no such thread.
            Err(_) if mask.len() >= MAX_MASK_BYTES => return None,
            Err(_) => mask.resize(2 * mask.len(), 0),
        }
    }
}

/// Bytes of a mask for many more CPUs than Linux can be built for.
const MAX_MASK_BYTES: usize = MAX_CPUS as usize / 8;

/// The list of the CPUs in a mask of native longs.
fn list(mask: &[u8]) -> String {
    let byte = |cpu: usize| {
        let within = cpu / 8;
        if cfg!(target_endian = "big") { within ^ (size_of::<libc::c_ulong>() - 1) } else { within }
    };
    let is_in = |cpu: &usize| mask.get(byte(*cpu)).is_some_and(|bits| bits >> (cpu % 8) & 1 == 1);
    let mut list = String::new();
    let mut cpus = (0..mask.len() * 8).filter(is_in).peekable();
    while let Some(first) = cpus.next() {
        let mut last = first;
        while cpus.next_if_eq(&(last + 1)).is_some() {
            last += 1;
        }
        let comma = if list.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = if first == last {
            write!(list, "{comma}{first}")
        } else {
            write!(list, "{comma}{first}-{last}")
        };
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn masks_and_lists_name_the_same_cpus() {
        for (mask, text, cpus) in [
            (&[0u8, 0][..], "", None),
            (&[0x0f, 0x01], "0-3,8", Some(5)),
            (&[0x00, 0x80], "15", Some(1)),
            (&[0xff, 0xff], "0-15", Some(16)),
        ] {
            assert_eq!(list(mask), text);
            assert_eq!(count(text), cpus);
        }
        assert_eq!(list(&[0xff; 512]), "0-4095");
    }

    #[test]
    fn this_thread_may_run_somewhere() {
        assert!(allowed(0).is_some_and(|cpus| count(&cpus) > Some(0)));
        assert_eq!(allowed(Tid::MAX - 1), None);
    }
}
