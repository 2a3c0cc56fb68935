//! Packets of GDB's remote serial protocol, as far as an emulator's stub needs them.
//!
//! `$` contents `#` checksum: the sum of the contents' bytes, modulo 256, in two hexadecimal
//! digits. In answers, `}` marks that the next byte must be taken xor 0x20, and `*` with a byte *n*
//! repeats the byte before it *n* - 29 times. Each packet is acknowledged by a `+`.

/// Returns a packet with these contents, which must have none of the special characters.
pub fn frame(contents: &str) -> Vec<u8> {
    debug_assert!(!contents.contains(['$', '#', '}', '*']));
    format!("${contents}#{:02x}", checksum(contents.as_bytes())).into_bytes()
}

fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

/// Takes packets out of a stream of bytes.
#[derive(Debug, Default)]
pub struct Parser {
    state: State,
    raw: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between packets; acknowledgements are there.
    #[default]
    Between,
    Contents,
    Checksum(Option<u8>),
}

/// A result of a parser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A packet, whole and right: its contents.
    Packet(Vec<u8>),
    /// A packet whose checksum is wrong, or whose contents make no sense.
    Damaged,
}

impl Parser {
    /// Takes one byte in.
    pub fn take(&mut self, byte: u8) -> Option<Found> {
        match (self.state, byte) {
            (State::Between, b'$') => {
                self.raw.clear();
                self.state = State::Contents;
            }
            (State::Between, _) => {}
            (State::Contents, b'#') => self.state = State::Checksum(None),
            (State::Contents, byte) => self.raw.push(byte),
            (State::Checksum(None), digit) => self.state = State::Checksum(Some(digit)),
            (State::Checksum(Some(first)), second) => {
                self.state = State::Between;
                return Some(self.whole([first, second]));
            }
        }
        None
    }

    fn whole(&self, digits: [u8; 2]) -> Found {
        let expected = std::str::from_utf8(&digits).ok();
        let expected = expected.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if expected != Some(checksum(&self.raw)) {
            return Found::Damaged;
        }
        expand(&self.raw).map_or(Found::Damaged, Found::Packet)
    }
}

/// Undoes escapes and repetitions.
fn expand(raw: &[u8]) -> Option<Vec<u8>> {
    let mut contents: Vec<u8> = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'}' => contents.push(bytes.next()? ^ 0x20),
            b'*' => {
                let last = *contents.last()?;
                let count = bytes.next()?.checked_sub(29)?;
                contents.extend(std::iter::repeat_n(last, count.into()));
            }
            byte => contents.push(byte),
        }
    }
    Some(contents)
}

/// Bytes from hexadecimal digits.
pub fn bytes(digits: &[u8]) -> Option<Vec<u8>> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.is_ascii())?;
    if digits.len() % 2 != 0 {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}

/// Returns hexadecimal digits of bytes.
pub fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(stream: &[u8]) -> Vec<Found> {
        let mut parser = Parser::default();
        stream.iter().filter_map(|byte| parser.take(*byte)).collect()
    }

    fn answer(raw: &[u8]) -> Vec<u8> {
        [b"$", raw, b"#", format!("{:02x}", checksum(raw)).as_bytes()].concat()
    }

    #[test]
    fn packets_are_framed_as_documented() {
        assert_eq!(frame("?"), b"$?#3f");
        assert_eq!(frame("vCont;c"), b"$vCont;c#a8");
    }

    #[test]
    fn packets_are_found_between_acknowledgements() {
        let stream = [b"++".as_slice(), &frame("OK"), b"+-", &frame("T05thread:08;")].concat();
        let expected = [Found::Packet(b"OK".to_vec()), Found::Packet(b"T05thread:08;".to_vec())];
        assert_eq!(all(&stream), expected);
    }

    #[test]
    fn a_packet_may_come_in_pieces_and_be_empty() {
        let mut parser = Parser::default();
        let found: Vec<Found> = frame("").iter().filter_map(|byte| parser.take(*byte)).collect();
        assert_eq!(found, [Found::Packet(Vec::new())]);
    }

    #[test]
    fn escapes_and_repetitions_are_undone() {
        assert_eq!(all(&answer(b"a}\x03b")), [Found::Packet(b"a#b".to_vec())]);
        assert_eq!(all(&answer(b"0* ")), [Found::Packet(b"0000".to_vec())]);
    }

    #[test]
    fn what_is_damaged_is_not_taken_for_an_answer() {
        assert_eq!(all(b"$OK#00"), [Found::Damaged]);
        assert_eq!(all(b"$OK#zz"), [Found::Damaged]);
        for raw in [b"* ".as_slice(), b"a}", b"a*", b"a*\x01"] {
            assert_eq!(all(&answer(raw)), [Found::Damaged], "{raw:?}");
        }
        // And the next one is found.
        assert_eq!(all(b"$OK#00$OK#9a")[1], Found::Packet(b"OK".to_vec()));
    }

    #[test]
    fn digits_are_bytes() {
        assert_eq!(bytes(b"00ff10"), Some(vec![0, 255, 16]));
        assert_eq!(digits(&[0, 255, 16]), "00ff10");
        assert_eq!(bytes(b"0"), None);
        assert_eq!(bytes(b"E1x4"), None);
        assert_eq!(bytes("0ä1".as_bytes()), None);
    }
}
