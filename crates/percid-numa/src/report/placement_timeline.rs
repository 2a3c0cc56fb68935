//! The times of the stages from a change to placed memory.

use std::time::Duration;

/// The stages from new regions, or a changed use of old ones, to pages on the nodes that use them.
///
/// Times are measured from the creation of the balancer, as its thread observes
/// them: within 0.1 s, and within 20 ms during activity. Stages that were not reached are `None`.
///
/// ```
/// use percid_numa::PlacementTimeline;
///
/// let ms = std::time::Duration::from_millis;
/// let mut episode = PlacementTimeline::default();
/// episode.began = ms(100);
/// (episode.armed, episode.seen) = (Some(ms(1150)), Some(ms(1170)));
/// assert_eq!(episode.arm_latency(), Some(ms(1050)));
/// assert_eq!(episode.first_access_latency(), Some(ms(20)));
/// assert_eq!((episode.decision_latency(), episode.migration_latency()), (None, None));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacementTimeline {
    /// Time of the beginning: a region was registered without other activity, or a change was
    /// detected.
    pub began: Duration,
    /// Time of the first arming of pages.
    pub armed: Option<Duration>,
    /// Time of the first access to an armed page.
    pub seen: Option<Duration>,
    /// Time at which the first page had a pending move.
    pub pending: Option<Duration>,
    /// Time of the last move so far.
    pub moved: Option<Duration>,
    /// Number of pages that moved.
    pub pages: u64,
    /// Number of system calls that moved them.
    pub batches: u64,
    /// Number of pages that were armed again because one more access had to decide.
    pub rearmed: u64,
}

impl PlacementTimeline {
    /// Returns the time until pages were armed: the scan delay, or the rest of a period.
    ///
    /// ```
    /// # let balancer = percid_numa::Balancer::new();
    /// for episode in balancer.report().timeline {
    ///     println!("{:?}", episode.arm_latency());
    /// }
    /// ```
    pub fn arm_latency(&self) -> Option<Duration> {
        Some(self.armed?.saturating_sub(self.began))
    }

    /// Returns the time from the first arming to the first access.
    ///
    /// ```
    /// # let balancer = percid_numa::Balancer::new();
    /// for episode in balancer.report().timeline {
    ///     println!("{:?}", episode.first_access_latency());
    /// }
    /// ```
    pub fn first_access_latency(&self) -> Option<Duration> {
        Some(self.seen?.saturating_sub(self.armed?))
    }

    /// Returns the time from the first access to the first pending move: the time in the two-stage
    /// filter.
    ///
    /// ```
    /// # let balancer = percid_numa::Balancer::new();
    /// for episode in balancer.report().timeline {
    ///     println!("{:?}", episode.decision_latency());
    /// }
    /// ```
    pub fn decision_latency(&self) -> Option<Duration> {
        Some(self.pending?.saturating_sub(self.seen?))
    }

    /// Returns the time from the first pending move to the last move so far.
    ///
    /// ```
    /// # let balancer = percid_numa::Balancer::new();
    /// for episode in balancer.report().timeline {
    ///     println!("{:?}", episode.migration_latency());
    /// }
    /// ```
    pub fn migration_latency(&self) -> Option<Duration> {
        Some(self.moved?.saturating_sub(self.pending?))
    }
}
