//! The names of the build products.

/// The name by which programs request the library from the dynamic linker. Its number grows when
/// they have to be compiled again.
pub(crate) const SONAME: &str = "libpercid.so.1";

/// The shared library itself. Its second number grows when functions are added.
pub(crate) const SHARED: &str = "libpercid.so.1.0.0";

/// The static library.
pub(crate) const STATIC: &str = "libpercid.a";

/// The benchmark of the operations, which is optional.
pub(crate) const BENCHMARK: &str = "percid-bench-c";
