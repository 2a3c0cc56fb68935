//! Changes to the text of the traced program, and taking them back.

use std::io;

use crate::process::Process;

/// The trap instruction.
pub const TRAP: u8 = 0xcc;

/// A jump to itself.
const SPIN: [u8; 2] = [0xeb, 0xfe];

/// The unit in which the processor fetches text, for what matters here.
const LINE: u64 = 64;

/// A changed place, and the bytes that were there.
#[derive(Debug)]
pub struct Patch {
    start: u64,
    original: Vec<u8>,
}

impl Patch {
    /// Makes the instruction at this address a trap.
    ///
    /// # Errors
    ///
    /// If the memory cannot be written.
    pub fn trap(process: &Process, address: u64) -> io::Result<Patch> {
        let original = process.read::<1>(address)?.to_vec();
        process.write(address, &[TRAP])?;
        Ok(Patch { start: address, original })
    }

    /// Makes the instruction at this address a jump to itself.
    ///
    /// # Errors
    ///
    /// If the memory cannot be written.
    pub fn spin(process: &Process, address: u64) -> io::Result<Patch> {
        // Eight bytes, within one line if possible: then a thread that spins in them sees all of
        // them change back at once.
        let last = if Patch::can_be_removed_under_way(address) { LINE } else { LINE + 1 };
        let start = address.min(address / LINE * LINE + last - 8);
        let original = process.read::<8>(start)?.to_vec();
        process.write(address, &SPIN)?;
        Ok(Patch { start, original })
    }

    /// Returns `true` if a thread that spins here can be released without being stopped.
    fn can_be_removed_under_way(address: u64) -> bool {
        address % LINE <= LINE - SPIN.len() as u64
    }

    /// Restores the original instruction.
    ///
    /// # Errors
    ///
    /// If the memory cannot be written.
    pub fn remove(self, process: &Process) -> io::Result<()> {
        process.write(self.start, &self.original)
    }
}
