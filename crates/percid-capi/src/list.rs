//! Lists for C: the caller passes memory, and receives the number of values.

/// Writes the first `capacity` of some values and returns the number of all values.
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
            // SAFETY: the caller guarantees memory for `capacity` values, and `index` is below
            // that.
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
        // SAFETY: the memory has room for two values.
        let written = unsafe { write([7_u8, 8, 9].into_iter(), memory.as_mut_ptr(), 2) };
        assert_eq!((written, memory), (3, [7, 8, 0, 0]));
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { write([7_u8].into_iter(), std::ptr::null_mut(), 2) }, 1);
    }
}
