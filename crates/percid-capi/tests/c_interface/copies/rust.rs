//! A Rust program that contains the crate and loads a plugin in C.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use percid::Counter;

use super::PLUGIN_OF_RUST;

const ROUNDS: u64 = 20_000;
const THREADS: u64 = 4;

type Make = extern "C" fn() -> c_int;
type Check = unsafe extern "C" fn(name: *const c_char, rounds: u64) -> c_int;

/// The functions of a plugin, see copy_plugin.c.
struct Plugin {
    make: Make,
    work: Make,
    check: Check,
}

impl Plugin {
    fn load(path: &str) -> Plugin {
        let path = CString::new(path).expect("a path");
        // SAFETY: the path is a NUL-terminated string; the plugin has no initialisers of its own.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!library.is_null(), "the plugin cannot be loaded");
        let find = |name: &CStr| {
            // SAFETY: the library is loaded, and the name is a NUL-terminated string.
            let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
            assert!(!symbol.is_null(), "{name:?}");
            symbol
        };
        // SAFETY: the plugin has functions of these types.
        unsafe {
            Plugin {
                make: std::mem::transmute::<*mut c_void, Make>(find(c"plugin_make")),
                work: std::mem::transmute::<*mut c_void, Make>(find(c"plugin_work")),
                check: std::mem::transmute::<*mut c_void, Check>(find(c"plugin_check")),
            }
        }
    }
}

/// Run by another test, in a separate process.
#[test]
#[ignore = "run by a_rust_program_with_percid_inside_loads_plugins"]
fn counts_beside_a_plugin() {
    static OURS: Counter = Counter::new();
    let Ok(path) = std::env::var(PLUGIN_OF_RUST) else { return };
    let plugin = Plugin::load(&path);
    assert_eq!((plugin.make)(), 0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    OURS.add(1);
                    assert_eq!((plugin.work)(), 0);
                }
            });
        }
    });
    // SAFETY: the argument is a NUL-terminated string.
    assert_eq!(unsafe { (plugin.check)(c"plugin".as_ptr(), THREADS * ROUNDS) }, 0);
    assert_eq!(OURS.sum(), (THREADS * ROUNDS) as i64);
}
