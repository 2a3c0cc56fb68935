//! What a burst is: the unit in which coming back to memory is measured and simulated.

/// One-byte integers per area: 256 cache lines of 64 bytes.
pub const AREA: usize = 16384;

/// One burst: adds one to every integer of the area. The compiler makes vector instructions of it.
#[inline(never)]
pub fn burst(area: &mut [u8; AREA]) {
    for integer in area {
        *integer = integer.wrapping_add(1);
    }
}
