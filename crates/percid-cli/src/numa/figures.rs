//! Formatting of values in text.

use std::time::Duration;

const MIB: f64 = 1_048_576.0;

/// Formats a share as a percentage without its sign, or a dash if it is unknown.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1}", 100.0 * share))
}

/// Returns a part as a share of the whole; `None` if the whole is 0.
pub(crate) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / MIB)
}

/// Formats a time in milliseconds.
pub(crate) fn milliseconds(ns: u64) -> String {
    format!("{:.1}", Duration::from_nanos(ns).as_secs_f64() * 1e3)
}

/// Formats names with counts, without those of zero; a dash if all are zero.
pub(crate) fn counts<N: std::fmt::Display>(counts: impl IntoIterator<Item = (N, u64)>) -> String {
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let texts: Vec<String> = counts.map(|(name, count)| format!("{name} {count}")).collect();
    if texts.is_empty() { "-".to_owned() } else { texts.join(", ") }
}
