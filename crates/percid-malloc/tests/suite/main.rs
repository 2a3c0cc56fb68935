//! The functions in this process, whose allocator they are, and in programs that know nothing of them.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

mod model;
mod programs;
#[path = "../../benches/allocators/random.rs"]
mod random;
mod stress;
