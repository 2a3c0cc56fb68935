//! What percid's table has had to do so far.

/// How often the slow path of percid's table ran in this process, and what it took from whom.
///
/// A program whose threads wander sees by two of these, a second apart, what its IDs cost: a slow
/// path takes 1 us or less, a steal from a CPU that runs the process some 10 us. A child of `fork`
/// starts at zero.
///
/// ```
/// percid::init();
/// if let Some(activity) = percid::id::activity() {
///     println!("{} IDs given, {} of them stolen", activity.given, activity.stolen);
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
#[repr(C)]
pub struct Activity {
    /// IDs given to CPUs that had none: the slow paths that succeeded.
    pub given: u64,
    /// Of these, the ones taken from another CPU, with a fence of that CPU.
    pub stolen: u64,
    /// IDs taken back because they had expired or lay above the bound.
    pub evicted: u64,
    /// Fences of all CPUs for that.
    pub evictions: u64,
    /// IDs held by CPUs at the moment.
    pub held: u32,
    /// New IDs are below this at the moment.
    pub max_nr_cid: u32,
}
