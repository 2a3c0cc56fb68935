//! Linux 6.3 as a WebAssembly module: one set of IDs, without a record of earlier owners. It gives
//! the same results as the built-in policy `linux-6.3`.
//!
//!     rustc --target wasm32-unknown-unknown --edition 2024 -O --crate-type cdylib \
//!         -C panic=abort -C link-args="-z stack-size=4096" linux_6_3.rs

#![no_std]

use core::arch::wasm32;

#[link(wasm_import_module = "percid")]
unsafe extern "C" {
    safe fn count(what: i32, number: i32);
}

/// The number of slow paths, in `count`.
const SLOW_PATHS: i32 = 3;

/// Maximum number of CPUs.
const MAX_CPUS: usize = 8192;

/// The mark of a thread that has ended, in its note.
const ENDED: u32 = u32::MAX;

struct State {
    cpus: u32,
    /// The IDs that are held.
    taken: [u32; MAX_CPUS / 32],
    /// Number of threads whose notes have memory.
    notes: usize,
}

static mut STATE: State = State { cpus: 0, taken: [0; MAX_CPUS / 32], notes: 0 };

unsafe extern "C" {
    /// The first byte that the linker has not used.
    static mut __heap_base: u8;
}

fn state() -> &'static mut State {
    // SAFETY: a module has one thread, and no function of this file calls another one while it
    // holds the reference.
    unsafe { &mut *(&raw mut STATE) }
}

/// Returns the note of a thread: 0 without an ID, otherwise one more than its ID, or [`ENDED`].
fn note(thread: i32) -> &'static mut u32 {
    let thread = thread as usize;
    let notes = (&raw mut __heap_base).cast::<u32>();
    if thread >= state().notes {
        provide(notes.wrapping_add(thread + 1) as usize);
        state().notes = thread + 1;
    }
    // SAFETY: the memory has the note's bytes, which begin as zeros, and nothing else uses them.
    // The linker aligns the first one to 16 bytes.
    unsafe { &mut *notes.add(thread) }
}

/// Takes memory up to an address.
#[cold]
fn provide(end: usize) {
    let pages = end.div_ceil(65536).saturating_sub(wasm32::memory_size(0));
    if pages > 0 && wasm32::memory_grow(0, pages) == usize::MAX {
        wasm32::unreachable();
    }
}

fn free(id: u32) {
    state().taken[id as usize / 32] &= !(1 << (id % 32));
}

/// Takes the first free ID.
fn obtain() -> u32 {
    count(SLOW_PATHS, 1);
    let State { cpus, taken, .. } = state();
    for (at, word) in taken.iter_mut().enumerate() {
        let id = at as u32 * 32 + (!*word).trailing_zeros();
        if id >= *cpus {
            break;
        }
        if *word != u32::MAX {
            *word |= 1 << (id % 32);
            return id;
        }
    }
    // More threads run than there are CPUs.
    wasm32::unreachable()
}

#[unsafe(no_mangle)]
extern "C" fn percid_start(cpus: i32) {
    if cpus as usize > MAX_CPUS {
        wasm32::unreachable();
    }
    state().cpus = cpus as u32;
}

#[unsafe(no_mangle)]
extern "C" fn percid_switch(_cpu: i32, prev: i32, next: i32) {
    let mut released = 0;
    if prev >= 0 {
        let note = note(prev);
        if *note != ENDED {
            released = core::mem::take(note);
        }
    }
    if next >= 0 {
        let note = note(next);
        if *note != ENDED {
            // A switch between two threads of the process passes the ID on.
            *note = if released == 0 { obtain() + 1 } else { released };
            return;
        }
    }
    if released != 0 {
        free(released - 1);
    }
}

#[unsafe(no_mangle)]
extern "C" fn percid_exit(thread: i32, _cpu: i32) {
    let held = core::mem::replace(note(thread), ENDED);
    if held != 0 && held != ENDED {
        free(held - 1);
    }
}

#[unsafe(no_mangle)]
extern "C" fn percid_exec(_cpu: i32, thread: i32) {
    state().taken.fill(0);
    for other in 0..state().notes {
        *note(other as i32) = 0;
    }
    *note(thread) = obtain() + 1;
}

#[unsafe(no_mangle)]
extern "C" fn percid_id(_cpu: i32, thread: i32) -> i32 {
    let note = note(thread);
    if *note == 0 {
        *note = obtain() + 1;
    }
    *note as i32 - 1
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    wasm32::unreachable()
}
