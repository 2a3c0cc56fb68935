//! Lists for C: the caller gives memory, and learns how many values there are.

/// Writes the first `capacity` of some values and returns how many there are.
///
/// # Safety
///
/// `place` is NULL or the caller's memory for `capacity` of them.
pub(crate) unsafe fn write<T>(
    values: impl Iterator<Item = T>,
    place: *mut T,
    capacity: usize,
) -> usize {
    let capacity = if place.is_null() { 0 } else { capacity };
    values.enumerate().fold(0, |_, (index, value)| {
        if index < capacity {
            // SAFETY: by contract.
            unsafe { place.add(index).write(value) };
        }
        index + 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_counted() {
        let mut memory = [0_u8; 4];
        // SAFETY: room for as many.
        let written = unsafe { write([7_u8, 8, 9].into_iter(), memory.as_mut_ptr(), 2) };
        assert_eq!((written, memory), (3, [7, 8, 0, 0]));
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { write([7_u8].into_iter(), std::ptr::null_mut(), 2) }, 1);
    }
}
