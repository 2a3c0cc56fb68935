//! Running the probes: the descriptors must not only look well.

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// Runs the program that uses every structure.
///
/// # Errors
///
/// Returns the program's output if a sum is wrong.
pub fn run_program(program: &Path) -> Result<String, String> {
    let output = Command::new(program).env_remove("PERCID_SOURCE").output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() { Ok(line) } else { Err(format!("{}: {line}", output.status)) }
}

/// Loads the library late and uses it with several threads. It stays loaded: no program may unload
/// a library with critical sections while a thread's rseq area still names one of them.
///
/// # Errors
///
/// If it cannot be loaded, or a sum is wrong.
pub fn run_library(library: &Path) -> Result<String, String> {
    const THREADS: u64 = 4;
    const TIMES: u64 = 50_000;
    let path = CString::new(library.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the library has no initialiser that could do harm, and its functions have these
    // types.
    let (work, total) = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NODELETE);
        if handle.is_null() {
            return Err(format!("{} cannot be loaded", library.display()));
        }
        let work = libc::dlsym(handle, c"percid_probe_work".as_ptr());
        let total = libc::dlsym(handle, c"percid_probe_total".as_ptr());
        if work.is_null() || total.is_null() {
            return Err(format!("{} lacks a function", library.display()));
        }
        (
            std::mem::transmute::<*mut c_void, extern "C" fn(u64)>(work),
            std::mem::transmute::<*mut c_void, extern "C" fn() -> i64>(total),
        )
    };
    let before = total();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| work(TIMES));
        }
    });
    let sum = total() - before;
    if sum == (THREADS * TIMES) as i64 {
        Ok(format!("PASS sum={sum}"))
    } else {
        Err(format!("the library's structures add up to {sum}"))
    }
}
