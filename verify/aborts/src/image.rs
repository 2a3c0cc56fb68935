//! An ELF file as the proofs see it: bytes by address, functions, and the relocated descriptors.

use std::path::Path;

use object::elf::{FileHeader64, R_X86_64_RELATIVE, SHF_ALLOC, SHF_EXECINSTR};
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolKind};

/// The section with the descriptors.
const DESCRIPTORS: &str = "__rseq_cs";

/// The size of a descriptor, and its alignment.
pub const DESCRIPTOR_BYTES: u64 = 32;

/// A loaded ELF file.
#[derive(Debug)]
pub struct Image {
    data: Vec<u8>,
    sections: Vec<Part>,
    functions: Vec<Function>,
    relocations: Vec<Relocation>,
}

/// A section that is loaded.
#[derive(Debug, Clone)]
struct Part {
    name: String,
    address: u64,
    bytes: Vec<u8>,
    /// Offset of its bytes in the file.
    offset: u64,
    executable: bool,
}

/// A function of the symbol table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name, as the compiler mangled it.
    pub name: String,
    /// Its address in the file's own terms.
    pub address: u64,
    /// Its length in bytes.
    pub length: u64,
}

/// The loader stores `base + addend` at `address`.
#[derive(Debug, Clone, Copy)]
struct Relocation {
    address: u64,
    addend: u64,
    /// Offset of the addend in the file.
    offset: u64,
}

/// A critical section's descriptor, as the loader leaves it when it loads the file at address zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// The address of the descriptor itself.
    pub address: u64,
    /// The version and the flags, both zero.
    pub version_and_flags: [u32; 2],
    /// The first instruction.
    pub start: u64,
    /// From there to the first instruction behind the commit.
    pub length: u64,
    /// The abort pad.
    pub abort: u64,
}

impl Descriptor {
    /// Returns the first address after the commit.
    pub fn end(&self) -> u64 {
        self.start.wrapping_add(self.length)
    }

    /// Returns `true` if the kernel regards a thread at this address as inside the section.
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.length
    }
}

impl Image {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not a readable 64-bit ELF file.
    pub fn read(path: &Path) -> Result<Image, String> {
        let data = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Image::parse(data).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Takes a file apart.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not a readable 64-bit ELF file.
    pub fn parse(data: Vec<u8>) -> Result<Image, String> {
        let (sections, functions, relocations) =
            take_apart(&data).map_err(|error| error.to_string())?;
        Ok(Image { data, sections, functions, relocations })
    }

    /// Returns the file itself.
    pub fn file(&self) -> &[u8] {
        &self.data
    }

    /// Returns the bytes at an address, as many as requested; `None` if they are not all in one
    /// section.
    pub fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let part = self.part(address)?;
        part.bytes.get((address - part.address) as usize..)?.get(..length)
    }

    /// Returns `true` if an address is in an executable section.
    pub fn is_code(&self, address: u64) -> bool {
        self.part(address).is_some_and(|part| part.executable)
    }

    fn part(&self, address: u64) -> Option<&Part> {
        self.sections
            .iter()
            .find(|part| address.wrapping_sub(part.address) < part.bytes.len() as u64)
    }

    /// Returns the function that contains an address.
    pub fn function_at(&self, address: u64) -> Option<&Function> {
        self.functions
            .iter()
            .find(|function| address.wrapping_sub(function.address) < function.length)
    }

    /// Returns all functions of the symbol table.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns the values that the loader writes to the words that it relocates.
    pub fn relocated_words(&self) -> impl Iterator<Item = u64> + '_ {
        self.relocations.iter().map(|relocation| relocation.addend)
    }

    /// Returns the function with this name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// Returns the address and length of the section of descriptors; `None` if there is none.
    pub fn descriptor_range(&self) -> Option<(u64, u64)> {
        let part = self.sections.iter().find(|part| part.name == DESCRIPTORS)?;
        Some((part.address, part.bytes.len() as u64))
    }

    /// Returns all descriptors. An incomplete one at the end is left to the checks.
    pub fn descriptors(&self) -> Vec<Descriptor> {
        let (start, length) = self.descriptor_range().unwrap_or_default();
        let addresses =
            (0..length / DESCRIPTOR_BYTES).map(|index| start + index * DESCRIPTOR_BYTES);
        addresses.filter_map(|address| self.descriptor(address)).collect()
    }

    fn descriptor(&self, address: u64) -> Option<Descriptor> {
        let bytes = self.bytes(address, DESCRIPTOR_BYTES as usize)?;
        let half = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Some(Descriptor {
            address,
            version_and_flags: [half(0), half(4)],
            start: self.pointer(address + 8)?,
            length: self.pointer(address + 16)?,
            abort: self.pointer(address + 24)?,
        })
    }

    /// Returns the word at an address after relocation.
    pub fn pointer(&self, address: u64) -> Option<u64> {
        if let Some(relocation) = self.relocations.iter().find(|known| known.address == address) {
            return Some(relocation.addend);
        }
        Some(u64::from_le_bytes(self.bytes(address, 8)?.try_into().ok()?))
    }

    /// Returns the offset in the file of the word that determines the word at this address: that of
    /// its relocation, if it has one.
    pub fn file_offset(&self, address: u64) -> Option<usize> {
        let relocated = self.relocations.iter().find(|known| known.address == address);
        let plain = || self.part(address).map(|part| part.offset + (address - part.address));
        relocated.map(|known| known.offset).or_else(plain).map(|offset| offset as usize)
    }
}

type Parts = (Vec<Part>, Vec<Function>, Vec<Relocation>);

fn take_apart(data: &[u8]) -> object::Result<Parts> {
    let file = ElfFile64::<Endianness>::parse(data)?;
    let mut sections = Vec::new();
    for section in file.sections() {
        let flags = section.elf_section_header().sh_flags(file.endian());
        if flags.contains(SHF_ALLOC) {
            sections.push(Part {
                name: section.name()?.to_owned(),
                address: section.address(),
                bytes: section.data()?.to_vec(),
                offset: section.file_range().map_or(0, |(offset, _)| offset),
                executable: flags.contains(SHF_EXECINSTR),
            });
        }
    }
    let functions = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
    let functions = functions.filter(|symbol| symbol.size() > 0).map(|symbol| Function {
        name: symbol.name().unwrap_or_default().to_owned(),
        address: symbol.address(),
        length: symbol.size(),
    });
    Ok((sections, functions.collect(), relocations(data)?))
}

/// Returns the relocations of position-independent files; there are none in others.
fn relocations(data: &[u8]) -> object::Result<Vec<Relocation>> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let mut found = Vec::new();
    for section in header.sections(endian, data)?.iter() {
        let Some((entries, _)) = section.rela(endian, data)? else { continue };
        let start = section.sh_offset(endian);
        for (index, entry) in entries.iter().enumerate() {
            if entry.r_type(endian, false) == R_X86_64_RELATIVE {
                let offset = start + (index * size_of_val(entry)) as u64 + 16;
                let addend = entry.r_addend.get(endian) as u64;
                found.push(Relocation { address: entry.r_offset.get(endian), addend, offset });
            }
        }
    }
    Ok(found)
}
