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

use crate::entries::{Entries, Entry, NoMemory, hold_begins};
use crate::per_id_cache::PerIdCache;

/// Makes the metric of a label set that was not there before.
///
/// Closures that return a metric do.
pub trait NewMetric<M> {
    /// Makes one.
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
/// * **Cost**: a label set that this CPU has seen before is found in memory of this CPU: its hash, a
///   [`percid::Local`], and a comparison of the labels, without an allocation. Another one is looked for
///   in a map under a lock.
/// * **Memory**: an entry of the map for each label set, and one of each CPU's table for those that it has
///   used, of 8192 at most. What the metric itself takes for each CPU see there.
/// * **Limit**: a family may be [limited](Family::with_limit). What is beyond the limit has a label set of
///   its own, so that no value is lost.
/// * **Threads**: every method may be called by any number of threads at once. Two threads that come with
///   the same new label set get the same metric.
/// * **Signals**: none may be called in a signal handler.
/// * **Fork**: in the child of a process with several threads a lock that another one held stays taken, so
///   that looking for a label set that is new there may wait for ever.
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

/// An entry as the table of one ID has it. Its count of references is that ID's, so that CPUs which look
/// up the same entry do not write to one word.
pub(crate) struct OfId<S, M>(Arc<Entry<S, M>>);

/// Room for one, which has no entry yet.
type Room<S, M> = Arc<MaybeUninit<OfId<S, M>>>;

/// How many rooms an ID gets together: so what it counts references with does not lie between what others
/// do.
const TOGETHER: usize = 16;

/// The metrics taken out during one hold of the lock. Each is read there, which costs a line of
/// memory for every ID. Fewer are worse: while they are dropped, a waiting thread must have the time to wake up,
/// or the lock is taken again before it.
#[cfg(feature = "recorder")]
const FORGOTTEN_TOGETHER: usize = 256;

/// `true` if an entry that was taken from the map has no reference but that one and the map's.
#[cfg(feature = "recorder")]
fn is_nobodys<S, M>(entry: &Arc<Entry<S, M>>) -> bool {
    let is_nobodys = Arc::strong_count(entry) == 2;
    // What was counted by a handle that was dropped is seen from here on.
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
}

/// A metric of a family.
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
    /// A family whose metrics are made by `new_metric`.
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

