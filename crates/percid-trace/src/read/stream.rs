//! Bytes from what is no file and may never end: a pipe, a device.

use std::io::Read;

use crate::error::Error;

/// Number of bytes that are read before the data must look like a trace. The remarks at the
/// beginning of a text are shorter.
const TRIED: u64 = 1 << 20;

/// The most that is read. Longer recordings are stored before they are looked at.
pub(super) const MAX_READ_BYTES: u64 = 4 << 30;

/// Reads all, if `may_be_trace` finds that of its beginning.
///
/// # Errors
///
/// The system refuses to read, the data does not look like a trace, or it is too long.
pub(super) fn read(from: impl Read, may_be_trace: fn(&[u8]) -> bool) -> Result<Vec<u8>, Error> {
    read_at_most(from, may_be_trace, MAX_READ_BYTES)
}

fn read_at_most(
    mut from: impl Read,
    may_be_trace: fn(&[u8]) -> bool,
    most: u64,
) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    from.by_ref().take(TRIED.min(most)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == TRIED && !may_be_trace(&bytes) {
        let what = "the first MiB is nothing that anybody records, and this is no file";
        return Err(Error::at_byte(0, what));
    }
    let rest = most - bytes.len() as u64;
    // One byte more than the limit, to distinguish the end from the limit.
    from.take(rest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let what =
            format!("there are more than {most} bytes, and this is no file: store them in one");
        return Err(Error::at_byte(most, what));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor};

    use super::*;

    /// Endless, and counts what was taken.
    struct Endless<'a> {
        what: &'a [u8],
        taken: usize,
    }

    impl Read for Endless<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            for byte in &mut *to {
                *byte = self.what[self.taken % self.what.len()];
                self.taken += 1;
            }
            Ok(to.len())
        }
    }

    const LINE: &[u8] = b"a line of a trace\n";

    fn may_be_trace(beginning: &[u8]) -> bool {
        beginning.starts_with(LINE)
    }

    #[test]
    fn what_never_ends_is_refused_early_if_it_is_no_trace() {
        for what in [&b"\0"[..], b"\n", b"any text\n"] {
            let mut endless = Endless { what, taken: 0 };
            assert!(read(&mut endless, may_be_trace).is_err());
            assert!(endless.taken <= 2 << 20, "{} bytes", endless.taken);
        }
    }

    #[test]
    fn what_is_too_long_is_refused_and_the_rest_is_read() {
        let most = 3 << 20;
        let mut endless = Endless { what: LINE, taken: 0 };
        let refused =
            read_at_most(&mut endless, may_be_trace, most).expect_err("too long").to_string();
        assert!(refused.contains("more than 3145728 bytes"), "{refused}");
        assert!(endless.taken as u64 <= 2 * most, "{} bytes", endless.taken);
        let whole = LINE.repeat(100_000);
        assert_eq!(read_at_most(Cursor::new(&whole), may_be_trace, most).ok(), Some(whole));
        assert_eq!(read(Cursor::new(b"short"), may_be_trace).ok(), Some(b"short".to_vec()));
    }
}
