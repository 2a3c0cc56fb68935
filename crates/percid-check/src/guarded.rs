//! Calls of the structure whose panics are findings.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the result of `call`, or the text of its panic.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        format!("panic: {}", text.unwrap_or_else(|| "without a text".to_owned()))
    })
}
