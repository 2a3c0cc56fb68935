//! Recording on systems without a Linux kernel.

use std::sync::atomic::AtomicBool;

use super::options::Options;
use super::recorded::{Ended, Progress};
use super::refusal::Refusal;
use super::sink::Sink;

/// Records nothing: that takes Linux.
///
/// # Errors
///
/// Always [`Refusal::NotSupported`].
pub fn record_to(
    _options: &Options,
    _stop: &AtomicBool,
    _sink: &mut dyn Sink,
    _progress: impl FnMut(Progress),
) -> Result<Ended, Refusal> {
    Err(Refusal::NotSupported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::options::Target;
    use crate::record::record;

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
