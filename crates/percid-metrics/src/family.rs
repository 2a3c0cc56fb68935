//! Metrics by their labels.

#[cfg(feature = "recorder")]
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::io::Write;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
#[cfg(feature = "recorder")]
use std::sync::atomic::{Ordering::Acquire, fence};
use std::sync::{Arc, LockResult, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use foldhash::fast::RandomState;
use percid::Local;

use crate::entries::{Entries, MetricEntry, NoMemory, hold_begins};
use crate::per_id_cache::PerIdCache;

/// Creates the metric of a new label set.
///
/// Implemented for closures that return a metric.
pub trait NewMetric<M> {
    /// Creates a metric.
    fn new_metric(&self) -> M;
}

impl<M, F: Fn() -> M> NewMetric<M> for F {
    fn new_metric(&self) -> M {
        self()
    }
}

/// A metric for every label set. Clones are the same family.
///
/// ```
/// use percid_metrics::{Counter, Family};
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// struct Labels {
///     path: &'static str,
///     status: u16,
/// }
///
/// let requests = Family::<Labels, Counter>::default();
/// requests.with(&Labels { path: "/index", status: 200 }, |counter| counter.inc());
/// requests.with(&Labels { path: "/index", status: 404 }, |counter| counter.inc_by(2));
/// assert_eq!(requests.len(), 2);
/// assert_eq!(requests.with(&Labels { path: "/index", status: 404 }, |counter| counter.get()), 2);
/// ```
///
/// # Contract
///
/// * **Cost**: a label set that this CPU has used before is found in memory of this CPU, without an
///   allocation. This costs its hash, a [`percid::Local`], and a comparison of the labels. Other
///   label sets are looked up in a map under a lock.
/// * **Memory**: each label set has an entry in the map. Each CPU's table has an entry for each
///   label set that the CPU has used, at most 8192. For the per-CPU memory of the metric itself,
///   see the metric.
/// * **Limit**: a family may be [limited](Family::with_limit). Label sets beyond the limit share
///   one additional label set, so that no value is lost.
/// * **Threads**: any number of threads may call every method at once. Two threads that use the
///   same new label set get the same metric.
/// * **Signals**: no method may be called in a signal handler.
/// * **Fork**: if another thread held a lock at the `fork`, the lock stays locked in the child.
///   Then the lookup of a label set that is new in the child may block forever.
pub struct Family<S, M, C = fn() -> M> {
    shared: Arc<Shared<S, M, C>>,
}

struct Shared<S, M, C> {
    new_metric: C,
    hasher: RandomState,
    entries: RwLock<Entries<S, M>>,
    cache: PerIdCache<Arc<OfId<S, M>>>,
    rooms: Local<Vec<Room<S, M>>>,
    limit: Option<Limit<S>>,
}

/// One ID's reference to an entry. Its reference count belongs to that ID, so CPUs that look up the
/// same entry do not write to the same word.
pub(crate) struct OfId<S, M>(Arc<MetricEntry<S, M>>);

/// Memory for a reference that has no entry yet.
type Room<S, M> = Arc<MaybeUninit<OfId<S, M>>>;

/// Number of rooms that are allocated together for an ID. So its reference counts do not share
/// cache lines with those of other IDs.
const TOGETHER: usize = 16;

/// Number of metrics that are removed under one hold of the lock. Each is read there, which costs a
/// cache line for every ID. Fewer are worse: a waiting thread must have the time to wake up while
/// they are dropped. Otherwise this thread takes the lock again first.
#[cfg(feature = "recorder")]
const FORGOTTEN_TOGETHER: usize = 256;

/// Returns `true` if only `entry` itself and the map refer to an entry.
#[cfg(feature = "recorder")]
fn is_nobodys<S, M>(entry: &Arc<MetricEntry<S, M>>) -> bool {
    let is_nobodys = Arc::strong_count(entry) == 2;
    // Acquire: makes visible all updates by dropped handles.
    // #[gamma::skip(stmt, reason = "only a model of memory sees it")]
    fence(Acquire);
    is_nobodys
}

#[cfg(feature = "recorder")]
impl<S, M> OfId<S, M> {
    #[inline(always)]
    pub(crate) fn metric(&self) -> &M {
        &self.0.metric
    }
}

struct Limit<S> {
    most: usize,
    beyond: S,
    refused: AtomicU64,
    /// The name of the metric, if the family knows it.
    name: Option<Box<str>>,
}

/// A reference to a metric of a family.
pub struct Cached<S, M>(Arc<OfId<S, M>>);

impl<S, M> Deref for Cached<S, M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.0.0.metric
    }
}

