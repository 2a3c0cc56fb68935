//! The tests of this crate, in one program: linked once.

mod balancer;
mod gone;
mod own_memory;
