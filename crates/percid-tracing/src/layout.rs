//! The bytes of a record: what encoder and decoder agree on. Numbers are little endian.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | checksum of all that follows |
//! | 1 | [`Kind`] |
//! | 1 | 1 if fields were left out, else 0 |
//! | 2 | CPU, or [`NO_CPU`] |
//! | 8 | time in nanoseconds |
//! | 4 | thread |
//! | 4 | callsite |
//! | 8 | span: of an event the one that it is in, 0 if there is none |
//! | 4 | callsite of the span that an event is in, or of the other span |
//! | 8 | the other span, 0 if there is none: only for kinds that [have one](Kind::has_other) |
//!
//! Then come the fields: index in the callsite's list, [`Tag`], value. Texts have their length in
//! front, in 2 bytes.

/// The most bytes of a record.
pub(crate) const RECORD_BYTES: usize = 1024;
/// The most bytes of a text.
pub(crate) const TEXT_BYTES: usize = 512;

/// Bytes of the checksum, which stands in front.
pub(crate) const CHECKSUM: usize = 4;

/// The CPU is not known.
pub(crate) const NO_CPU: u16 = u16::MAX;

/// What a record says.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Event = 1,
    /// A span is new. The other span is its parent.
    New = 2,
    /// A span has got values for some of its fields.
    Set = 3,
    Enter = 4,
    Exit = 5,
    Close = 6,
    /// A span follows from the other one.
    Follows = 7,
}

impl Kind {
    pub(crate) fn from_byte(byte: u8) -> Option<Kind> {
        use Kind::*;
        // #[gamma::skip(collection.reverse_array, reason = "the order does not matter")]
        let all = [Event, New, Set, Enter, Exit, Close, Follows];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Whether the record names a second span.
    pub(crate) fn has_other(self) -> bool {
        matches!(self, Kind::New | Kind::Follows)
    }
}

/// What the bytes of a value are.
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
    /// What `Debug` has written.
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

/// A sum in which every bit counts: each word is multiplied by an odd number, so a bit that is
/// flipped changes the upper half, and each place has a key of its own, so words that change places
/// are noticed. The products do not depend on each other, which is what makes it fast.
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
