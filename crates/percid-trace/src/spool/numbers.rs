//! Numbers of 64 bits in as few bytes as they need: seven bits each, the least ones first.

/// Appends a number.
#[inline]
pub(super) fn put(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Takes a number from the beginning; `None` if there is none.
#[inline]
pub(super) fn take(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(byte & 0x7f);
        // The last byte has room for one bit.
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// A difference as a number that is small if the difference is, whatever its sign.
#[inline]
pub(super) fn unsigned(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63) as u64
}

/// The difference.
#[inline]
pub(super) fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_what_is_cut_off_does_not() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 1 << 35, u64::MAX >> 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(take(&mut &bytes[..]), Some(number));
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None, "{number}");
            assert_eq!(unsigned(signed(number)), number);
        }
        assert_eq!(take(&mut &[0xff; 10][..]), None, "more than 64 bits");
        assert_eq!([0, -1, 1, -2].map(unsigned), [0, 1, 2, 3]);
    }
}
