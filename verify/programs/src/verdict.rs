//! The result of a program.

/// Figures if everything passed, otherwise the failure.
pub(crate) type Verdict = Result<String, String>;
