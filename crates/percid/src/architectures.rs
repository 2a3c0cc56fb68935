//! The architectures with critical sections, on 64-bit Linux: the only list of them.
//!
//! The code of an architecture is in files with its name: its sections
//! ([`critical`](crate::critical)), the section that waits ([`waiting`](crate::critical::waiting))
//! and its thread-local storage ([`thread`](crate::sys::thread)). Each of these also has a file for
//! all other architectures, `portable.rs`.

/// Defines items that exist if there are critical sections.
macro_rules! with_sections {
    ($($item:item)*) => {
        $(
            #[cfg(all(
                target_os = "linux",
                target_pointer_width = "64",
                any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
                not(any(percid_elsewhere, percid_portable))
            ))]
            $item
        )*
    };
}

/// Defines items that exist if there are no critical sections.
macro_rules! without_sections {
    ($($item:item)*) => {
        $(
            #[cfg(not(all(
                target_os = "linux",
                target_pointer_width = "64",
                any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"),
                not(any(percid_elsewhere, percid_portable))
            )))]
            $item
        )*
    };
}

with_sections! {
    /// `true` if there are critical sections.
    pub(crate) const SECTIONS_EXIST: bool = true;
}
without_sections! {
    /// `true` if there are critical sections.
    pub(crate) const SECTIONS_EXIST: bool = false;
}
