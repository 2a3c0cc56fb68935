//! The bytes of a record, for encoder and decoder. Numbers are little endian.
//!
//! | bytes | content |
//! |---|---|
//! | 4 | checksum of all following bytes |
//! | 1 | [`Kind`] |
//! | 1 | 1 if fields were left out, otherwise 0 |
//! | 2 | CPU, or [`NO_CPU`] |
//! | 8 | time in nanoseconds |
//! | 4 | thread |
//! | 4 | callsite |
//! | 8 | span; for an event, the span that it is in, 0 if there is none |
//! | 4 | callsite of the span that an event is in, or of the other span |
//! | 8 | the other span, 0 if there is none: only for kinds that [have one](Kind::has_other) |
//!
//! The fields follow: index in the callsite's list, [`Tag`], value. Texts are preceded by their
//! length, in 2 bytes.

/// Maximum number of bytes of a record.
pub(crate) const RECORD_BYTES: usize = 1024;
/// Maximum number of bytes of a text.
pub(crate) const TEXT_BYTES: usize = 512;

/// Number of bytes of the checksum, which comes first.
pub(crate) const CHECKSUM: usize = 4;

/// Value of an unknown CPU.
pub(crate) const NO_CPU: u16 = u16::MAX;

/// The kind of a record.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Event = 1,
    /// A new span. The other span is its parent.
    New = 2,
    /// New values for some fields of a span.
    Set = 3,
    Enter = 4,
    Exit = 5,
    Close = 6,
    /// A span that follows from the other one.
    Follows = 7,
}

impl Kind {
    pub(crate) fn from_byte(byte: u8) -> Option<Kind> {
        use Kind::*;
        // #[gamma::skip(collection.reverse_array, reason = "the order does not matter")]
        let all = [Event, New, Set, Enter, Exit, Close, Follows];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Returns `true` if the record names a second span.
    pub(crate) fn has_other(self) -> bool {
        matches!(self, Kind::New | Kind::Follows)
    }
}

/// The type of a value.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    I64 = 1,
    U64 = 2,
    F64 = 3,
    I128 = 4,
    U128 = 5,
    False = 6,
    True = 7,
    Str = 8,
    /// The beginning of a string that was too long.
    CutStr = 9,
    /// The output of `Debug`.
    Debug = 10,
    CutDebug = 11,
}

impl Tag {
    pub(crate) fn from_byte(byte: u8) -> Option<Tag> {
        use Tag::*;
        // #[gamma::skip(collection.reverse_array, reason = "the order does not matter")]
        let all = [I64, U64, F64, I128, U128, False, True, Str, CutStr, Debug, CutDebug];
        all.into_iter().find(|tag| *tag as u8 == byte)
    }
}

/// Returns a checksum that depends on every bit. Each word is multiplied by an odd number, so a
/// flipped bit changes the upper half. Each position has its own key, so swapped words are
/// detected. The products do not depend on each other, which makes it fast.
pub(crate) fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    const KEY: u64 = 0xd1b5_4a32_d192_ed03;
    let mut key = KEY;
    // #[gamma::skip(expr, reason = "any factor of this size does")]
    let mut sum = (bytes.len() as u64).wrapping_mul(FACTOR);
    let mut add = |word: u64| {
        sum = sum.wrapping_add((word ^ key).wrapping_mul(FACTOR));
        // #[gamma::skip(literal, expr, reason = "any keys do that differ")]
        key = key.rotate_left(7).wrapping_add(KEY);
    };
    // #[gamma::skip(literal, reason = "any width and padding of words do")]
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        add(u64::from_le_bytes(word));
    }
    // #[gamma::skip(literal.int_increment, reason = "each bit changes this half, too")]
    ((sum >> 32) as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_notices_bits_lengths_and_words_that_change_places() {
        let bytes: Vec<u8> = (0..77).collect();
        let sum = checksum(&bytes);
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(&flipped), sum, "bit {bit}");
        }
        for (one, other) in (0..9).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let mut swapped = bytes.clone();
            (0..8).for_each(|at| swapped.swap(8 * one + at, 8 * other + at));
            assert_ne!(checksum(&swapped), sum, "words {one} and {other}");
        }
        let zeros: std::collections::BTreeSet<_> =
            (0..64).map(|n| checksum(&[0; 64][..n])).collect();
        assert_eq!(zeros.len(), 64, "each length has its own");
    }
}
