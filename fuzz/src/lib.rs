//! Common code of several fuzz targets.

#[cfg(feature = "files")]
pub mod files;
pub mod machines;
pub mod one_cpu;
pub mod schedules;
pub mod traces;
