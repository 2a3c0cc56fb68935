//! The numbers that the kernel keeps for each thread in its rseq area.

use crate::sys::{preserving_errno, rseq};

/// The numbers of the calling thread, as the kernel keeps them in the thread's rseq area.
///
/// They are hints: the thread may be moved at any time.
///
/// ```
/// match percid::id::kernel_numbers() {
///     Some(numbers) => println!("CPU {}, node {:?}", numbers.cpu, numbers.node),
///     None => println!("no rseq area here"),
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct KernelNumbers {
    /// The CPU that runs the thread (`cpu_id`).
    pub cpu: u32,
    /// The NUMA node of that CPU (`node_id`); `None` before Linux 6.3.
    pub node: Option<u32>,
    /// The concurrency ID (`mm_cid`); `None` before Linux 6.3, and in an area that is shared with
    /// another library. [`Source::Kernel`](crate::Source::Kernel) uses it and says when it cannot be
    /// trusted.
    pub mm_cid: Option<u32>,
}

/// Returns the [numbers](KernelNumbers) of the calling thread; `None` if it has no rseq area.
///
/// Registers the thread if percid does that for this process. Thread-safe, async-signal-safe,
/// preserves `errno`. The cost is a few loads.
///
/// ```
/// let numbers = percid::id::kernel_numbers();
/// assert!(numbers.is_none_or(|numbers| numbers.cpu < 8192));
/// ```
#[must_use]
pub fn kernel_numbers() -> Option<KernelNumbers> {
    let (cpu, node, mm_cid) = preserving_errno(rseq::numbers)?;
    Some(KernelNumbers { cpu, node, mm_cid })
}

#[cfg(all(
    test,
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, percid_elsewhere, percid_portable))
))]
mod tests {
    use super::*;
    use crate::sys::affinity::{self, Affinity};
    use crate::sys::child;
    use crate::sys::registration::Registration;

    #[test]
    fn a_confined_thread_reads_its_cpu() {
        child::run(|| {
            let cpu = affinity::current_cpu();
            Affinity::confine(cpu).expect("it is allowed");
            let Some(numbers) = kernel_numbers() else {
                assert!(!rseq::registration().succeeded());
                return;
            };
            assert_eq!(numbers.cpu, cpu);
            let registration = rseq::registration();
            let has_id = rseq::has_mm_cid(registration) && registration != Registration::Shared;
            assert_eq!((numbers.node.is_some(), numbers.mm_cid.is_some()), (has_id, has_id));
            // The only thread of its process has the smallest ID.
            assert!(numbers.mm_cid.is_none_or(|id| id == 0));
        });
    }
}
