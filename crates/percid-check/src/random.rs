//! The random numbers that operations get.

/// Random numbers for the choices of an operation: the same seed gives the same choices.
///
/// ```
/// use percid_check::Random;
///
/// let (mut one, mut other) = (Random::new(7), Random::new(7));
/// assert_eq!(one.below(100), other.below(100));
/// ```
#[derive(Debug, Clone)]
pub struct Random(fastrand::Rng);

impl Random {
    /// Creates the sequence of a seed.
    ///
    /// ```
    /// let mut random = percid_check::Random::new(7);
    /// assert!(random.below(3) < 3);
    /// ```
    pub fn new(seed: u64) -> Random {
        Random(fastrand::Rng::with_seed(seed))
    }

    /// Returns a number from 0 to `end` - 1.
    ///
    /// ```
    /// assert_eq!(percid_check::Random::new(7).below(1), 0);
    /// ```
    ///
    /// # Panics
    ///
    /// `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    /// Creates the sequence of a part of a check: `part` makes it differ from the others.
    pub(crate) fn of_part(seed: u64, part: u64) -> Random {
        Random(fastrand::Rng::with_seed(Random::new(seed).0.u64(..) ^ Random::new(part).0.u64(..)))
    }
}
