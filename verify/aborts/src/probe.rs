//! Running the probes: the descriptors must not only look well.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

/// Runs the program that counts.
///
/// # Errors
///
/// What it says if its sum is wrong.
pub fn run_program(program: &Path) -> Result<String, String> {
    let output = Command::new(program).env_remove("PERCID_SOURCE").output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() { Ok(line) } else { Err(format!("{}: {line}", output.status)) }
}

/// Loads the library late and counts with several threads. It stays loaded: nobody may unload a library
/// with critical sections while a thread's rseq area still names one of them.
///
/// # Errors
///
/// If it cannot be loaded, or the sum is wrong.
pub fn run_library(library: &Path) -> Result<String, String> {
    const THREADS: i64 = 4;
    const TIMES: i64 = 100_000;
    let path = CString::new(library.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the library has no initialiser that could do harm, and the function has this type.
    let count: extern "C" fn(i64) -> i64 = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NODELETE);
        let function = if handle.is_null() {
            std::ptr::null_mut()
        } else {
            libc::dlsym(handle, c"percid_probe_count".as_ptr())
        };
        if function.is_null() {
            return Err(format!("{} cannot be loaded", library.display()));
        }
        std::mem::transmute(function)
    };
    let before = count(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| count(TIMES));
        }
    });
    let sum = count(0) - before;
    if sum == THREADS * TIMES {
        Ok(format!("PASS sum={sum}"))
    } else {
        Err(format!("the library counted {sum}"))
    }
}
