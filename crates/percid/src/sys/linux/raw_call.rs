//! System calls whose result does not pass through `errno`.
//!
//! A process that shares this one's memory and thread pointer ([`companion`](super::companion))
//! shares its `errno` as well: either process may read the value of the other.

/// Makes a system call of up to four arguments. Returns the result, or an `errno` with a minus
/// sign.
///
/// # Safety
///
/// The arguments must satisfy the requirements of the system call.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn raw_call(number: libc::c_long, arguments: [usize; 4]) -> isize {
    let [a, b, c, d] = arguments;
    let answer;
    // SAFETY: the caller guarantees valid arguments; the kernel clobbers rcx and r11 and no other
    // register.
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

/// Makes a system call of up to four arguments. Returns the result, or an `errno` with a minus
/// sign.
///
/// # Safety
///
/// The arguments must satisfy the requirements of the system call.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn raw_call(number: libc::c_long, arguments: [usize; 4]) -> isize {
    let [a, b, c, d] = arguments;
    let answer;
    // SAFETY: the caller guarantees valid arguments; the kernel clobbers the result register and no
    // other.
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

/// Makes a system call of up to four arguments. Returns the result, or an `errno` with a minus
/// sign.
///
/// # Safety
///
/// The arguments must satisfy the requirements of the system call.
#[cfg(target_arch = "riscv64")]
pub(crate) unsafe fn raw_call(number: libc::c_long, arguments: [usize; 4]) -> isize {
    let [a, b, c, d] = arguments;
    let answer;
    // SAFETY: the caller guarantees valid arguments; the kernel clobbers the result register and no
    // other.
    unsafe {
        std::arch::asm!(
            "ecall",
            in("a7") number,
            inlateout("a0") a as isize => answer,
            in("a1") b,
            in("a2") c,
            in("a3") d,
            options(nostack)
        );
    }
    answer
}

/// Makes the call through the C library: on other architectures there are no critical sections, and
/// no thread has a companion.
///
/// # Safety
///
/// The arguments must satisfy the requirements of the system call.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
pub(crate) unsafe fn raw_call(number: libc::c_long, arguments: [usize; 4]) -> isize {
    let [a, b, c, d] = arguments;
    // SAFETY: the caller guarantees valid arguments.
    let answer = unsafe { libc::syscall(number, a, b, c, d) } as isize;
    if answer < 0 { -(crate::sys::errno() as isize) } else { answer }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_answers_are_the_kernels_and_errno_is_nobodys() {
        let mut pipe = [0; 2];
        // SAFETY: there is room for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        let [from, to] = pipe.map(|fd| fd as usize);
        let text = b"percid";
        let mut back = [0u8; 8];
        let place = back.as_mut_ptr().expose_provenance();
        let before = crate::sys::errno();
        // SAFETY: descriptors, and buffers of the lengths given, which outlive the calls.
        unsafe {
            let text = text.as_ptr().expose_provenance();
            assert_eq!(raw_call(libc::SYS_write, [to, text, 6, 0]), 6);
            assert_eq!(raw_call(libc::SYS_read, [from, place, 8, 0]), 6);
            // The fourth argument: an offset, which a pipe does not support.
            assert_eq!(raw_call(libc::SYS_pread64, [from, place, 8, 0]), -(libc::ESPIPE as isize));
            assert_eq!(raw_call(libc::SYS_close, [from, 0, 0, 0]), 0);
            assert_eq!(raw_call(libc::SYS_close, [to, 0, 0, 0]), 0);
            assert_eq!(raw_call(libc::SYS_close, [usize::MAX, 0, 0, 0]), -(libc::EBADF as isize));
        }
        assert_eq!((&back[..6], crate::sys::errno()), (&text[..], before));
    }

    #[test]
    fn the_fourth_argument_arrives() {
        let file = std::fs::File::open("/proc/self/exe").expect("this program");
        let mut magic = [0u8; 3];
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file) as usize;
        let place = magic.as_mut_ptr().expose_provenance();
        // SAFETY: an open file and a buffer of three bytes.
        assert_eq!(unsafe { raw_call(libc::SYS_pread64, [fd, place, 3, 1]) }, 3);
        assert_eq!(&magic, b"ELF");
    }
}
