//! Another measured operation: a reported access to memory of a balancer, by two ways, in loops of
//! one form that visit all pages. No page is armed, which is the common case.

use std::ffi::c_void;
use std::ptr;

use percid_capi::numa::balancer::{percid_balancer_create, percid_balancer_destroy};
use percid_capi::numa::region::{self, percid_region_register};
use percid_numa::{Balancer, Region};

/// Size of the memory; a power of two.
const BYTES: usize = 4 << 20;

unsafe extern "C" {
    fn percid_bench_touch(region: *mut c_void, bytes: usize, times: u64);
}

/// A region for Rust and one for C.
pub(crate) struct Touches {
    in_rust: Region,
    in_c: *mut region::Region,
    /// The memory of both regions.
    _memory: Vec<u8>,
}

impl Touches {
    pub(crate) const WAYS: [&'static str; 2] = ["Rust", "C, called"];

    /// Creates the regions on pretended nodes, because with one node a touch has less to do.
    ///
    /// # Errors
    ///
    /// Returns the reason why there are none.
    pub(crate) fn new() -> Result<&'static Touches, String> {
        percid_numa::testing::pretend_nodes(2);
        let memory = vec![1_u8; 2 * BYTES];
        let start = memory.as_ptr().map_addr(|address| address.next_multiple_of(BYTES));
        let in_rust = Balancer::new().register(start, BYTES).map_err(|error| error.to_string())?;
        let (mut balancer, mut in_c) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the places for handles are valid, and a region outlives its balancer.
        let result = unsafe {
            let _ = percid_balancer_create(&mut balancer, ptr::null());
            let result = percid_region_register(&mut in_c, balancer, start.cast(), BYTES);
            percid_balancer_destroy(balancer);
            result
        };
        match result {
            0 => Ok(Box::leak(Box::new(Touches { in_rust, in_c, _memory: memory }))),
            error => Err(format!("the region cannot be registered: {error}")),
        }
    }

    /// Touches this many times, at least once.
    pub(crate) fn repeat(&self, way: usize, times: u64) {
        match way {
            0 => in_rust(&self.in_rust, times),
            // SAFETY: the region is never unregistered, and has `BYTES` bytes.
            _ => unsafe { percid_bench_touch(self.in_c.cast(), BYTES, times) },
        }
    }
}

#[inline(never)]
fn in_rust(region: &Region, mut times: u64) {
    let mut offset = 0;
    // SAFETY: the directive only makes the assembler insert no-operations, so that the loop begins
    // on a cache line. It changes no register, flag or memory.
    unsafe { std::arch::asm!(".p2align 6", options(nomem, nostack, preserves_flags)) };
    loop {
        region.touch(offset);
        offset = (offset + 5 * 4096 + 64) & (BYTES - 1);
        times -= 1;
        if times == 0 {
            break;
        }
    }
}
