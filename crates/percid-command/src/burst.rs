//! The burst: the unit of work in which accesses to memory after a pause are measured and
//! simulated.

/// One-byte integers per area: 256 cache lines of 64 bytes.
pub const AREA: usize = 16384;

/// Executes one burst: adds one to every integer of the area. The compiler vectorises it.
#[inline(never)]
pub fn burst(area: &mut [u8; AREA]) {
    for integer in area {
        *integer = integer.wrapping_add(1);
    }
}
