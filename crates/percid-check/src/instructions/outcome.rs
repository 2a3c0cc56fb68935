//! The outcome of the first part.

/// The outcome of the first part, if nothing was wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Instructions {
    /// Instructions were interrupted.
    #[allow(dead_code, reason = "only where there are sections")]
    Interrupted,
    /// None was, for this reason.
    Not(String),
}
