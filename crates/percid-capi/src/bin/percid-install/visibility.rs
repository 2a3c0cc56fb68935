//! Visibility of an object's symbols that objcopy cannot set: this module changes the bytes of the
//! symbol table.

/// The symbol that C programs refer to.
pub(crate) const TABLE: &str = "percid_interface_1";

/// Offsets and numbers of the ELF specification, for 64 bits.
mod elf {
    pub(super) const MAGIC: &[u8] = b"\x7fELF\x02";
    pub(super) const BYTE_ORDER: usize = 5;
    pub(super) const BIG_ENDIAN: u8 = 2;
    pub(super) const ABI: usize = 7;
    pub(super) const ABI_GNU: u8 = 3;
    pub(super) const SECTIONS: usize = 40;
    pub(super) const SECTION_COUNT: usize = 60;
    pub(super) const SECTION_BYTES: usize = 64;
    pub(super) const SYMBOL_TABLE: u64 = 2;
    pub(super) const SYMBOL_BYTES: usize = 24;
    pub(super) const GLOBAL: u8 = 1;
    pub(super) const GNU_UNIQUE: u8 = 10;
    pub(super) const HIDDEN: u8 = 2;
}

/// Visibility of the functions outside the program or library that contains the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Functions {
    /// Exported if a version script does.
    Exported,
    /// Never exported. An executable would export those functions to which a library that it is
    /// linked with refers. Other modules would then use some functions of this copy, but not all.
    Hidden,
}

/// Makes the table unique in the process, as compilers do for objects that C++ inline functions
/// share. The dynamic linker then gives the same copy to all modules that can see each other's
/// objects, including those loaded with RTLD_LOCAL. Sets the visibility of the functions.
///
/// # Errors
///
/// Fails if the object is incomplete, or has no table.
pub(crate) fn adjust(object: &mut [u8], functions: Functions) -> Result<(), String> {
    let found = symbols(object).ok_or("the object's symbols cannot be read")?;
    let mut has_table = false;
    for symbol in found.into_iter().filter(|symbol| symbol.is_defined_globally) {
        if symbol.name == TABLE.as_bytes() {
            object[symbol.info] = object[symbol.info] & 0xf | elf::GNU_UNIQUE << 4;
            object[elf::ABI] = elf::ABI_GNU;
            has_table = true;
        } else if functions == Functions::Hidden {
            object[symbol.info + 1] = object[symbol.info + 1] & !3 | elf::HIDDEN;
        }
    }
    has_table.then_some(()).ok_or(format!("the object has no {TABLE}"))
}

struct Symbol {
    name: Vec<u8>,
    /// The offset of the byte with binding and type; that of the visibility follows.
    info: usize,
    is_defined_globally: bool,
}

fn symbols(object: &[u8]) -> Option<Vec<Symbol>> {
    let file = File { bytes: object };
    if !object.starts_with(elf::MAGIC) {
        return None;
    }
    let mut found = Vec::new();
    for index in 0..file.number(elf::SECTION_COUNT, 2)? {
        let section = file.section(index)?;
        if file.number(section + 4, 4)? != elf::SYMBOL_TABLE {
            continue;
        }
        let (start, bytes) = file.extent(section)?;
        let (names, _) = file.extent(file.section(file.number(section + 40, 4)?)?)?;
        for at in (start..start.checked_add(bytes)?).step_by(elf::SYMBOL_BYTES) {
            let name = object.get(names.checked_add(file.number(at, 4)? as usize)?..)?;
            let binding = *object.get(at + 4)? >> 4;
            found.push(Symbol {
                name: name.split(|&byte| byte == 0).next()?.to_vec(),
                info: at + 4,
                is_defined_globally: binding == elf::GLOBAL && file.number(at + 6, 2)? != 0,
            });
        }
    }
    Some(found)
}

struct File<'b> {
    bytes: &'b [u8],
}