impl<S, M: fmt::Debug> fmt::Debug for Cached<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cached").field(&**self).finish()
    }
}

impl<S, M, C> Family<S, M, C>
where
    S: Clone + Eq + Hash + Send + Sync,
    M: Send + Sync,
    C: NewMetric<M>,
{
    /// Creates a family whose metrics are created by `new_metric`.
    ///
    /// ```
    /// use percid_metrics::{Family, Histogram};
    ///
    /// let sizes = Family::new_with_constructor(|| Histogram::new([1e3, 1e6, 1e9]));
    /// sizes.with(&"upload", |histogram: &Histogram| histogram.observe(5000.0));
    /// ```
    pub fn new_with_constructor(new_metric: C) -> Family<S, M, C> {
        Family::made(new_metric, None)
    }

    /// Creates a family of at most `most` label sets, and one more: the metric of `beyond` counts
    /// the updates of all other label sets.
    ///
    /// The first refused label set is reported on standard error. [`refused`](Family::refused)
    /// returns the number of refusals.
    ///
    /// ```
    /// use percid_metrics::{Counter, Family};
    ///
    /// let requests = Family::with_limit(Counter::default, 100, "other".to_owned());
    /// for user in 0..1000 {
    ///     requests.with(&format!("user {user}"), |counter: &Counter| counter.inc());
    /// }
    /// assert_eq!(requests.len(), 101);
    /// assert_eq!(requests.with(&"other".to_owned(), |counter| counter.get()), 900);
    /// assert_eq!(requests.refused(), 900);
    /// ```
    pub fn with_limit(new_metric: C, most: usize, beyond: S) -> Family<S, M, C> {
        let refused = AtomicU64::new(0);
        Family::made(new_metric, Some(Limit { most, beyond, refused, name: None }))
    }

    /// Creates a limited family whose message about its limit has the metric's name.
    pub(crate) fn with_name_and_limit(
        name: &str,
        new_metric: C,
        most: usize,
        beyond: S,
    ) -> Family<S, M, C> {
        let refused = AtomicU64::new(0);
        Family::made(new_metric, Some(Limit { most, beyond, refused, name: Some(name.into()) }))
    }

    fn made(new_metric: C, limit: Option<Limit<S>>) -> Family<S, M, C> {
        let rooms: Local<_> = Local::new(Vec::new);
        let (hasher, entries, cache) =
            (RandomState::default(), RwLock::default(), PerIdCache::new());
        Family { shared: Arc::new(Shared { new_metric, hasher, entries, cache, rooms, limit }) }
    }

    /// Calls `use_it` with the metric of `labels`. Creates the metric if there is none.
    ///
    /// This CPU's table is locked during the call. So `use_it` must not remove label sets of this
    /// family: the removal would have to wait for `use_it`, and panics.
    #[inline]
    pub fn with<R>(&self, labels: &S, use_it: impl FnOnce(&M) -> R) -> R {
        let hash = self.shared.hasher.hash_one(labels);
        let mut use_it = Some(use_it);
        let mut take_and_use = |metric: &M| use_it.take().map(|use_it| use_it(metric));
        let is_it = |cached: &Arc<OfId<S, M>>| cached.0.labels == *labels;
        let found =
            self.shared.cache.find(hash, is_it, |cached| take_and_use(&cached.0.metric)).flatten();
        match found {
            Some(result) => result,
            None => match take_and_use(&self.look_up(hash, labels, &self.constructor()).0.metric) {
                Some(result) => result,
                None => unreachable!("it is used once: by what was found, or else here"),
            },
        }
    }

    /// Returns the metric of `labels`. Creates it if there is none. [`with`](Family::with) is
    /// faster: it counts no reference.
    pub fn get_or_create(&self, labels: &S) -> Cached<S, M> {
        let hash = self.shared.hasher.hash_one(labels);
        let is_it = |cached: &Arc<OfId<S, M>>| cached.0.labels == *labels;
        let found = self.shared.cache.find(hash, is_it, Arc::clone);
        Cached(found.unwrap_or_else(|| self.look_up(hash, labels, &self.constructor())))
    }

    /// Returns the hash by which labels are found.
    #[inline]
    pub(crate) fn hash_of(&self, labels: &impl Hash) -> u64 {
        self.shared.hasher.hash_one(labels)
    }

    /// Returns the metric of labels that this CPU has used before. Its address is valid until the
    /// labels are removed.
    #[inline]
    pub(crate) fn seen(&self, hash: u64, is_it: impl FnOnce(&S) -> bool) -> Option<NonNull<M>> {
        let is_it = |cached: &Arc<OfId<S, M>>| is_it(&cached.0.labels);
        self.shared.cache.find(hash, is_it, |cached| NonNull::from(&cached.0.metric))
    }

    /// Returns the metric of labels that this CPU has not used before. Creates it if there is none.
    /// Its address is valid until the labels are removed.
    ///
    /// # Errors
    ///
    /// [`NoMemory`] if there is no memory for one more.
    pub(crate) fn first_seen(&self, hash: u64, labels: &S) -> Result<NonNull<M>, NoMemory> {
        let of_id = self.try_look_up(hash, labels, &self.constructor())?;
        Ok(NonNull::from(&of_id.0.metric))
    }

    /// Returns the reference of [`get_or_create`](Family::get_or_create) itself.
    #[cfg(feature = "recorder")]
    pub(crate) fn handle(&self, labels: &S) -> Arc<OfId<S, M>> {
        self.get_or_create(labels).0
    }

    /// Like [`handle`](Family::handle), with a constructor for these labels.
    #[cfg(feature = "recorder")]
    pub(crate) fn handle_or(&self, labels: &S, new: impl Fn() -> M) -> Arc<OfId<S, M>> {
        let hash = self.shared.hasher.hash_one(labels);
        let is_it = |cached: &Arc<OfId<S, M>>| cached.0.labels == *labels;
        let found = self.shared.cache.find(hash, is_it, Arc::clone);
        found.unwrap_or_else(|| self.look_up(hash, labels, &new))
    }

    /// Removes the idle metrics without handles, and calls `tell` with their labels. `is_idle`
    /// returns `true` for idle metrics. `state` is passed to both.
    ///
    /// No update of a removed metric is lost. Every handle is a reference to its entry. The tables
    /// of IDs drop their references first, and no new handle is created while the map is locked. So
    /// the value that `is_idle` reads under the lock is final. The lock is held for
    /// [`FORGOTTEN_TOGETHER`] metrics at a time. Other threads get the lock while `tell` runs and
    /// the metrics are dropped.
    #[cfg(feature = "recorder")]
    pub(crate) fn forget<T>(
        &self,
        state: &mut T,
        is_idle: impl Fn(&T, &S, &M) -> bool,
        tell: impl Fn(&mut T, &S),
    ) {
        let mut found = Vec::new();
        self.for_each_entry(|entry| {
            let is_idle = is_idle(state, &entry.labels, &entry.metric);
            found.extend(is_idle.then(|| Arc::clone(entry)));
        });
        // #[gamma::skip(cond, reason = "it only saves a look at all tables")]
        if found.is_empty() {
            return;
        }
        let addresses: HashSet<*const MetricEntry<S, M>> = found.iter().map(Arc::as_ptr).collect();
        let is_kept = |cached: &Arc<OfId<S, M>>| !addresses.contains(&Arc::as_ptr(&cached.0));
        self.shared.cache.retain(is_kept);
        // #[gamma::skip(expr, reason = "any number does")]
        let together = found.chunks(FORGOTTEN_TOGETHER);
        for some in together {
            let mut entries = self.shared.write();
            let is_gone = |entry: &&Arc<MetricEntry<S, M>>| {
                is_nobodys(entry)
                    && is_idle(state, &entry.labels, &entry.metric)
                    && entries.remove(entry.hash, |there| Arc::ptr_eq(there, entry)).is_some()
            };
            let gone: Vec<_> = some.iter().filter(is_gone).collect();
            drop(entries);
            gone.iter().for_each(|entry| tell(state, &entry.labels));
        }
    }

    /// Looks up a label set that is not in the table of this ID.
    #[cold]
    fn look_up(&self, hash: u64, labels: &S, new: &dyn Fn() -> M) -> Arc<OfId<S, M>> {
        match self.try_look_up(hash, labels, new) {
            Ok(found) => found,
            Err(NoMemory) => panic!("percid-metrics: no memory for another label set"),
        }
    }

    #[cold]
    fn try_look_up(
        &self,
        hash: u64,
        labels: &S,
        new: &dyn Fn() -> M,
    ) -> Result<Arc<OfId<S, M>>, NoMemory> {
        let entry = self.entry(hash, labels, new)?;
        let of_id = self.of_id(entry);
        if of_id.0.labels == *labels {
            self.shared.cache.insert(hash, Arc::clone(&of_id));
        }
        Ok(of_id)
    }

    /// Returns this ID's own reference to an entry.
    fn of_id(&self, entry: Arc<MetricEntry<S, M>>) -> Arc<OfId<S, M>> {
        let room = self.shared.rooms.try_with(|rooms| {
            if rooms.is_empty() {
                rooms.extend(std::iter::repeat_with(Arc::new_uninit).take(TOGETHER));
            }
            rooms.pop()
        });
        let mut room = room.flatten().unwrap_or_else(Arc::new_uninit);
        match Arc::get_mut(&mut room) {
            Some(place) => _ = place.write(OfId(entry)),
            None => unreachable!("nobody else has seen it"),
        }
        // SAFETY: the value is initialized: the `match` has either written it or panicked.
        unsafe { room.assume_init() }
    }

    fn constructor(&self) -> impl Fn() -> M + '_ {
        || self.shared.new_metric.new_metric()
    }

    fn entry(
        &self,
        hash: u64,
        labels: &S,
        new: &dyn Fn() -> M,
    ) -> Result<Arc<MetricEntry<S, M>>, NoMemory> {
        let is_it = |entry: &Arc<MetricEntry<S, M>>| entry.labels == *labels;
        let is_refused = {
            let entries = self.shared.read();
            if let Some(entry) = entries.find(hash, is_it) {
                return Ok(Arc::clone(entry));
            }
            self.shared.refuses(&entries, labels)
        };
        // New label sets beyond the limit do not take the write lock, so they block no other
        // thread.
        if let Some(limit) = is_refused {
            return self.beyond(limit, new);
        }
        let mut entries = self.shared.write();
        if let Some(entry) = entries.find(hash, is_it) {
            return Ok(Arc::clone(entry));
        }
        if let Some(limit) = self.shared.refuses(&entries, labels) {
            drop(entries);
            return self.beyond(limit, new);
        }
        entries.reserve(hash)?;
        let new = Arc::new(MetricEntry { hash, labels: labels.clone(), metric: new() });
        entries.insert(Arc::clone(&new));
        Ok(new)
    }

    /// Returns the entry for label sets beyond the limit.
    fn beyond(
        &self,
        limit: &Limit<S>,
        new: &dyn Fn() -> M,
    ) -> Result<Arc<MetricEntry<S, M>>, NoMemory> {
        limit.refuse();
        self.entry(self.shared.hasher.hash_one(&limit.beyond), &limit.beyond, new)
    }

    /// Removes a label set and its metric. Returns `true` if there was one. Threads that still have
    /// the metric continue to update it, but the family no longer contains it.
    pub fn remove(&self, labels: &S) -> bool {
        let hash = self.shared.hasher.hash_one(labels);
        let removed = self.shared.write().remove(hash, |entry| entry.labels == *labels);
        self.shared.cache.retain(|cached| cached.0.labels != *labels);
        removed.is_some()
    }

    /// Removes all label sets.
    pub fn clear(&self) {
        // Dropped at the end of the function, after the lock is released.
        let _all = std::mem::take(&mut *self.shared.write());
        self.shared.cache.retain(|_| false);
    }
}

