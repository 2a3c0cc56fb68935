//! The exponential function and the logarithm, by tables.
//!
//! Simulations evaluate both for nearly each event of a thread with its own data. These functions
//! use additions, multiplications and table lookups only, which IEEE 754 defines to the last bit.
//! So results are equal on every machine. The compiler computes the tables. (Tang, "Table-Driven
//! Implementation of the Exponential Function in IEEE Floating-Point Arithmetic", 1989, and the
//! same for the logarithm, 1990.)

/// Binary logarithm of the number of entries per octave.
const BITS: u32 = 7;
const ENTRIES: usize = 1 << BITS;

/// The first part of ln 2 / `ENTRIES`, with trailing zeros, so that products with small integers
/// are exact; and the rest.
const STEP: (f64, f64) = (LN_2.0 / ENTRIES as f64, LN_2.1 / ENTRIES as f64);
const LN_2: (f64, f64) =
    (f64::from_bits(0x3fe6_2e42_fefa_0000), f64::from_bits(0x3d7c_f79a_bc9e_3b3a));

/// 2^(-i / `ENTRIES`) for each i.
static POWERS: [f64; ENTRIES] = powers();

/// Number of fraction bits of a number of type `f64`.
const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;

/// The smallest number whose neighbours are at a distance of 1.
const ROUNDING: f64 = (1u64 << FRACTION) as f64;

/// The bits of the first number with which an octave of the logarithm's table begins. It is chosen
/// so that 1 is in the middle of an interval: the logarithms near 1 have no rounding error of a
/// table.
const FIRST: u64 = 1.0f64.to_bits() - (80 << (FRACTION - BITS)) - (1 << (FRACTION - BITS - 1));

/// The reciprocal and the logarithm of the middle of each interval.
static LOGARITHMS: Logarithms = logarithms();

type Logarithms = [(f64, f64); ENTRIES];

/// Returns the exponential function of `-x` for an `x` that is not negative.
#[inline]
pub(crate) fn decay(x: f64) -> f64 {
    // A smaller result makes no difference to callers, which subtract it from 1.
    if x.is_nan() || x >= 40.0 {
        return 0.0;
    }
    // The sum has no bits for fractions, so it is rounded, and its last bits are the integer.
    let sum = x * (1.0 / (STEP.0 + STEP.1)) + ROUNDING;
    let (steps, count) = (sum - ROUNDING, sum.to_bits());
    let rest = (steps * STEP.0 - x) + steps * STEP.1;
    let octaves = count << (64 - FRACTION) >> (64 - FRACTION) >> BITS;
    let power = POWERS[count as usize % ENTRIES].to_bits() - (octaves << FRACTION);
    let square = rest * rest;
    // The Taylor series of the exponential function of the rest, without 1.
    let from_second = 1.0 / 2.0 + rest * (1.0 / 6.0);
    let from_fourth = 1.0 / 24.0 + rest * (1.0 / 120.0);
    let more = rest + square * (from_second + square * from_fourth);
    let power = f64::from_bits(power);
    power + power * more
}

/// Returns the natural logarithm of a normal positive number.
#[inline]
pub(crate) fn logarithm(x: f64) -> f64 {
    by_table(x, &LOGARITHMS)
}

#[inline]
fn by_table(x: f64, table: &Logarithms) -> f64 {
    let bits = x.to_bits();
    let beyond = bits.wrapping_sub(FIRST);
    let exponent = (beyond as i64 >> FRACTION) as f64;
    let interval = (beyond >> (FRACTION - BITS)) as usize % ENTRIES;
    let reduced = f64::from_bits(bits.wrapping_sub(beyond & (u64::MAX << FRACTION)));
    let (reciprocal, logarithm) = table[interval];
    // The difference is exact, because both numbers are near each other.
    let rest = (reduced - middle(interval)) * reciprocal;
    let square = rest * rest;
    // The Taylor series of the logarithm of 1 + rest.
    let from_second = -1.0 / 2.0 + rest * (1.0 / 3.0);
    let from_fourth = -1.0 / 4.0 + rest * (1.0 / 5.0);
    let from_sixth = -1.0 / 6.0 + rest * (1.0 / 7.0);
    let more = square * (from_second + square * (from_fourth + square * from_sixth));
    (exponent * LN_2.0 + logarithm) + (rest + (more + exponent * LN_2.1))
}

/// Returns the middle of an interval of the logarithm's table.
#[inline]
const fn middle(interval: usize) -> f64 {
    let below = 1 << (FRACTION - BITS - 1);
    f64::from_bits(FIRST + ((interval as u64) << (FRACTION - BITS)) + below)
}

