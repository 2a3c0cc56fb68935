//! Packets in fields that are not known: Perfetto may compress them in another way one day.

use std::io::Read;

use flate2::read::{GzDecoder, ZlibDecoder};
use prost::Message;

use super::compressed::zstd_reader;
use super::messages::TracePacket;
use super::packets::{PACKET, Packets};

/// The fields of a packet that are known, by their numbers.
const KNOWN: [u64; 12] = [1, 2, 8, 9, 10, 11, 13, 34, 45, 50, 60, 133];

/// Magic bytes of lz4 frames.
const LZ4: &[u8] = b"\x04\x22\x4d\x18";

/// The number of the first field that is not known and carries packets.
pub(super) fn carrier(packet: &[u8]) -> Option<u64> {
    let mut rest = packet;
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let length = match key & 7 {
            0 => {
                varint(&mut rest)?;
                continue;
            }
            1 => 8,
            2 => varint(&mut rest)?,
            5 => 4,
            _ => return None,
        };
        let (content, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        rest = behind;
        let number = key >> 3;
        if key & 7 == 2 && !KNOWN.contains(&number) && carries_packets(content) {
            return Some(number);
        }
    }
    None
}

fn carries_packets(content: &[u8]) -> bool {
    let begins_with_packet = |mut plain: Box<dyn Read + '_>| {
        let mut first = [0];
        plain.read_exact(&mut first).is_ok() && first[0] == PACKET
    };
    match content {
        [0x78, ..] => begins_with_packet(Box::new(ZlibDecoder::new(content))),
        [0x1f, 0x8b, ..] => begins_with_packet(Box::new(GzDecoder::new(content))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            zstd_reader(content).is_ok_and(|plain| begins_with_packet(Box::new(plain)))
        }
        [PACKET, ..] => are_packets(content),
        _ => content.starts_with(LZ4),
    }
}

/// Returns `true` if these are packets of the scheduler, one after the other: many other messages
/// have the beginning of one.
fn are_packets(content: &[u8]) -> bool {
    let mut packets = Packets::new(content);
    let mut any = false;
    loop {
        match packets.next() {
            Ok(Some((_, packet))) => {
                let Ok(packet) = TracePacket::decode(packet) else { return false };
                let bundle = packet.ftrace_events;
                any |= bundle.is_some_and(|it| !it.event.is_empty() || it.compact_sched.is_some());
            }
            Ok(None) => return any,
            Err(_) => return false,
        }
    }
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
