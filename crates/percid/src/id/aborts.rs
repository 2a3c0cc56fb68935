//! The results of a probe of the kernel.

/// Number of rounds of each kind that must end in an abort before the kernel is trusted.
pub(crate) const ENOUGH: u64 = 2;

/// The results of the rounds of one kind.
///
/// ```
/// use std::time::Duration;
///
/// if let Ok(probe) = percid::machine::probe(Duration::from_millis(20)) {
///     let fences: percid::machine::Aborts = probe.fences;
///     println!("{} aborted, {} ignored", fences.aborted, fences.ignored);
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Aborts {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Probe {
    /// Fences of all CPUs.
    pub fences: Aborts,
    /// Fences of the section's CPU alone.
    pub fences_of_one_cpu: Aborts,
    /// Preemptions on the section's CPU.
    pub preemptions: Aborts,
}

impl Probe {
    fn all(&self) -> [Aborts; 3] {
        [self.fences, self.fences_of_one_cpu, self.preemptions]
    }

    /// Returns `true` if the kernel ignored an event that must abort a section.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// if let Ok(probe) = percid::machine::probe(Duration::from_millis(20)) {
    ///     assert!(!(probe.is_bad() && probe.is_good()));
    /// }
    /// ```
    pub fn is_bad(&self) -> bool {
        self.all().iter().any(|kind| kind.ignored > 0)
    }

    /// Returns `true` if the kernel aborted often enough, for each kind, to be trusted.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// if percid::machine::probe(Duration::from_millis(20)).is_ok_and(|probe| probe.is_good()) {
    ///     println!("this kernel aborts critical sections when it must");
    /// }
    /// ```
    pub fn is_good(&self) -> bool {
        !self.is_bad() && self.all().iter().all(|kind| kind.aborted >= ENOUGH)
    }
}
