//! A seccomp filter that denies single system calls, as container runtimes do.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::options::Options;

/// Installs the filter and runs this program again with the same options. Returns only on failure,
/// with the reason.
pub(crate) fn start_over(options: &Options) -> String {
    if let Err(error) = install(&options.deny, options.errno) {
        return format!("cannot install the filter: {error}");
    }
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return format!("cannot find this program: {error}"),
    };
    let error = Command::new(program).args(&options.given).arg("--confined").exec();
    format!("cannot start over: {error}")
}

/// Installs the classic BPF program: load the call's number, compare it with each denied one, allow
/// the rest.
pub(crate) fn install(denied: &[libc::c_long], errno: i32) -> Result<(), std::io::Error> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // The number is the first field of the data that filters see.
    let mut steps = vec![step(LOAD, 0, 0, 0)];
    for &call in denied {
        steps.push(step(EQUAL, 0, 1, call as u32));
        steps.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32));
    }
    steps.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: both calls take integers and a program that lives through the call.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
    };
    if installed { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
