//! Where there is no Linux kernel that could be asked.

use std::sync::atomic::AtomicBool;

use super::options::Options;
use super::recorded::{Progress, Recorded};
use super::refusal::Refusal;

/// Records nothing: that takes Linux.
///
/// # Errors
///
/// Always [`Refusal::NotSupported`].
pub fn record(
    _options: &Options,
    _stop: &AtomicBool,
    _progress: impl FnMut(Progress),
) -> Result<Recorded, Refusal> {
    Err(Refusal::NotSupported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::options::Target;

    #[test]
    fn recording_is_refused_in_one_line() {
        let options = Options::new(Target::System);
        let refusal = record(&options, &AtomicBool::new(false), |_| {}).expect_err("no Linux");
        assert_eq!(
            refusal.to_string(),
            "recording needs Linux's tracefs or perf events: not supported here"
        );
        assert_eq!(refusal.exit_code(), 1);
    }
}
