//! Memory that is mapped in place of a region is left alone, even if pages of the region had a
//! pending move. The thread of this test is bound to a CPU.

use std::ptr;
use std::time::Duration;

use percid_numa::{Balancer, Settings};

const PAGE: usize = 4096;
const BYTES: usize = 64 * PAGE;

/// All memory of a machine with one node is on node 0; this CPU pretends to be on another.
const OTHER_CPU: usize = 1;

fn map(start: *mut u8, rights: i32, kind: i32) -> *mut u8 {
    let kind = kind | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: without an address it is new memory, and otherwise it replaces memory of this test
    // only.
    let found = unsafe { libc::mmap(start.cast(), BYTES, rights, kind, -1, 0) };
    assert_ne!(found, libc::MAP_FAILED);
    found.cast()
}

fn bind_to_other_cpu() -> bool {
    // SAFETY: a set of CPUs is plain bits, and is large enough for the one that is put into it.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(OTHER_CPU, &mut cpus);
        libc::sched_setaffinity(0, size_of_val(&cpus), &cpus) == 0
    }
}

#[test]
fn what_replaced_a_region_does_not_move() {
    percid_numa::testing::pretend_nodes(2);
    if !bind_to_other_cpu() {
        return percid_skips::not_checked("what replaces a region", "one CPU");
    }
    for replaced in [false, true] {
        let settings = Settings { scan_delay: Duration::from_nanos(1), ..Settings::default() };
        let balancer = Balancer::builder().settings(settings).build().expect("good settings");
        let start = map(ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE, 0);
        // SAFETY: the mapping is this test's.
        unsafe { start.write_bytes(1, BYTES) };
        let region = balancer.register(start, BYTES).expect("private memory");
        balancer.pass();
        (0..BYTES).step_by(PAGE).for_each(|offset| region.touch(offset));
        let pending = || balancer.report().regions[0].pending;
        if pending() == 0 {
            let why = "the kernel does not say where pages are";
            return percid_skips::not_checked("what replaces a region", why);
        }
        if replaced {
            // SAFETY: the mapping is this test's; the balancer notices, and leaves the rest alone.
            unsafe { libc::munmap(start.cast(), BYTES) };
            balancer.pass();
            assert!(balancer.report().regions[0].gone);
            map(start, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_FIXED);
            // SAFETY: the mapping of this test has `BYTES` bytes, and nothing else uses it.
            unsafe { start.write_bytes(2, BYTES) };
            assert_eq!(pending(), 0);
        }
        let batch = balancer.move_batch();
        let tried = batch.moved + batch.failed > 0;
        assert_eq!((tried, batch.more), (!replaced, false), "{batch:?}");
        drop(region);
        // SAFETY: the mapping is this test's, and nothing uses it any more.
        unsafe { libc::munmap(start.cast(), BYTES) };
    }
}
