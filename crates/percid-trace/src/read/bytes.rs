//! Bytes of a file that are taken one after the other, never beyond their end.

use crate::error::Error;
use crate::formats::ByteOrder;

/// Bytes that were not taken yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    /// Offset in the file at which the rest begins.
    at: u64,
    order: ByteOrder,
}

impl<'a> Bytes<'a> {
    /// The bytes that lie at `at` in a file.
    pub(super) fn new(bytes: &'a [u8], at: u64, order: ByteOrder) -> Bytes<'a> {
        Bytes { rest: bytes, at, order }
    }

    pub(super) fn position(&self) -> u64 {
        self.at
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn order(&self) -> ByteOrder {
        self.order
    }

    /// An error where the rest begins.
    pub(super) fn error(&self, what: impl Into<String>) -> Error {
        Error::at_byte(self.at, what)
    }

    /// Takes the next bytes; `what` names them in the error if there are fewer.
    pub(super) fn take(&mut self, len: u64, what: &str) -> Result<&'a [u8], Error> {
        let split = usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len));
        let Some((taken, rest)) = split else {
            let left = self.rest.len();
            return Err(self.error(format!("{what} needs {len} bytes, and {left} are left")));
        };
        self.rest = rest;
        self.at += len;
        Ok(taken)
    }

    /// The next bytes, as what is taken from in its turn.
    pub(super) fn part(&mut self, len: u64, what: &str) -> Result<Bytes<'a>, Error> {
        let at = self.at;
        Ok(Bytes::new(self.take(len, what)?, at, self.order))
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8, Error> {
        self.array(what).map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self, what: &str) -> Result<u16, Error> {
        self.array(what).map(|bytes| self.order.u16(bytes))
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, Error> {
        self.array(what).map(|bytes| self.order.u32(bytes))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, Error> {
        self.array(what).map(|bytes| self.order.u64(bytes))
    }

    /// The next bytes up to a zero byte, which is taken too.
    pub(super) fn text(&mut self, what: &str) -> Result<&'a [u8], Error> {
        let end = self.rest.iter().position(|&byte| byte == 0);
        let end = end.ok_or_else(|| self.error(format!("{what} has no end")))?;
        let text = self.take(end as u64, what)?;
        self.take(1, what)?;
        Ok(text)
    }
}