impl<S, M, C> Shared<S, M, C> {
    fn read(&self) -> RwLockReadGuard<'_, Entries<S, M>> {
        held(self.entries.read())
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries<S, M>> {
        held(self.entries.write())
    }
}

fn held<G>(lock: LockResult<G>) -> G {
    hold_begins();
    lock.unwrap_or_else(PoisonError::into_inner)
}

impl<S: Eq + Hash, M, C> Shared<S, M, C> {
    /// Returns the limit, if it does not allow new labels.
    fn refuses(&self, entries: &Entries<S, M>, labels: &S) -> Option<&Limit<S>> {
        let limit = self.limit.as_ref()?;
        if limit.beyond == *labels {
            return None;
        }
        let hash = self.hasher.hash_one(&limit.beyond);
        let has_beyond = entries.find(hash, |entry| entry.labels == limit.beyond).is_some();
        (entries.len() - usize::from(has_beyond) >= limit.most).then_some(limit)
    }
}

impl<S, M, C> Family<S, M, C> {
    /// Returns all label sets and their metrics, unordered. The same as in
    /// [`for_each`](Family::for_each).
    ///
    /// # Errors
    ///
    /// [`NoMemory`] if there is no memory for the list.
    pub(crate) fn all(&self) -> Result<Vec<Arc<MetricEntry<S, M>>>, NoMemory> {
        let mut all = Vec::new();
        all.try_reserve_exact(self.len()).map_err(|_| NoMemory)?;
        self.copy_buckets(&mut all, |_| ())?;
        Ok(all)
    }

