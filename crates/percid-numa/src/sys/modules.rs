//! The loaded program and its libraries, and the parts of them that the fault handler reads.

use std::ffi::c_void;
use std::ops::Range;

/// A module: its addresses, and the parts that the handler may read.
#[derive(Debug, Default)]
struct Module {
    loaded: Vec<Range<usize>>,
    /// Segments that are read-only, or were writable only while the module was loaded.
    constant: Vec<Range<usize>>,
    /// The table with the addresses of functions in other modules.
    table: Option<Range<usize>>,
}

/// Returns the memory of modules that the handler uses, without the program's own variables. For
/// the module that contains the handler, these are its constants and the table of the functions
/// that it calls. For the other modules that it calls, such as the C library, it is all memory.
pub(crate) fn of_handler(handler: usize) -> Vec<Range<usize>> {
    let modules = all();
    // The functions that the handler calls. A sanitizer may have moved some into a module of its
    // own.
    let called = [
        libc::mprotect as *const () as usize,
        libc::syscall as *const () as usize,
        libc::sched_yield as *const () as usize,
        libc::__errno_location as *const () as usize,
    ];
    let has = |module: &Module, place| module.loaded.iter().any(|part| part.contains(&place));
    let mut found = Vec::new();
    for module in modules {
        if has(&module, handler) {
            found.extend(module.constant.into_iter().chain(module.table));
        } else if called.iter().any(|&place| has(&module, place)) {
            found.extend(module.loaded);
        }
    }
    found
}

fn all() -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    // SAFETY: the callback gets a pointer to the list, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut modules).cast()) };
    modules
}

/// # Safety
///
/// `info` describes a module; `modules` points to the list.
unsafe extern "C" fn add(
    info: *mut libc::dl_phdr_info,
    _: usize,
    modules: *mut c_void,
) -> libc::c_int {
    // SAFETY: the caller passes valid pointers to a description and to the list.
    let (info, modules) = unsafe { (&*info, &mut *modules.cast::<Vec<Module>>()) };
    // SAFETY: the loader's table has that many headers.
    let headers =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let base = info.dlpi_addr as usize;
    let mut module = Module::default();
    for header in headers {
        let start = base.wrapping_add(header.p_vaddr as usize);
        let part = start..start.saturating_add(header.p_memsz as usize);
        match header.p_type {
            libc::PT_LOAD => {
                if header.p_flags & libc::PF_W == 0 {
                    module.constant.push(part.clone());
                }
                module.loaded.push(part);
            }
            libc::PT_GNU_RELRO => module.constant.push(part),
            // SAFETY: the module is loaded, so its dynamic section is mapped.
            libc::PT_DYNAMIC => module.table = unsafe { table(start, base) },
            _ => {}
        }
    }
    modules.push(module);
    0
}

/// Returns the part of the global offset table that is filled at the first calls of functions: it
/// stays writable while the program runs.
///
/// # Safety
///
/// There is a dynamic section at this address, of a module with this base.
unsafe fn table(section: usize, base: usize) -> Option<Range<usize>> {
    const END: usize = 0;
    const BYTES_OF_RELOCATIONS: usize = 2;
    const TABLE: usize = 3;
    /// Size of `Elf64_Rela`; there is one for each function.
    const RELOCATION: usize = 24;
    /// Number of words in front of those for functions.
    const RESERVED: usize = 3;
    let (mut start, mut functions) = (None, 0);
    let mut entry = std::ptr::with_exposed_provenance::<[usize; 2]>(section);
    loop {
        // SAFETY: the section ends with an `END` entry, and the loop stops there.
        match unsafe { entry.read() } {
            [END, _] => break,
            [BYTES_OF_RELOCATIONS, bytes] => functions = bytes / RELOCATION,
            [TABLE, place] => start = Some(place),
            _ => {}
        }
        entry = entry.wrapping_add(1);
    }
    // Some loaders store the address, others leave the offset.
    let start = start.map(|place| if place < base { base + place } else { place })?;
    Some(start..start + (RESERVED + functions) * size_of::<usize>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_handler_reads() {
        static VARIABLE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(7);
        let parts = of_handler(of_handler as *const () as usize);
        let held = |place: usize| parts.iter().any(|part| part.contains(&place));
        assert!(held("a constant".as_ptr().addr()));
        assert!(!held((&raw const VARIABLE).addr()), "it may be the program's");
        if cfg!(target_env = "gnu") && cfg!(not(target_feature = "crt-static")) {
            assert!(held(libc::mprotect as *const () as usize), "the C library's");
        }
    }
}