    /// A family of at most `most` label sets, and one more: what comes with others is counted by the
    /// metric of `beyond`.
    ///
    /// The first label set that is refused is told on standard error, and the number of refusals by
    /// [`refused`](Family::refused).
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
        Family::made(new_metric, Some(Limit { most, beyond, refused: AtomicU64::new(0) }))
    }

    fn made(new_metric: C, limit: Option<Limit<S>>) -> Family<S, M, C> {
        let rooms: Local<_> = Local::new(Vec::new);
        let (hasher, entries, cache) =
            (RandomState::default(), RwLock::default(), PerIdCache::new());
        Family { shared: Arc::new(Shared { new_metric, hasher, entries, cache, rooms, limit }) }
    }

    /// Hands the metric of `labels` to `use_it`; a new one, if there is none.
    ///
    /// This CPU's table is held meanwhile, so `use_it` must not take label sets out of this family: that
    /// would have to wait for it, and panics.
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

    /// The metric of `labels`; a new one, if there is none. [`with`](Family::with) is quicker: it counts no
    /// reference.
    pub fn get_or_create(&self, labels: &S) -> Cached<S, M> {
        let hash = self.shared.hasher.hash_one(labels);
        let is_it = |cached: &Arc<OfId<S, M>>| cached.0.labels == *labels;
        let found = self.shared.cache.find(hash, is_it, Arc::clone);
        Cached(found.unwrap_or_else(|| self.look_up(hash, labels, &self.constructor())))
    }

    /// The hash by which labels are found.
    #[inline]
    pub(crate) fn hash_of(&self, labels: &impl Hash) -> u64 {
        self.shared.hasher.hash_one(labels)
    }

    /// The metric of labels that this CPU has seen before. It stays where it is until they are taken out.
    #[inline]
    pub(crate) fn seen(&self, hash: u64, is_it: impl FnOnce(&S) -> bool) -> Option<NonNull<M>> {
        let is_it = |cached: &Arc<OfId<S, M>>| is_it(&cached.0.labels);
        self.shared.cache.find(hash, is_it, |cached| NonNull::from(&cached.0.metric))
    }

    /// The metric of labels that this CPU has not seen before; a new one, if there is none. It stays
    /// where it is until they are taken out.
    ///
    /// # Errors
    ///
    /// There is no memory for one more.
    pub(crate) fn first_seen(&self, hash: u64, labels: &S) -> Result<NonNull<M>, NoMemory> {
        let of_id = self.try_look_up(hash, labels, &self.constructor())?;
        Ok(NonNull::from(&of_id.0.metric))
    }

    /// As [`get_or_create`](Family::get_or_create), for those who need the reference itself.
    #[cfg(feature = "recorder")]
    pub(crate) fn handle(&self, labels: &S) -> Arc<OfId<S, M>> {
        self.get_or_create(labels).0
    }

    /// As [`handle`](Family::handle), with a constructor for these labels.
    #[cfg(feature = "recorder")]
    pub(crate) fn handle_or(&self, labels: &S, new: impl Fn() -> M) -> Arc<OfId<S, M>> {
        let hash = self.shared.hasher.hash_one(labels);
        let is_it = |cached: &Arc<OfId<S, M>>| cached.0.labels == *labels;
        let found = self.shared.cache.find(hash, is_it, Arc::clone);
        found.unwrap_or_else(|| self.look_up(hash, labels, &new))
    }

    /// Takes out metrics that `is_idle` names and that nobody has a handle to, and hands their labels to
    /// `tell`. `state` is what both work with.
    ///
    /// What is taken out is not counted any more: every handle is a reference to its entry, tables of IDs
    /// give theirs up first, and no new one is made while the map is locked. So what `is_idle` sees then
    /// stays as it is. The lock is held for [`FORGOTTEN_TOGETHER`] of them at a time. Others come to their
    /// turn while these are told of and dropped.
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
        let addresses: HashSet<*const Entry<S, M>> = found.iter().map(Arc::as_ptr).collect();
        let is_kept = |cached: &Arc<OfId<S, M>>| !addresses.contains(&Arc::as_ptr(&cached.0));
        self.shared.cache.retain(is_kept);
        // #[gamma::skip(expr, reason = "any number does")]
        let together = found.chunks(FORGOTTEN_TOGETHER);
        for some in together {
            let mut entries = self.shared.write();
            let is_gone = |entry: &&Arc<Entry<S, M>>| {
                is_nobodys(entry)
                    && is_idle(state, &entry.labels, &entry.metric)
                    && entries.remove(entry.hash, |there| Arc::ptr_eq(there, entry)).is_some()
            };
            let gone: Vec<_> = some.iter().filter(is_gone).collect();
            drop(entries);
            gone.iter().for_each(|entry| tell(state, &entry.labels));
        }
    }

    /// Not found in the table of this ID.
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

    /// A reference of this ID's to an entry.
    fn of_id(&self, entry: Arc<Entry<S, M>>) -> Arc<OfId<S, M>> {
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
        // SAFETY: it was written just now.
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
    ) -> Result<Arc<Entry<S, M>>, NoMemory> {
        let is_it = |entry: &Arc<Entry<S, M>>| entry.labels == *labels;
        let is_refused = {
            let entries = self.shared.read();
            if let Some(entry) = entries.find(hash, is_it) {
                return Ok(Arc::clone(entry));
            }
            self.shared.refuses(&entries, labels)
        };
        // Whoever comes with ever new labels holds nobody up: only what has a place takes the lock.
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
        let new = Arc::new(Entry { hash, labels: labels.clone(), metric: new() });
        entries.insert(Arc::clone(&new));
        Ok(new)
    }

    /// The entry of what is beyond the limit.
    fn beyond(&self, limit: &Limit<S>, new: &dyn Fn() -> M) -> Result<Arc<Entry<S, M>>, NoMemory> {
        limit.refuse();
        self.entry(self.shared.hasher.hash_one(&limit.beyond), &limit.beyond, new)
    }

    /// Takes a label set and its metric out. Who still has the metric goes on counting it, where nobody
    /// looks. Returns whether there was one.
    pub fn remove(&self, labels: &S) -> bool {
        let hash = self.shared.hasher.hash_one(labels);
        let removed = self.shared.write().remove(hash, |entry| entry.labels == *labels);
        self.shared.cache.retain(|cached| cached.0.labels != *labels);
        removed.is_some()
    }

    /// Takes all label sets out.
    pub fn clear(&self) {
        // Dropped at the end, without the lock.
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
    /// The limit, if it leaves no place for new labels.
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
    /// Returns all label sets and their metrics, in no order: those of [`for_each`](Family::for_each).
    ///
    /// # Errors
    ///
    /// There is no memory for so many.
    pub(crate) fn all(&self) -> Result<Vec<Arc<Entry<S, M>>>, NoMemory> {
        let mut all = Vec::new();
        all.try_reserve_exact(self.len()).map_err(|_| NoMemory)?;
        self.copy_buckets(&mut all, |_| ())?;
        Ok(all)
    }

    /// Appends the references bucket by bucket, and hands all to `visit` behind each, without a lock.
    fn copy_buckets(
        &self,
        copied: &mut Vec<Arc<Entry<S, M>>>,
        mut visit: impl FnMut(&mut Vec<Arc<Entry<S, M>>>),
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

    /// How many label sets there are.
    pub fn len(&self) -> usize {
        self.shared.read().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often the metric for what is beyond the limit was used.
    pub fn refused(&self) -> u64 {
        self.shared.limit.as_ref().map_or(0, |limit| limit.refused.load(Relaxed))
    }

    /// Hands all label sets and their metrics to `visit`, in no order.
    ///
    /// Those that are there throughout come once. Those that are added or taken out meanwhile come once or not
    /// at all. Whoever adds or takes out one waits while up to 3584 references are copied, however many
    /// label sets there are, and not while `visit` works: it may do so itself.
    ///
    /// # Panics
    ///
    /// There is no memory for these references.
    pub fn for_each(&self, mut visit: impl FnMut(&S, &M)) {
        self.for_each_entry(|entry| visit(&entry.labels, &entry.metric));
    }

    fn for_each_entry(&self, mut visit: impl FnMut(&Arc<Entry<S, M>>)) {
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
            // Where nobody reads it, nobody is told.
            let _ = writeln!(
                std::io::stderr(),
                "percid-metrics: a family has {} label sets, its limit; others are counted together",
                self.most
            );
        }
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
    /// A full bucket, and what is compared on the way to one.
    const MOST: usize = 4096;

    /// However many there are, and whatever is done with all of them.
    #[test]
    fn the_lock_is_held_for_a_bounded_number_of_entries() {
        let family = Family::<u32, Counter>::default();
        let add = || (0..MANY).for_each(|n| family.with(&n, Counter::inc));

        assert!((100..=MOST).contains(&most_visits(add)), "a bucket is split");
        let all = || assert_eq!(family.all().map(|all| all.len()), Ok(MANY as usize));
        assert!((100..=MOST).contains(&most_visits(all)));
        let mut seen = 0;
        assert!((100..=MOST).contains(&most_visits(|| family.for_each(|_, _| seen += 1))));
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
            assert!((100..=MOST).contains(&most_visits(forget)));
            assert_eq!((told.len(), family.len()), (MANY as usize / 2, MANY as usize / 2));
            let longest = told.into_iter().max();
            assert_eq!(longest, Some(256), "the others wait for so many that are taken out");
        }
        assert_eq!(most_visits(|| family.clear()), 0);
    }

    #[test]
    fn what_was_looked_up_is_found_by_its_hash() {
        let family = Family::<u32, Counter>::default();
        // The thread may come to a CPU that has not seen it.
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