const fn powers() -> [f64; ENTRIES] {
    let mut powers = [0.0; ENTRIES];
    let mut at = 0;
    while at < ENTRIES {
        powers[at] = exponential_series(-(at as f64 * STEP.0 + at as f64 * STEP.1));
        at += 1;
    }
    powers
}

/// Returns the exponential function of an `x` between -1 and 0, by its Taylor series.
const fn exponential_series(x: f64) -> f64 {
    let mut sum = 1.0;
    let mut term = 22;
    while term > 0 {
        sum = 1.0 + x * sum / term as f64;
        term -= 1;
    }
    sum
}

const fn logarithms() -> Logarithms {
    let mut logarithms = [(0.0, 0.0); ENTRIES];
    let mut at = 0;
    while at < ENTRIES {
        let middle = middle(at);
        logarithms[at] = (1.0 / middle, logarithm_series(middle));
        at += 1;
    }
    logarithms
}

/// Returns the logarithm of an `x` between 1/2 and 2, by the series of the area tangent.
const fn logarithm_series(x: f64) -> f64 {
    let tangent = (x - 1.0) / (x + 1.0);
    let square = tangent * tangent;
    let mut sum = 0.0;
    let mut term = 41;
    while term > 0 {
        sum = sum * square + 1.0 / term as f64;
        term -= 2;
    }
    2.0 * tangent * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Largest accepted error, relative to the larger one of the value and 1: twice the distance
    /// between 1 and the next larger number.
    const MAX_ERROR: f64 = 2.0 * f64::EPSILON;

    /// Returns the largest difference between two functions at numbers of all magnitudes from
    /// 2^-60 to `largest`, relative to the larger one of the value and 1.
    fn error(largest: f64, found: impl Fn(f64) -> f64, expected: impl Fn(f64) -> f64) -> f64 {
        let mut random = Random::new(5);
        let mut most = 0.0f64;
        for step in 0..1_000_000u64 {
            let magnitude = libm::exp2(-((step % 61) as f64));
            let x = magnitude * largest * (1.0 - random.unit());
            let expected = expected(x);
            most = most.max((found(x) - expected).abs() / expected.abs().max(1.0));
        }
        most
    }

    #[test]
    fn decay_is_the_exponential_function() {
        let error = error(50.0, decay, |x| libm::exp(-x));
        assert!(error <= MAX_ERROR, "{error}");
        assert_eq!((decay(0.0), decay(1e300), decay(f64::INFINITY)), (1.0, 0.0, 0.0));
        assert!(1.0 - libm::exp(-40.0) == 1.0, "the limit changes no difference from 1");
    }

    #[test]
    fn logarithm_is_that_of_the_library() {
        for largest in [1.0, 1.5, 1e300] {
            let error = error(largest, logarithm, libm::log);
            assert!(error <= MAX_ERROR, "{largest}: {error}");
        }
        // Next to 1 the relative error is small, too.
        for x in [1.0 - f64::EPSILON / 2.0, 1.0 + f64::EPSILON, 1.0 - 1e-9, 1.0 + 1e-5] {
            let (found, expected) = (logarithm(x), libm::log(x));
            assert!((found / expected - 1.0).abs() <= MAX_ERROR, "{x}: {found} {expected}");
        }
        assert_eq!(logarithm(1.0), 0.0);
    }

    /// The control: one wrong entry, or a table of one octave only, is detected.
    #[test]
    fn wrong_tables_have_larger_errors() {
        let mut wrong = LOGARITHMS;
        wrong[17].1 += 1e-14;
        assert!(error(1.0, |x| by_table(x, &wrong), libm::log) > MAX_ERROR);
        wrong = LOGARITHMS;
        wrong[99].0 += 1e-12;
        assert!(error(1.0, |x| by_table(x, &wrong), libm::log) > MAX_ERROR);
        assert!(error(50.0, |x| decay(x) * (1.0 + 1e-15), |x| libm::exp(-x)) > MAX_ERROR);
    }

    /// The values of these bits must be the same on every machine.
    #[test]
    fn values_are_part_of_the_interface() {
        let mut random = Random::new(11);
        let mut hash = 0u64;
        for _ in 0..100_000 {
            let x = 1.0 - random.unit();
            for bits in [logarithm(x).to_bits(), decay(40.0 * x).to_bits()] {
                hash = (hash ^ bits).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
            }
        }
        assert_eq!(hash, 0x7836_7084_ecea_0c58, "{hash:#x}");
    }
}
