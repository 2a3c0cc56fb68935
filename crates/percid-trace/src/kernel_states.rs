//! Numbers by which kernels report why a thread stopped running.
//!
//! They have changed: 64 is a thread that has died up to Linux 4.13, and one that is parked since
//! then. So a number is read by the table in the kernel's description of `sched_switch`, or by the
//! kernel's release. If a file has neither, only those numbers count that mean the same in all
//! kernels, or that no other kernels have.
#![cfg_attr(
    not(feature = "files"),
    allow(dead_code, reason = "this kernel's are always described")
)]

use crate::event::State;

/// The kernel's letters, from the lowest bit on, and the bit of a thread that was preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KernelStates {
    letters: [u8; 16],
    preempted: u32,
}

/// Marks the number of a kernel whose table is not known yet.
const RAW: u32 = 1 << 31;

/// The table since Linux 4.14.
const TODAYS: KernelStates = KernelStates::new(b"SDTtXZPI", 0x100);

/// Older tables, with the first release of each; the last one is of what is older still.
const OLDER: [((u32, u32), KernelStates); 4] = [
    ((4, 8), KernelStates::new(b"SDTtXZxKWPNn", 0x1000)),
    ((4, 2), KernelStates::new(b"SDTtXZxKWPN", 0x800)),
    ((3, 9), KernelStates::new(b"SDTtXZxKWP", 0x400)),
    ((0, 0), KernelStates::new(b"SDTtZXxKW", 0x200)),
];

impl KernelStates {
    const fn new<const N: usize>(some: &[u8; N], preempted: u32) -> KernelStates {
        let mut letters = [0; 16];
        let mut bit = 0;
        while bit < N {
            letters[bit] = some[bit];
            bit += 1;
        }
        KernelStates { letters, preempted }
    }

    /// The table of a release such as `4.9.186-perf`; `None` if that is no release.
    pub(crate) fn of_release(release: &str) -> Option<KernelStates> {
        let mut numbers = release.split(|digit: char| !digit.is_ascii_digit());
        let mut number = || numbers.next()?.parse().ok();
        let release: (u32, u32) = (number()?, number()?);
        if release >= (4, 14) {
            return Some(TODAYS);
        }
        OLDER.iter().find(|(first, _)| release >= *first).map(|(_, table)| *table)
    }

    /// The table in the description of `sched_switch`:
    /// `REC->prev_state & MASK ? __print_flags(…, "|", { 1, "S" }, …) : "R", REC->prev_state & 1024 ? "+" : ""`
    pub(crate) fn of_description(description: &str) -> Option<KernelStates> {
        let (_, list) = description.split_once("__print_flags(REC->prev_state")?;
        let (_, list) = list.split_once("\"|\"")?;
        let mut table = KernelStates { letters: [0; 16], preempted: 0 };
        let (list, behind) = list.split_once(": \"R\"")?;
        for pair in list.split('{').skip(1) {
            let (number, letter) = pair.split_once('}')?.0.split_once(',')?;
            let number = integer(number.trim()).filter(|number| number.is_power_of_two())?;
            let letter = letter.trim().trim_matches('"').as_bytes();
            *table.letters.get_mut(number.trailing_zeros() as usize)? = *letter.first()?;
        }
        let highest = table.letters.iter().rposition(|&letter| letter != 0)?;
        let mask = behind.split_once('&').and_then(|(_, mask)| mask.split_once('?'));
        // Kernels since 4.14 write this bit as an expression: it is the one above those with
        // letters.
        let preempted = mask.and_then(|(mask, _)| integer(mask.trim())).unwrap_or(2 << highest);
        table.preempted = preempted;
        Some(table)
    }

    /// The state that this kernel writes as this number.
    pub(crate) fn state(&self, number: u64) -> State {
        let bits = (0..self.letters.len()).filter(|bit| number >> bit & 1 != 0);
        let letters = bits.map(|bit| self.letters[bit]).filter(|&letter| letter != 0);
        let state = of_letters(letters).unwrap_or(State::RUNNABLE);
        match number & u64::from(self.preempted) {
            0 => state,
            _ => State(state.0 | State::PREEMPTED.0),
        }
    }
}

