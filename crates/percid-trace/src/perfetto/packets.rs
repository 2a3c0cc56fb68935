//! A trace as the packets that it consists of.

use std::io::{self, Read};

use bytes::Bytes;

use super::messages::TracePacket;
use crate::error::Error;

/// The largest packet, in bytes. Perfetto's own buffers hand out far smaller ones.
const MAX_PACKET_BYTES: u64 = 16 << 20;

/// Tag before every packet: field 1, followed by its length.
pub(super) const PACKET: u8 = 0x0a;

/// The sequence to which our packets belong: a number that Perfetto, which counts its sequences, is
/// unlikely to reach.
pub(super) const OURS: u32 = u32::from_be_bytes(*b"prcd");

/// A packet with nothing in it yet.
pub(super) fn packet() -> TracePacket {
    TracePacket { trusted_packet_sequence_id: Some(OURS), ..TracePacket::default() }
}

/// Packets, one after the other.
pub(super) struct Packets<R> {
    from: R,
    /// Number of bytes read so far.
    at: u64,
}

impl<R: Read> Packets<R> {
    pub(super) fn new(from: R) -> Packets<R> {
        Packets { from, at: 0 }
    }

    /// Returns the number of bytes read so far.
    pub(super) fn read(&self) -> u64 {
        self.at
    }

    /// The next packet, and where it begins; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Bytes)>, Error> {
        let start = self.at;
        let Some(tag) = self.byte()? else { return Ok(None) };
        if tag != PACKET {
            let what = format!("a packet expected (byte {PACKET:#04x}), {tag:#04x} found");
            return Err(Error::at_byte(start, what));
        }
        let length = self.length()?;
        if length > MAX_PACKET_BYTES {
            let what = format!("a packet of {length} bytes; at most {MAX_PACKET_BYTES} expected");
            return Err(Error::at_byte(start, what));
        }
        let mut packet = Vec::new();
        let read = (&mut self.from).take(length).read_to_end(&mut packet)?;
        self.at += read as u64;
        if (read as u64) < length {
            let what = format!("the file ends in a packet of {length} bytes");
            return Err(Error::at_byte(self.at, what));
        }
        Ok(Some((start, packet.into())))
    }

    fn length(&mut self) -> Result<u64, Error> {
        let mut length = 0;
        for shift in (0..35).step_by(7) {
            let Some(byte) = self.byte()? else {
                return Err(Error::at_byte(self.at, "the file ends in the length of a packet"));
            };
            length |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(length);
            }
        }
        Err(Error::at_byte(self.at, "the length of a packet has too many bytes"))
    }

    fn byte(&mut self) -> Result<Option<u8>, Error> {
        let mut byte = [0];
        loop {
            match self.from.read(&mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.at += 1;
        Ok(Some(byte[0]))
    }
}
