//! Where percid has critical sections: the one list of architectures, on 64-bit Linux.
//!
//! What belongs to an architecture lies in files of its name: its sections
//! ([`critical`](crate::critical)), the section that waits
//! ([`waiting`](crate::critical::waiting)) and its thread-local storage
//! ([`thread`](crate::sys::thread)). Of each there is one for all the others too, `portable.rs`.

/// Items that exist where there are critical sections.
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

/// Items that exist where there are none.
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
    /// Whether there are any.
    pub(crate) const SECTIONS_EXIST: bool = true;
}
without_sections! {
    /// Whether there are any.
    pub(crate) const SECTIONS_EXIST: bool = false;
}
