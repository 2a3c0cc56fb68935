//! What a program found.

/// Figures if all is well, else what is wrong.
pub(crate) type Verdict = Result<String, String>;