impl File<'_> {
    /// Returns the number in these bytes, in the file's byte order.
    fn number(&self, at: usize, bytes: usize) -> Option<u64> {
        let field = self.bytes.get(at..at.checked_add(bytes)?)?;
        let fold = |number, &byte: &u8| number << 8 | u64::from(byte);
        Some(match self.bytes[elf::BYTE_ORDER] {
            elf::BIG_ENDIAN => field.iter().fold(0, fold),
            _ => field.iter().rev().fold(0, fold),
        })
    }

    /// Returns the offset of a section's header.
    fn section(&self, index: u64) -> Option<usize> {
        let first = usize::try_from(self.number(elf::SECTIONS, 8)?).ok()?;
        first.checked_add(usize::try_from(index).ok()?.checked_mul(elf::SECTION_BYTES)?)
    }

    /// Returns the offset of a section's content, and its size in bytes.
    fn extent(&self, header: usize) -> Option<(usize, usize)> {
        let start = self.number(header + 24, 8)?;
        let bytes = self.number(header + 32, 8)?;
        Some((usize::try_from(start).ok()?, usize::try_from(bytes).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an object with an undefined symbol, a local one, a function and the table.
    fn object(table: &str) -> Vec<u8> {
        let names = format!("\0there\0here\0function\0{table}\0");
        let symbols =
            [("there", 0x10, 0), ("here", 0x01, 1), ("function", 0x12, 1), (table, 0x11, 1)];
        let mut file = vec![0; 64 + 3 * elf::SECTION_BYTES];
        file[..5].copy_from_slice(elf::MAGIC);
        file[elf::BYTE_ORDER] = 1;
        file[elf::SECTIONS] = 64;
        file[elf::SECTION_COUNT] = 3;
        let mut section = |index: usize, kind: u8, start: usize, bytes: usize, link: u8| {
            let header = &mut file[64 + index * elf::SECTION_BYTES..][..elf::SECTION_BYTES];
            header[4] = kind;
            header[24..32].copy_from_slice(&(start as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(bytes as u64).to_le_bytes());
            header[40] = link;
        };
        let start = 64 + 3 * elf::SECTION_BYTES;
        section(1, 2, start, symbols.len() * elf::SYMBOL_BYTES, 2);
        section(2, 3, start + symbols.len() * elf::SYMBOL_BYTES, names.len(), 0);
        for (name, info, section) in symbols {
            let mut symbol = [0; elf::SYMBOL_BYTES];
            symbol[0] = names.find(name).expect("its name") as u8;
            symbol[4] = info;
            symbol[6] = section;
            file.extend(symbol);
        }
        file.extend(names.bytes());
        file
    }

    /// Returns info and visibility of the four symbols.
    fn seen(object: &[u8]) -> Vec<(u8, u8)> {
        let all = symbols(object).expect("an object").into_iter();
        all.map(|symbol| (object[symbol.info], object[symbol.info + 1])).collect()
    }

    #[test]
    fn the_table_becomes_unique_and_functions_hidden() {
        let mut shown = object(TABLE);
        adjust(&mut shown, Functions::Exported).expect("a table");
        assert_eq!(seen(&shown), [(0x10, 0), (0x01, 0), (0x12, 0), (0xa1, 0)]);
        assert_eq!(shown[elf::ABI], elf::ABI_GNU);
        let mut hidden = object(TABLE);
        adjust(&mut hidden, Functions::Hidden).expect("a table");
        assert_eq!(seen(&hidden), [(0x10, 0), (0x01, 0), (0x12, 2), (0xa1, 0)]);
    }

    #[test]
    fn what_is_not_an_object_with_the_table_is_refused() {
        let all = object(TABLE);
        for length in 0..all.len() - 1 {
            let _ = adjust(&mut all[..length].to_vec(), Functions::Hidden);
        }
        assert!(adjust(&mut all[..300].to_vec(), Functions::Hidden).is_err());
        assert!(adjust(&mut object("percid_interface_2"), Functions::Hidden).is_err());
        assert!(adjust(&mut b"!<arch>\n".to_vec(), Functions::Hidden).is_err());
    }
}
