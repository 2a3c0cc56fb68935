//! The program and its libraries, as they are loaded: what of them the handler of faults reads.

use std::ffi::c_void;
use std::ops::Range;

/// A module: where it is loaded, its segments, and what of them the handler reads.
#[derive(Debug, Default)]
struct Module {
    loaded: Vec<Range<usize>>,
    /// Segments that cannot be written, or could while it was loaded only.
    constant: Vec<Range<usize>>,
    /// The addresses of functions that are called in other modules.
    table: Option<Range<usize>>,
}

/// Returns what is not the program's own variables: of the module that the handler is in, its
/// constants and the table of the functions that it calls; all of the other modules that it calls,
/// such as the C library.
pub(crate) fn of_handler(handler: usize) -> Vec<Range<usize>> {
    let modules = all();
    // What the handler calls. A sanitizer may have put some of it into a module of its own.
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
    // SAFETY: the function gets what it expects, for as long as the call lasts.
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
    // SAFETY: by contract.
    let (info, modules) = unsafe { (&*info, &mut *modules.cast::<Vec<Module>>()) };
    // SAFETY: the loader's table of that many headers.
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
            // SAFETY: the module is loaded, so its dynamic section is there.
            libc::PT_DYNAMIC => module.table = unsafe { table(start, base) },
            _ => {}
        }
    }
    modules.push(module);
    0
}

/// Returns the part of the global offset table that is filled when functions are called first: it
/// can be written for as long as the program runs.
///
/// # Safety
///
/// There is a dynamic section at this address, of a module with this base.
unsafe fn table(section: usize, base: usize) -> Option<Range<usize>> {
    const END: usize = 0;
    const BYTES_OF_RELOCATIONS: usize = 2;
    const TABLE: usize = 3;
    /// `Elf64_Rela`, one for each function.
    const RELOCATION: usize = 24;
    /// Words in front of the functions'.
    const RESERVED: usize = 3;
    let (mut start, mut functions) = (None, 0);
    let mut entry = std::ptr::with_exposed_provenance::<[usize; 2]>(section);
    loop {
        // SAFETY: the section ends with an entry of that kind.
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
