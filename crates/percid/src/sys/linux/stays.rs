//! Keeps the module that contains percid loaded: threads keep a pointer to the last critical
//! section that they ran, and the kernel reads it whenever one of them returns to the program. When
//! a shared library is loaded, it opens itself once more, with a flag that keeps `dlclose` from
//! unloading it. Programs stay loaded anyway; a static one has no loader.

use std::ffi::{c_char, c_int, c_void};

use crate::sys::weak::weak;

/// The loader runs it before any other code of the module.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = ask;

/// Makes linkers include this part of a static library.
#[inline(always)]
pub(super) fn require() {
    // SAFETY: a static is readable. The read is volatile, so it is not optimised out.
    unsafe { (&raw const AT_LOAD).read_volatile() };
}

/// `Dl_info` of the C libraries.
#[repr(C)]
struct Module {
    file: *const c_char,
    start: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

extern "C" fn ask() {
    type ModuleOf = unsafe extern "C" fn(*const c_void, *mut Module) -> c_int;
    type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
    let addresses = (weak!("dladdr"), weak!("dlopen"));
    // SAFETY: null, or the addresses of the C library's functions, which have these types.
    let functions = unsafe {
        (
            std::mem::transmute::<usize, Option<ModuleOf>>(addresses.0),
            std::mem::transmute::<usize, Option<Open>>(addresses.1),
        )
    };
    let (Some(module_of), Some(open)) = functions else { return };
    let mut module = std::mem::MaybeUninit::<Module>::zeroed();
    // SAFETY: an address in this module, and a place for the result, which may be all zero.
    let module = unsafe {
        module_of((&raw const AT_LOAD).cast(), module.as_mut_ptr());
        module.assume_init()
    };
    if !module.file.is_null() && !is_program(module.start) {
        // SAFETY: this is the loader's own name of a loaded module, and the call only increments
        // its reference count.
        unsafe { open(module.file, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
    }
}

/// Returns `true` if a module that starts there is the program: its first page contains the program
/// headers that the kernel reported.
fn is_program(start: *mut c_void) -> bool {
    // SAFETY: the call takes an integer.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    headers.wrapping_sub(start.addr()) < 4096
}
