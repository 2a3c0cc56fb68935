//! A small generator of random numbers, so that every run can be repeated from its seed.

/// Marsaglia's xorshift with the shifts 13, 7, 17 (Journal of Statistical Software 8, 2003).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Makes a generator for one of several threads of a run.
    pub(crate) fn new(seed: u64, thread: u64) -> Random {
        Random((seed ^ (thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1)
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

/// Returns the seed of this run: `PERCID_SEED`, or the time.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("PERCID_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64)
    })
}
