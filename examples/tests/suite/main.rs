//! The tests of this crate, in one program: linked once.

mod cache;
mod free_list;
mod program;
mod read_cache;
mod scratch;
mod tracer;
mod weblog;
