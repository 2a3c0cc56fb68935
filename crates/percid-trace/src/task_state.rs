//! States of threads as the kernel writes them: `S`, `R+`, `D|K`.

use std::fmt;
use std::str::FromStr;

use crate::event::State;

/// The bits that have a letter in every kernel, from the lowest.
const LETTERS: [u8; 8] = *b"SDTtXZPI";

impl fmt::Display for State {
    /// Writes the letters of the bits, joined by `|`, or `R` if there is none, followed by `+` if
    /// the thread was preempted. Bits that mean different things in different kernels are a number:
    /// `S|0x200`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_runnable() {
            f.write_str("R")?;
        }
        let set = (0..LETTERS.len()).filter(|bit| self.0 >> bit & 1 != 0);
        for (nth, bit) in set.enumerate() {
            write!(f, "{}{}", if nth == 0 { "" } else { "|" }, char::from(LETTERS[bit]))?;
        }
        let others = self.0 & !(0xff | State::PREEMPTED.0);
        if others != 0 {
            write!(f, "|{others:#x}")?;
        }
        f.write_str(if self.0 & State::PREEMPTED.0 != 0 { "+" } else { "" })
    }
}

impl FromStr for State {
    type Err = UnknownState;

    /// Reads what `Display` writes.
    fn from_str(text: &str) -> Result<State, UnknownState> {
        let (bits, preempted) = match text.strip_suffix('+') {
            Some(bits) => (bits, State::PREEMPTED.0),
            None => (text, 0),
        };
        let parts = bits.split('|').map(part);
        let bits = parts.reduce(|all, part| Some(all? | part?)).flatten();
        bits.map(|bits| State(bits | preempted)).ok_or(UnknownState)
    }
}

/// The bits of a letter, or of a number after `0x`.
fn part(text: &str) -> Option<u32> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u32::from_str_radix(digits, 16).ok();
    }
    match *text.as_bytes() {
        [b'R'] => Some(0),
        [letter] => LETTERS.iter().position(|&known| known == letter).map(|bit| 1 << bit),
        _ => None,
    }
}

/// A text that is no state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownState;

impl fmt::Display for UnknownState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a state of a thread: expected letters such as S, R+ or D|0x200")
    }
}

impl std::error::Error for UnknownState {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_written_as_the_kernel_writes_them() {
        let written = [
            (0, "R"),
            (0x100, "R+"),
            (1, "S"),
            (2, "D"),
            (0x82, "D|I"),
            (0x101, "S+"),
            (0x200, "R|0x200"),
        ];
        for (bits, text) in written {
            assert_eq!(State(bits).to_string(), text);
        }
    }

    #[test]
    fn every_state_can_be_read_back() {
        let many = (0..0x400).chain((0..32).map(|bit| 1 << bit)).chain([u32::MAX]);
        for state in many.map(State) {
            assert_eq!(state.to_string().parse(), Ok(state));
        }
    }

    #[test]
    fn other_texts_are_no_states() {
        for text in ["", "+", "Q", "S|", "SD", "0x", "0xfffffffff", "é"] {
            assert_eq!(text.parse::<State>(), Err(UnknownState), "{text}");
        }
    }
}
