//! Requirements for the descriptors in an ELF file, whatever tools built it.

use std::collections::BTreeSet;

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};

use crate::image::{DESCRIPTOR_BYTES, Descriptor, Image};
use crate::section::decode;

/// The bytes before every abort address: an undefined instruction whose displacement is the
/// signature, so that execution or disassembly cannot run through it.
pub const SIGNATURE: [u8; 7] = [0x0f, 0xb9, 0x3d, 0x53, 0x30, 0x05, 0x53];

/// Returns all faults of the descriptors of a file. If there are no descriptors, that is a fault,
/// too.
pub fn faults(image: &Image) -> Vec<String> {
    let Some((start, length)) = image.descriptor_range() else {
        return vec!["no section of descriptors".to_owned()];
    };
    let mut faults = Vec::new();
    if length == 0 || length % DESCRIPTOR_BYTES != 0 || start % DESCRIPTOR_BYTES != 0 {
        faults.push(format!("{length} bytes of descriptors at {start:#x}"));
    }
    for descriptor in image.descriptors() {
        let found =
            of_descriptor(image, &descriptor).into_iter().chain(of_code(image, &descriptor));
        faults.extend(found.map(|fault| format!("descriptor {:#x}: {fault}", descriptor.address)));
    }
    faults
}

/// The kinds of sections that percid has: every operation for either source.
pub const KINDS: usize = 2 * 8;

/// Returns the number of kinds of sections in a file: those of one kind have the same instructions,
/// with any registers and displacements.
pub fn kinds(image: &Image) -> usize {
    let mnemonics = |descriptor: Descriptor| -> Vec<Mnemonic> {
        let code = decode(image, descriptor.start, descriptor.length).unwrap_or_default();
        code.iter().map(Instruction::mnemonic).collect()
    };
    image.descriptors().into_iter().map(mnemonics).collect::<BTreeSet<_>>().len()
}

fn of_descriptor(image: &Image, descriptor: &Descriptor) -> Vec<&'static str> {
    let &Descriptor { start, length, abort, .. } = descriptor;
    let signature = abort.checked_sub(SIGNATURE.len() as u64);
    let signature = signature.and_then(|address| image.bytes(address, SIGNATURE.len()));
    let faults = [
        (descriptor.version_and_flags != [0, 0], "version or flags are not zero"),
        (length == 0 || length > 256, "the length is absurd"),
        (!image.is_code(start) || !image.is_code(descriptor.end()), "not in executable memory"),
        (image.bytes(start, length as usize).is_none(), "not in one section"),
        (!image.is_code(abort), "the abort address is not in executable memory"),
        (descriptor.contains(abort), "the abort address lies inside"),
        (signature != Some(&SIGNATURE[..]), "no signature in front of the abort address"),
    ];
    faults.into_iter().filter(|&(wrong, _)| wrong).map(|(_, fault)| fault).collect()
}

/// Checks the instructions: they must be whole, without calls and locks, and the last one must
/// write. Earlier writes go to a place that the section computes, an item's or a record's. Only the
/// last one writes to a word at a fixed place in the copy.
fn of_code(image: &Image, descriptor: &Descriptor) -> Vec<&'static str> {
    let Some(code) = decode(image, descriptor.start, descriptor.length) else { return Vec::new() };
    let Some((commit, before)) = code.split_last() else { return Vec::new() };
    let mut info = InstructionInfoFactory::new();
    let mut writes = |instruction: &Instruction| {
        let reads = [OpAccess::None, OpAccess::NoMemAccess, OpAccess::Read, OpAccess::CondRead];
        info.info(instruction).used_memory().iter().any(|memory| !reads.contains(&memory.access()))
    };
    let mut writes_to_fixed =
        |one: &Instruction| writes(one) && one.memory_index() == Register::None;
    let commits = writes_to_fixed(commit);
    let writes_early = before.iter().any(writes_to_fixed);
    let calls = |one: &Instruction| one.is_call_near() || one.is_call_near_indirect();
    let faults = [
        (code.iter().any(Instruction::is_invalid), "bytes that are no instruction"),
        (commit.next_ip() != descriptor.end(), "the end is not behind an instruction"),
        (!commits, "the last instruction does not write to a fixed word"),
        (writes_early, "an instruction before the last one writes to a fixed word"),
        (code.iter().any(calls), "a call"),
        (code.iter().any(Instruction::has_lock_prefix), "a locked instruction"),
    ];
    faults.into_iter().filter(|&(wrong, _)| wrong).map(|(_, fault)| fault).collect()
}

/// A way to spoil a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// One bit of the signature.
    Signature,
    /// The abort address is that of the section's start.
    AbortInside,
    /// The start lies in front of the code.
    StartOutside,
    /// One byte less than all instructions.
    HalfAnInstruction,
    /// The last instruction, which commits, is outside.
    WithoutCommit,
    /// The instruction behind the commit is inside.
    BeyondCommit,
    /// A flag.
    Flags,
}

impl Damage {
    /// All of them.
    pub const ALL: [Damage; 7] = [
        Damage::Signature,
        Damage::AbortInside,
        Damage::StartOutside,
        Damage::HalfAnInstruction,
        Damage::WithoutCommit,
        Damage::BeyondCommit,
        Damage::Flags,
    ];

    /// Returns a copy of the file with its first descriptor spoiled.
    ///
    /// # Errors
    ///
    /// Returns an error if it has none.
    pub fn inflict(self, image: &Image) -> Result<Image, String> {
        let descriptor = *image.descriptors().first().ok_or("no descriptor to spoil")?;
        let Descriptor { address, start, length, abort, .. } = descriptor;
        let signature = u64::from_le_bytes(word(image.bytes(abort - 4, 8))?);
        let code = decode(image, start, length).unwrap_or_default();
        let commit = code.last().map_or(0, |commit| commit.len() as u64);
        let behind = decode(image, start + length, 16).unwrap_or_default();
        let behind = behind.first().map_or(0, |next| next.len() as u64);
        let (place, value) = match self {
            Damage::Signature => (abort - 4, signature ^ 1),
            Damage::AbortInside => (address + 24, start),
            Damage::StartOutside => (address + 8, 0),
            Damage::HalfAnInstruction => (address + 16, length - 1),
            Damage::WithoutCommit => (address + 16, length - commit),
            Damage::BeyondCommit => (address + 16, length + behind),
            Damage::Flags => (address, 1 << 32),
        };
        let mut data = image.file().to_vec();
        let offset = image.file_offset(place).ok_or("a descriptor that is not in the file")?;
        let target = data.get_mut(offset..offset + 8).ok_or("a descriptor beyond the file")?;
        target.copy_from_slice(&value.to_le_bytes());
        Image::parse(data)
    }
}

fn word(bytes: Option<&[u8]>) -> Result<[u8; 8], String> {
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| "a pad at the end".to_owned())
}
