//! Floats in words that atomic instructions and critical sections update.

/// Returns the float whose bits a word holds.
pub(crate) fn float(bits: i64) -> f64 {
    f64::from_bits(bits as u64)
}

/// Returns the content of a word that holds a float.
pub(crate) fn float_bits(value: f64) -> i64 {
    value.to_bits() as i64
}
