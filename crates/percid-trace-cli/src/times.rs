//! Times in tables.

/// Formats a time in milliseconds, to the microsecond: longer ones rounded down, as perf does.
pub(crate) fn ms(ns: u64) -> String {
    let us = ns / 1000;
    format!("{}.{:03}", us / 1000, us % 1000)
}

/// Formats a time that may be missing.
pub(crate) fn ms_if(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), ms)
}

/// A moment, in seconds.
pub(crate) fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000)
}

/// A share in percent.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}", 100.0 * part as f64 / whole.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_to_the_microsecond() {
        assert_eq!([0, 999, 1000, 12_345_678].map(ms), ["0.000", "0.000", "0.001", "12.345"]);
        assert_eq!((ms_if(None), ms_if(Some(5000))), ("-".into(), "0.005".into()));
        assert_eq!(seconds(3_000_001_999), "3.000001");
        assert_eq!((percent(1, 3), percent(0, 0)), ("33.3".into(), "0.0".into()));
    }
}
