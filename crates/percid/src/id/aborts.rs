//! The results of a probe of the kernel.

/// Number of rounds of each kind that must end in an abort before the kernel is trusted.
pub(crate) const ENOUGH: u64 = 2;

/// The results of the rounds of one kind.
///
/// ```
/// use std::time::Duration;
///
/// if let Ok(probe) = percid::machine::probe(Duration::from_millis(20)) {
///     let fences: percid::machine::ProbeCounts = probe.fences;
///     println!("{} aborted, {} ignored", fences.aborted, fences.ignored);
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub struct ProbeCounts {
    /// The section was aborted, as it must be.
    pub aborted: u64,
    /// The section continued and committed: a kernel bug.
    pub ignored: u64,
    /// No result: the thread was moved, or nothing happened in time.
    pub undecided: u64,
}

/// The observations of a probe of the kernel, see [`machine::probe`](crate::machine::probe).
///
/// ```
/// use std::time::Duration;
///
/// match percid::machine::probe(Duration::from_millis(20)) {
///     Ok(probe) => println!("{probe:?}"),
///     Err(why) => println!("not probed: {why}"),
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub struct ProbeReport {
    /// Fences of all CPUs.
    pub fences: ProbeCounts,
    /// Fences of the section's CPU alone.
    pub fences_of_one_cpu: ProbeCounts,
    /// Preemptions on the section's CPU.
    pub preemptions: ProbeCounts,
}

impl ProbeReport {
    fn all(&self) -> [ProbeCounts; 3] {
        [self.fences, self.fences_of_one_cpu, self.preemptions]
    }

    /// Returns `true` if the kernel ignored an event that must abort a section.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// if let Ok(probe) = percid::machine::probe(Duration::from_millis(20)) {
    ///     assert!(!(probe.detected_ignored() && probe.confirms_aborts()));
    /// }
    /// ```
    #[must_use]
    pub fn detected_ignored(&self) -> bool {
        self.all().iter().any(|kind| kind.ignored > 0)
    }

    /// Returns `true` if the kernel aborted often enough, for each kind, to be trusted.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// if percid::machine::probe(Duration::from_millis(20)).is_ok_and(|probe| probe.confirms_aborts()) {
    ///     println!("this kernel aborts critical sections when it must");
    /// }
    /// ```
    #[must_use]
    pub fn confirms_aborts(&self) -> bool {
        !self.detected_ignored() && self.all().iter().all(|kind| kind.aborted >= ENOUGH)
    }
}