    /// Appends the references bucket by bucket. After each bucket, calls `visit` with the list,
    /// without a lock.
    fn copy_buckets(
        &self,
        copied: &mut Vec<Arc<MetricEntry<S, M>>>,
        mut visit: impl FnMut(&mut Vec<Arc<MetricEntry<S, M>>>),
    ) -> Result<(), NoMemory> {
        let mut next = Some(0);
        while let Some(place) = next {
            // The lock is released at the end of this statement.
            next = self.shared.read().copy_bucket(place, copied)?;
            debug_assert!(next.is_none_or(|next| next > place), "it ends");
            visit(copied);
        }
        Ok(())
    }

    /// Returns the number of label sets.
    pub fn len(&self) -> usize {
        self.shared.read().len()
    }

    /// Returns `true` if there are no label sets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how often the metric for label sets beyond the limit was looked up.
    pub fn refused(&self) -> u64 {
        self.shared.limit.as_ref().map_or(0, |limit| limit.refused.load(Relaxed))
    }

    /// Calls `visit` with all label sets and their metrics, unordered.
    ///
    /// Label sets that exist during the whole call are visited once. Those that are added or
    /// removed during the call are visited once or not at all. A thread that adds or removes one
    /// waits while at most 3584 references are copied, for any number of label sets. It does not
    /// wait while `visit` runs, so `visit` may add and remove label sets.
    ///
    /// # Panics
    ///
    /// If there is no memory for these references.
    pub fn for_each(&self, mut visit: impl FnMut(&S, &M)) {
        self.for_each_entry(|entry| visit(&entry.labels, &entry.metric));
    }

