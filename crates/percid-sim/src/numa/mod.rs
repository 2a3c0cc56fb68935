//! The scan that keeps a process's memory near its threads, and the benchmark it was judged by.
//!
//! A thread walks its process's regions now and then and arms pages, so that the next access to each traps.
//! The trap tells who uses the page and where, and the page may migrate there. [`walk`] decides which
//! regions are armed; [`rules`] says which of the published fixes it has. [`run`] lets the benchmark
//! NUMA01_THREADLOCAL live through it, [`paper()`] compares the outcome with the published one, and [`hash`]
//! studies the sets of active threads.

pub mod activity;
pub mod hash;
pub mod outcome;
mod pages;
pub mod paper;
pub mod period;
mod ranked;
pub mod region;
pub mod rules;
pub mod run;
pub mod settings;
mod thread;
pub mod walk;
pub mod workload;

pub use paper::{Paper, paper};