/// A number in decimal or hexadecimal digits.
fn integer(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns the state with these letters, which mean the same in all kernels; `None` if there are
/// none.
///
/// `K` (a signal that kills it wakes it), `W` (it is being woken), `N` (it is no load) and `n` (it
/// is new) describe a waiting thread further; alone they mean that it waits. `x` is a thread that
/// has died.
pub(crate) fn of_letters(letters: impl Iterator<Item = u8>) -> Option<State> {
    let (mut bits, mut any, mut is_no_load) = (0, false, false);
    for letter in letters {
        any = true;
        is_no_load |= letter == b'N';
        bits |= match letter {
            b'S' => 1,
            b'D' => 2,
            b'T' => 4,
            b't' => 8,
            b'X' | b'x' => 0x10,
            b'Z' => 0x20,
            b'P' => 0x40,
            b'I' => 0x80,
            _ => 0,
        };
    }
    match bits {
        0 if !any => None,
        // The letter of an idle thread of the kernel since Linux 4.14.
        0 | 2 if is_no_load => Some(State(0x80)),
        0 => Some(State(2)),
        bits => Some(State(bits)),
    }
}

/// The number of a kernel that is not known yet, as a state until [`Settling::settle`] reads it.
pub(crate) fn raw(number: u64) -> State {
    // Numbers have 16 bits. A negative or larger number is reduced to them.
    State(RAW | (number & 0xffff) as u32)
}

/// Reads the numbers of a kernel that is not known before the end of its file.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// All bits that were seen, those that stood alone in a number, and whether others did not.
    seen: u32,
    alone: u32,
    combined: bool,
    any: bool,
}

/// Bits that occur alone only since Linux 4.14: before, a thread that ended had 64, and 128
/// occurred beside 2.
const ONLY_TODAY: u32 = 0x1b0;

/// Bits that mean the same in all kernels: how a thread waits, or that it is dead.
const EVERYWHERE: u32 = 0x3f;

impl Settling {
    /// Takes the next state.
    pub(crate) fn see(&mut self, state: State) {
        if state.0 & RAW != 0 {
            let number = state.0 & !RAW;
            self.any = true;
            self.seen |= number;
            match number.count_ones() {
                0 | 1 => self.alone |= number,
                _ => self.combined |= number & !EVERYWHERE != 0,
            }
        }
    }

    /// The table of this release, or the one that the numbers themselves show: since Linux 4.14 a
    /// number has one bit, at most the one of a preempted thread, which older kernels have far
    /// above.
    pub(crate) fn table(&self, release: Option<&str>) -> Option<KernelStates> {
        let told = release.and_then(KernelStates::of_release);
        let is_preempted = |table: &KernelStates| self.alone & table.preempted != 0;
        // Parked threads have the number that preempted ones had before Linux 3.9, and are rare.
        let older = || OLDER.iter().map(|(_, table)| *table).find(is_preempted);
        told.or_else(|| match () {
            () if self.seen & 0xfe00 != 0 || self.combined => older().or(Some(OLDER[0].1)),
            () if self.alone & ONLY_TODAY != 0 => Some(TODAYS),
            () => None,
        })
    }

    /// Returns `true` if there was any.
    pub(crate) fn has_seen(&self) -> bool {
        self.any
    }

    /// Returns `true` if a number was seen that this table is needed for.
    pub(crate) fn is_needed(&self) -> bool {
        self.seen & !EVERYWHERE != 0
    }