    fn for_each_entry(&self, mut visit: impl FnMut(&Arc<MetricEntry<S, M>>)) {
        let visit_all = |all: &mut Vec<_>| all.drain(..).for_each(|entry| visit(&entry));
        match self.copy_buckets(&mut Vec::new(), visit_all) {
            Ok(()) => {}
            Err(NoMemory) => panic!("percid-metrics: no memory for a list of label sets"),
        }
    }
}

impl<S> Limit<S> {
    fn refuse(&self) {
        if self.refused.fetch_add(1, Relaxed) == 0 {
            // If standard error cannot be written to, the message is lost.
            let _ = writeln!(std::io::stderr(), "{}", self.message());
        }
    }

    fn message(&self) -> String {
        let (name, most) = (self.name.as_deref().unwrap_or("a family"), self.most);
        format!(
            "percid-metrics: {name} has {most} label sets, its limit; others are counted together"
        )
    }
}

impl<S, M> Default for Family<S, M>
where
    S: Clone + Eq + Hash + Send + Sync,
    M: Default + Send + Sync,
{
    fn default() -> Self {
        Family::new_with_constructor(M::default)
    }
}

impl<S, M, C> Clone for Family<S, M, C> {
    fn clone(&self) -> Self {
        Family { shared: Arc::clone(&self.shared) }
    }
}

