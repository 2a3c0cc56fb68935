//! The layout of a ring in memory, as its sections use it.

/// A word of a ring. `verify/loom` has its own.
pub(crate) type Word = crate::sys::atomic::AtomicU64;

/// Offset of the position of the next record: a number of bytes that only grows.
pub(crate) const HEAD: usize = 0;
/// Offset of the position of the oldest record, on another cache line: with
/// [`DropNewest`](crate::Overflow::DropNewest) the consumer writes it, otherwise the writers.
pub(crate) const TAIL: usize = 64;
/// Offset of the records: position modulo capacity. In front are a line for the writers, one for
/// the tail and one for the consumer.
pub(crate) const DATA: usize = 192;

/// Number of lower bits in a header that hold the record's length in bytes.
pub(crate) const LENGTH_BITS: u32 = 16;

/// One in the number of a header: the bits above hold the record's number among all records of this
/// ID. The header of the next record has its number already. Its length is meaningless, since a
/// section that was aborted may have left it there.
pub(crate) const ONE: u64 = 1 << LENGTH_BITS;

/// The bits of a header that hold the number.
pub(crate) const NUMBERS: i64 = -(ONE as i64);

/// A record to be appended.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Append {
    /// The record's bytes.
    pub(crate) bytes: *const u8,
    /// The end of the whole words among them.
    pub(crate) end: *const u8,
    /// The bytes after those, as a word; any value if there are none.
    pub(crate) rest: u64,
    /// The length in bytes, below 2^16.
    pub(crate) length: u64,
    /// The bytes that the record takes: with its header, in whole words.
    pub(crate) size: u64,
    /// The bytes that must be free: those of the record and of the next header.
    pub(crate) needed: u64,
    /// The size of the ring in bytes, a power of two.
    pub(crate) capacity: u64,
    /// The capacity less one.
    pub(crate) mask: u64,
}

impl Append {
    /// Creates a record for a ring of `capacity` bytes; `None` if it is longer than
    /// [`max_record_len`].
    ///
    /// Inline: otherwise the fields would be stored to memory in pieces of a different size than
    /// they are loaded in.
    #[inline(always)]
    pub(crate) fn new(record: &[u8], capacity: u64) -> Option<Append> {
        let length = record.len() as u64;
        if length > max_record_len(capacity) {
            return None;
        }
        let size = size_of_record(length);
        Some(Append {
            bytes: record.as_ptr(),
            end: record.as_ptr().wrapping_add(record.len() & !7),
            rest: rest(record),
            length,
            size,
            needed: size + 8,
            capacity,
            mask: capacity - 1,
        })
    }
}

/// Returns the bytes that a record of this length takes.
#[inline(always)]
pub(crate) const fn size_of_record(length: u64) -> u64 {
    (length + 15) & !7
}

/// Returns the maximum length of a record in bytes: its length fits a header, and four records fit
/// the ring.
pub(crate) const fn max_record_len(capacity: u64) -> u64 {
    let quarter = capacity / 4 - 16;
    if quarter < ONE { quarter } else { ONE - 1 }
}

/// Returns the bytes behind the whole words of a record, as a word; any value if there are none. It
/// avoids a copy of variable length, which would be a call.
#[inline(always)]
fn rest(record: &[u8]) -> u64 {
    let word = match record.len() {
        8.. => {
            let last = u64::from_le_bytes(last_bytes(record));
            last >> ((64 - 8 * (record.len() % 8)) % 64)
        }
        length @ 4.. => {
            let first = u64::from(u32::from_le_bytes(first_bytes(record)));
            let last = u64::from(u32::from_le_bytes(last_bytes(record)));
            first | last << (8 * (length - 4))
        }
        length @ 1.. => {
            let byte = |index: usize| u64::from(record[index]) << (8 * index);
            byte(0) | byte(length / 2) | byte(length - 1)
        }
        0 => 0,
    };
    word.to_le()
}

#[inline(always)]
fn first_bytes<const N: usize>(record: &[u8]) -> [u8; N] {
    record.first_chunk().copied().unwrap_or([0; N])
}

#[inline(always)]
fn last_bytes<const N: usize>(record: &[u8]) -> [u8; N] {
    record.last_chunk().copied().unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_record_fits_four_times_and_into_a_header() {
        let longest = [1 << 7, 1 << 18, 1 << 19, 1 << 23].map(max_record_len);
        assert_eq!(longest, [16, (1 << 16) - 16, (1 << 16) - 1, (1 << 16) - 1]);
    }

    #[test]
    fn the_rest_of_every_length() {
        let bytes: Vec<u8> = (1..=40).collect();
        for length in 0..=40 {
            let record = &bytes[..length];
            let (_, rest_of_it) = record.split_at(length & !7);
            let mut expected = [0; 8];
            expected[..rest_of_it.len()].copy_from_slice(rest_of_it);
            if !rest_of_it.is_empty() {
                assert_eq!(rest(record).to_ne_bytes(), expected, "{length}");
            }
        }
    }
}