    /// Returns the state for a number that was marked by [`raw`]. Without a table, a thread sleeps
    /// if its number means different things in different kernels.
    pub(crate) fn settle(state: State, table: Option<&KernelStates>) -> State {
        let number = state.0 & !RAW;
        match (state.0 & RAW, table) {
            (0, _) => state,
            (_, Some(table)) => table.state(number.into()),
            (_, None) if number & !EVERYWHERE != 0 => State(number & EVERYWHERE | 1),
            (_, None) => State(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "print fmt: \"%s%s\", (REC->prev_state & ((((0x0000 | 0x0040) + 1) << 1) - 1)) ? \
        __print_flags(REC->prev_state & ((((0x0000 | 0x0040) + 1) << 1) - 1), \"|\", \
        { 0x00000001, \"S\" }, { 0x00000002, \"D\" }, { 0x00000004, \"T\" }, { 0x00000008, \"t\" }, \
        { 0x00000010, \"X\" }, { 0x00000020, \"Z\" }, { 0x00000040, \"P\" }, { 0x00000080, \"I\" }) : \
        \"R\", REC->prev_state & (((0x0000 | 0x0040) + 1) << 1) ? \"+\" : \"\"";
    const OLD: &str = "print fmt: \"%s%s\", REC->prev_state & (2048-1) ? \
        __print_flags(REC->prev_state & (2048-1), \"|\", { 1, \"S\"} , { 2, \"D\" }, { 4, \"T\" }, \
        { 8, \"t\" }, { 16, \"Z\" }, { 32, \"X\" }, { 64, \"x\" }, { 128, \"K\"}, { 256, \"W\" }, \
        { 512, \"P\" }, { 1024, \"N\" }) : \"R\", REC->prev_state & 2048 ? \"+\" : \"\"";

    #[test]
    fn a_number_is_read_by_the_kernels_own_table() {
        let new = KernelStates::of_description(NEW).expect("a table");
        let old = KernelStates::of_description(OLD).expect("a table");
        let told = |table: KernelStates, numbers: &[u64]| -> Vec<String> {
            numbers.iter().map(|&number| table.state(number).to_string()).collect()
        };
        let numbers = [0, 1, 2, 0x10, 0x40, 0x80, 0x100];
        assert_eq!(told(new, &numbers), ["R", "S", "D", "X", "P", "I", "R+"]);
        let numbers = [0, 1, 16, 32, 64, 130, 512, 1026, 2048];
        assert_eq!(told(old, &numbers), ["R", "S", "Z", "X", "X", "D", "P", "I", "R+"]);
        for broken in ["", "print fmt: \"%d\", REC->prev_state", &OLD.replace("16,", "17,")] {
            assert_eq!(KernelStates::of_description(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_number_is_read_by_the_kernels_release() {
        let told = |release: &str, number| {
            KernelStates::of_release(release).map(|table| table.state(number).to_string())
        };
        for (release, parked, preempted) in [
            ("6.18.44", 0x40, 0x100),
            ("4.14.117-perf", 0x40, 0x100),
            ("4.9.186", 0x200, 0x1000),
            ("4.4.302", 0x200, 0x800),
            ("3.14.0", 0x200, 0x400),
        ] {
            assert_eq!(told(release, parked).as_deref(), Some("P"), "{release}");
            assert_eq!(told(release, preempted).as_deref(), Some("R+"), "{release}");
        }
        assert_eq!(told("3.2.0-4-amd64", 0x200).as_deref(), Some("R+"));
        assert_eq!((told("4.9", 64).as_deref(), told("unknown", 64)), (Some("X"), None));
    }

    fn settled(numbers: &[u64], release: Option<&str>) -> (Vec<String>, bool) {
        let mut settling = Settling::default();
        numbers.iter().for_each(|&number| settling.see(raw(number)));
        let table = settling.table(release);
        let settle = |&number: &u64| Settling::settle(raw(number), table.as_ref()).to_string();
        (numbers.iter().map(settle).collect(), settling.is_needed() && table.is_none())
    }

    #[test]
    fn numbers_show_their_kernel_or_are_not_known() {
        let known =
            |states: &[&str]| (states.iter().map(|&state| state.to_owned()).collect(), false);
        assert_eq!(settled(&[0, 1, 16, 32], None), known(&["R", "S", "X", "Z"]));
        assert_eq!(settled(&[64, 256], None), known(&["P", "R+"]), "today's");
        assert_eq!(settled(&[64, 16, 128], None), known(&["P", "X", "I"]), "today's");
        assert_eq!(settled(&[64, 2048], None), known(&["X", "R+"]), "of 4.2");
        assert_eq!(settled(&[64, 1024], None), known(&["X", "R+"]), "of 3.9");
        assert_eq!(settled(&[64, 1026, 2048], None), known(&["X", "I", "R+"]), "of 4.2");
        assert_eq!(settled(&[64, 1026], None), known(&["X", "I"]), "none was preempted");
        assert_eq!(settled(&[64, 130], None), known(&["X", "D"]), "no new kernel combines bits");
        assert_eq!(settled(&[64], Some("3.10.0")), known(&["X"]));
        let (states, unknown) = settled(&[64, 2], None);
        assert_eq!((states, unknown), (vec!["S".to_owned(), "D".to_owned()], true));
    }
}