impl<S: fmt::Debug, M: fmt::Debug, C> fmt::Debug for Family<S, M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        self.for_each(|labels, metric| _ = map.entry(labels, metric));
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counter;
    use crate::entries::most_visits;

    #[test]
    fn threads_that_come_with_the_same_labels_get_the_same_metric() {
        let family = Family::<u32, Counter>::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for n in 0..20_000 {
                        family.with(&(n % 300), Counter::inc);
                        family.get_or_create(&(n % 7)).inc();
                    }
                });
            }
        });
        let mut total = 0;
        family.for_each(|_, counter| total += counter.get());
        assert_eq!((family.len(), total), (300, 8 * 40_000));
    }

    const MANY: u32 = 20_000;
    /// A full bucket, and the entries that are compared before it is full.
    const MAX_VISITS: usize = 4096;

    /// The bound holds for any number of entries and for all operations on all of them.
    #[test]
    fn the_lock_is_held_for_a_bounded_number_of_entries() {
        let family = Family::<u32, Counter>::default();
        let add = || (0..MANY).for_each(|n| family.with(&n, Counter::inc));

        assert!((100..=MAX_VISITS).contains(&most_visits(add)), "a bucket is split");
        let all = || assert_eq!(family.all().map(|all| all.len()), Ok(MANY as usize));
        assert!((100..=MAX_VISITS).contains(&most_visits(all)));
        let mut seen = 0;
        assert!((100..=MAX_VISITS).contains(&most_visits(|| family.for_each(|_, _| seen += 1))));
        assert_eq!(seen, MANY);
        #[cfg(feature = "recorder")]
        {
            let (mut told, together) = (Vec::new(), std::cell::Cell::new(0));
            let is_idle = |_: &_, n: &u32, _: &_| {
                together.set(0);
                !n.is_multiple_of(2)
            };
            let tell = |told: &mut Vec<u32>, _: &_| {
                together.set(together.get() + 1);
                told.push(together.get());
            };
            let forget = || family.forget(&mut told, is_idle, tell);
            assert!((100..=MAX_VISITS).contains(&most_visits(forget)));
            assert_eq!((told.len(), family.len()), (MANY as usize / 2, MANY as usize / 2));
            let longest = told.into_iter().max();
            assert_eq!(longest, Some(256), "the others wait for so many that are taken out");
        }
        assert_eq!(most_visits(|| family.clear()), 0);
    }

    #[test]
    fn what_was_looked_up_is_found_by_its_hash() {
        let family = Family::<u32, Counter>::default();
        // The thread may migrate to a CPU that has not used the label set.
        let is_seen = (0..1000).any(|_| {
            family.with(&7, Counter::inc);
            family.seen(family.hash_of(&7), |labels| *labels == 7).is_some()
        });
        assert!(is_seen);
    }

    #[test]
    fn no_lock_is_held_while_label_sets_are_visited() {
        let family = Family::<u32, Counter>::default();
        (0..10).for_each(|n| family.with(&n, Counter::inc));
        let mut free = 0;
        family.for_each(|_, _| free += u32::from(family.shared.entries.try_write().is_ok()));
        assert_eq!(free, 10);
    }

    #[test]
    fn what_is_removed_begins_anew() {
        let family = Family::<&str, Counter>::default();
        let kept = family.get_or_create(&"one");
        kept.inc();
        assert!(family.remove(&"one") && !family.remove(&"one"));
        kept.inc();
        assert_eq!(family.with(&"one", Counter::get), 0);
        family.clear();
        assert!(family.is_empty());
        family.with(&"one", Counter::inc);
        assert_eq!((family.with(&"one", Counter::get), kept.get()), (1, 2));
    }

    #[test]
    fn the_message_about_the_limit_names_the_metric() {
        let limit = |name: Option<&str>| Limit {
            most: 3,
            beyond: (),
            refused: AtomicU64::new(0),
            name: name.map(Box::from),
        };
        let told = limit(Some("requests_total")).message();
        assert!(told.contains("requests_total has 3 label sets"), "{told}");
        assert!(limit(None).message().contains("a family has 3 label sets"));
    }

    #[test]
    fn nothing_is_lost_beyond_the_limit() {
        let family = Family::with_limit(Counter::default, 3, 1000u32);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|n| family.with(&n, Counter::inc)));
            }
        });
        let mut total = 0;
        family.for_each(|_, counter: &Counter| total += counter.get());
        assert_eq!((family.len(), total), (4, 400));
        assert_eq!(family.refused(), family.with(&1000, Counter::get));
        family.with(&1000, Counter::inc);
        assert_eq!(family.len(), 4, "what is beyond may be named");
    }
}
