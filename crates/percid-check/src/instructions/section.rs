//! The critical sections of the program.

use std::fmt;
use std::hint::black_box;
use std::sync::OnceLock;

use super::processor;

/// A descriptor, as the kernel reads it.
#[repr(C, align(32))]
struct Descriptor {
    version_and_flags: [u32; 2],
    start: usize,
    length: usize,
    abort: usize,
}

/// An empty descriptor: with it the program has the section of descriptors, even if no code of
/// percid is left in it.
#[used]
#[unsafe(link_section = "__rseq_cs")]
static EMPTY: Descriptor = Descriptor { version_and_flags: [0, 0], start: 0, length: 0, abort: 0 };

unsafe extern "C" {
    // The linker defines both, since the section's name is an identifier.
    #[link_name = "__start___rseq_cs"]
    static FIRST: [Descriptor; 0];
    #[link_name = "__stop___rseq_cs"]
    static END: [Descriptor; 0];
}

/// A critical section.
pub(super) struct Section {
    pub(super) start: usize,
    end: usize,
    pub(super) abort: usize,
    /// The code, as it is without traps.
    code: Vec<u8>,
    /// The addresses of the instructions, the commit last.
    pub(super) instructions: Vec<usize>,
}

impl Section {
    /// Returns all sections of the program; `None` if the instructions of one are unknown. Must be
    /// called first when there are no traps.
    pub(super) fn all() -> Option<&'static [Section]> {
        static ALL: OnceLock<Option<Vec<Section>>> = OnceLock::new();
        ALL.get_or_init(|| descriptors().iter().filter(|one| one.length > 0).map(read).collect())
            .as_deref()
    }

    pub(super) fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Returns the code from an address on.
    pub(super) fn code_at(&self, address: usize) -> &[u8] {
        &self.code[address - self.start..]
    }

    /// Returns an instruction in the form for a user: its number, and the address for tools.
    pub(super) fn describe(&self, address: usize) -> impl fmt::Display {
        let number = self.instructions.iter().position(|&one| one == address);
        let (number, all) = (number.map_or(0, |index| index + 1), self.instructions.len());
        let file_address = address.wrapping_sub(load_bias());
        format!(
            "instruction {number} of {all} of a section (addr2line -fie PROGRAM {file_address:#x})"
        )
    }
}

fn descriptors() -> &'static [Descriptor] {
    black_box(&EMPTY);
    let (first, end) = (&raw const FIRST, &raw const END);
    let bytes = end.addr() - first.addr();
    // SAFETY: the linker guarantees that the section lies between the two symbols. It contains
    // descriptors only, each aligned to its size.
    unsafe { std::slice::from_raw_parts(first.cast(), bytes / size_of::<Descriptor>()) }
}

fn read(descriptor: &Descriptor) -> Option<Section> {
    let &Descriptor { start, length, abort, .. } = descriptor;
    // SAFETY: a section lies in the text of the program, which is readable.
    let code = unsafe { std::slice::from_raw_parts(start as *const u8, length) }.to_vec();
    let mut next = start;
    let mut instructions = Vec::new();
    for length in processor::lengths(&code)? {
        instructions.push(next);
        next += length;
    }
    Some(Section { start, end: start + length, abort, code, instructions })
}

/// Returns the difference of an address in memory and in the program's file.
fn load_bias() -> usize {
    extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, bias: *mut libc::c_void) -> i32 {
        // SAFETY: the C library passes a valid description, and `bias` is the caller's.
        unsafe { *bias.cast::<usize>() = (*info).dlpi_addr as usize };
        1 // ends the iteration at the first object: the program
    }
    let mut bias = 0;
    // SAFETY: the function has the type that is expected, and gets the address of `bias`.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut bias).cast()) };
    bias
}
