//! System calls whose answer does not pass through `errno`.
//!
//! A process that shares this one's memory and thread pointer ([`companion`](super::companion))
//! shares its `errno` as well: what either finds there may be the other's.

/// The kernel's answer to a system call of up to four arguments: a result, or an `errno` with a
/// minus sign.
///
/// # Safety
///
/// As the system call demands of its arguments.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn raw_call(number: libc::c_long, arguments: [usize; 4]) -> isize {
    let [a, b, c, d] = arguments;
    let answer;
    // SAFETY: by contract; the kernel destroys rcx and r11 and nothing else.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            out("rcx") _,
            out("r11") _,
            options(nostack)
        );
    }
    answer
}

/// As its twin for x86-64.
///
/// # Safety
///
/// As the system call demands of its arguments.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn raw_call(number: libc::c_long, arguments: [usize; 4]) -> isize {
    let [a, b, c, d] = arguments;
    let answer;
    // SAFETY: by contract; the kernel destroys the answer's register and nothing else.
    unsafe {
        std::arch::asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a as isize => answer,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            options(nostack)
        );
    }
    answer
}

/// Elsewhere there are no critical sections, and no thread has a companion.
///
/// # Safety
///
/// As the system call demands of its arguments.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) unsafe fn raw_call(number: libc::c_long, arguments: [usize; 4]) -> isize {
    let [a, b, c, d] = arguments;
    // SAFETY: by contract.
    let answer = unsafe { libc::syscall(number, a, b, c, d) } as isize;
    if answer < 0 { -(super::errno() as isize) } else { answer }
}
