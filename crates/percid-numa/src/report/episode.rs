//! Where the time goes from a change to memory that is placed.

use std::time::Duration;

/// From new regions, or from another use of old ones, to pages that are where they are used. Times
/// are measured from when the balancer was made, as seen by its thread: within 0.1 s, and within
/// 20 ms while something is going on. What has not happened is `None`.
///
/// ```
/// use percid_numa::Episode;
///
/// let ms = std::time::Duration::from_millis;
/// let mut episode = Episode::default();
/// episode.began = ms(100);
/// (episode.armed, episode.seen) = (Some(ms(1150)), Some(ms(1170)));
/// assert_eq!(episode.start_delay(), Some(ms(1050)));
/// assert_eq!((episode.use_delay(), episode.filter(), episode.moving()), (Some(ms(20)), None, None));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Episode {
    /// A region was registered while nothing was going on, or a change of use was noticed.
    pub began: Duration,
    /// The first pages were armed.
    pub armed: Option<Duration>,
    /// The first access to one was seen.
    pub seen: Option<Duration>,
    /// The first page was to move.
    pub wanted: Option<Duration>,
    /// The last page so far has moved.
    pub moved: Option<Duration>,
    /// Pages that moved.
    pub pages: u64,
    /// System calls that moved them.
    pub batches: u64,
    /// Pages that were armed again because one more access was to decide.
    pub looked_again: u64,
}

impl Episode {
    /// Returns the time until pages were armed: the scan delay, or the rest of a period.
    ///
    /// ```
    /// # let balancer = percid_numa::Balancer::new();
    /// for episode in balancer.report().timeline {
    ///     println!("{:?}", episode.start_delay());
    /// }
    /// ```
    pub fn start_delay(&self) -> Option<Duration> {
        Some(self.armed?.saturating_sub(self.began))
    }

    /// Returns the time from then until one was used.
    ///
    /// ```
    /// # let balancer = percid_numa::Balancer::new();
    /// for episode in balancer.report().timeline {
    ///     println!("{:?}", episode.use_delay());
    /// }
    /// ```
    pub fn use_delay(&self) -> Option<Duration> {
        Some(self.seen?.saturating_sub(self.armed?))
    }

    /// Returns the time from then until a page was to move: what the two-stage filter took.
    ///
    /// ```
    /// # let balancer = percid_numa::Balancer::new();
    /// for episode in balancer.report().timeline {
    ///     println!("{:?}", episode.filter());
    /// }
    /// ```
    pub fn filter(&self) -> Option<Duration> {
        Some(self.wanted?.saturating_sub(self.seen?))
    }

    /// Returns the time from then until the last page so far had moved.
    ///
    /// ```
    /// # let balancer = percid_numa::Balancer::new();
    /// for episode in balancer.report().timeline {
    ///     println!("{:?}", episode.moving());
    /// }
    /// ```
    pub fn moving(&self) -> Option<Duration> {
        Some(self.moved?.saturating_sub(self.wanted?))
    }
}
