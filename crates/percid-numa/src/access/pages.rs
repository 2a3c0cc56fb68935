//! The state of a region's pages: which are armed, which threads used them, and which have a
//! pending move.
//!
//! All of it is in one mapping of percid's own, because the fault handler reads and writes it:
//! memory from the program's allocator could itself be part of a trapped region. It is updated by
//! atomic instructions, and every access to an armed page is counted once, by the thread that
//! disarms it.
//!
//! The unit is the *grain*: one page if accesses are reported, several pages if they are trapped.
//! If the region has huge pages, the grain is a huge page: the kernel moves it as a whole, so it is
//! judged as a whole. Grains begin at multiples of their size; the first and the last of a region
//! may be cut.

use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicI64, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard};

use percid_rules::scan::migration_policy::{Context, LookAgain, PageAccess, PageHistory, decide};
use percid_rules::scan::{AccessCounts, Width};

use crate::access::{second_looks, wakeup, wishes};
use crate::lock::lock;
use crate::sys::{memory, nodes, process};
use crate::tiers::tracked::{OfRegion, Tracked};

/// The home of a grain that is on no known node yet.
const NOWHERE: u16 = u16::MAX;

/// Width of the set of threads: threads are counted separately by their bits in it.
pub(crate) const BITS: usize = 128;

/// Accesses of the threads with one bit: local, remote, private, shared.
type CountsOfBit = [AtomicU32; 4];

/// The delay until a grain is armed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Soon,
    Later,
}

/// The constant properties of a region.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    /// log2 of the bytes of a grain.
    pub(crate) shift: u32,
    /// One more than the largest node.
    pub(crate) nodes: usize,
    /// The access rights of the memory, which disarming restores.
    pub(crate) rights: i32,
    pub(crate) width: Width,
    pub(crate) backoff: bool,
    /// `true` if the memory is private to the process, without a file.
    pub(crate) anonymous: bool,
}

impl Layout {
    /// Returns the number of bytes in front of the region that belong to its first grain.
    pub(crate) fn lead(&self) -> usize {
        self.start & ((1 << self.shift) - 1)
    }

    pub(crate) fn grains(&self) -> usize {
        (self.lead() + self.bytes).div_ceil(1 << self.shift)
    }

    /// Returns the grain of an address; `None` if it is outside the region.
    pub(crate) fn grain_of(&self, address: usize) -> Option<usize> {
        (address.wrapping_sub(self.start) < self.bytes).then(|| self.grain_at(address))
    }

    /// Returns the grain of an address in the region.
    pub(crate) fn grain_at(&self, address: usize) -> usize {
        (address - (self.start - self.lead())) >> self.shift
    }

    pub(crate) fn overlaps(&self, range: &Range<usize>) -> bool {
        self.start < range.end && range.start < self.start + self.bytes
    }

    /// Returns the addresses of a grain.
    pub(crate) fn grain(&self, grain: usize) -> Range<usize> {
        let start = self.start - self.lead() + (grain << self.shift);
        start.max(self.start)..(start + (1 << self.shift)).min(self.start + self.bytes)
    }

    /// Returns the bytes of the mapping, and the offsets of the arrays in it, in the order of
    /// [`Shared`]'s pointers.
    fn places(&self) -> (usize, [usize; 9]) {
        let (grains, words) = (self.grains(), self.grains().div_ceil(64));
        let by_bit = BITS * size_of::<CountsOfBit>();
        let [bits, looks, records, homes] = [words * 8, words * 4, grains * 4, grains * 2];
        let by_node = self.nodes * 8;
        let sizes = [by_node, bits, bits, bits, bits, by_bit, looks, records, homes];
        let mut end = size_of::<Shared>().next_multiple_of(8);
        let places = sizes.map(|size| {
            let start = end;
            end += size;
            start
        });
        (end, places)
    }
}

/// The data that the threads of the program, the fault handler and the balancer share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) layout: Layout,
    /// The process that the region was registered in: a child of `fork` inherits it.
    pub(crate) process: u32,
    /// Odd while grains are being armed. Each arming sets it to a number that no region has had:
    /// see `trap`.
    pub(crate) generation: AtomicU32,
    /// Number of sequences of the scan that have begun since the region was registered.
    pub(crate) sequence: AtomicI64,
    /// The bits of the threads that were seen since the last pass.
    users: [AtomicU64; 2],
    seen: [AtomicU64; 4],
    /// Number of accesses that indicate that the use of the region has changed.
    changes: AtomicU64,
    /// Number of grains with a pending move.
    pending: AtomicU64,
    /// Number of grains that must be armed again, by pace.
    unsettled: [AtomicU64; 2],
    /// Number of times a grain could not be disarmed alone, because the process had too many
    /// mappings.
    pub(crate) disarmed_whole: AtomicU64,
    /// Number of uses of armed grains by threads whose node the kernel did not report.
    pub(crate) unattributed: AtomicU64,
    /// The value of `disarmed_whole` at the last check.
    known_whole: AtomicU64,
    /// Mappings that trapping has added here; see `mapping_budget`.
    pub(crate) mappings: AtomicI64,
    /// The nodes that pages may move to, one bit each.
    with_memory: [AtomicU64; 16],
    /// The data for memory tiers; null if they are not used.
    tiers: AtomicPtr<OfRegion>,
    /// Recent uses of the region, by node.
    recent_accesses_by_node: *const AtomicU64,
    armed: *const AtomicU64,
    wanted: *const AtomicU64,
    again: [*const AtomicU64; 2],
    by_bit: *const CountsOfBit,
    second_looks: *const AtomicU32,
    records: *const AtomicU32,
    homes: *const AtomicU16,
}

// SAFETY: the pointers lead into the mapping that the structure itself lies in, to atomics.
unsafe impl Send for Shared {}
// SAFETY: the pointers lead to atomics; all other fields are atomic or never change.
unsafe impl Sync for Shared {}

impl Shared {
    fn slice<T>(&self, start: *const T, count: usize) -> &[T] {
        // SAFETY: `start` is one of the pointers of this structure, and `count` its array's length.
        unsafe { std::slice::from_raw_parts(start, count) }
    }

    /// Returns the data for memory tiers, if they are used.
    pub(crate) fn tiers(&self) -> Option<&OfRegion> {
        // SAFETY: the pointer is null or that of `Pages::tiers`, which lives as long as this
        // structure.
        unsafe { self.tiers.load(Acquire).as_ref() }
    }

    /// Returns the addresses of the mapping with this structure and its arrays.
    pub(crate) fn mapping(&self) -> Range<usize> {
        let start = std::ptr::from_ref(self).addr();
        start..start + self.layout.places().0
    }

    fn words(&self) -> usize {
        self.layout.grains().div_ceil(64)
    }

    /// Returns the recent uses of the region, by node: every sequence halves them.
    pub(crate) fn recent_accesses_by_node(&self) -> &[AtomicU64] {
        self.slice(self.recent_accesses_by_node, self.layout.nodes)
    }

    /// Returns the bits of the armed grains, 64 in a word.
    pub(crate) fn armed(&self) -> &[AtomicU64] {
        self.slice(self.armed, self.words())
    }

    fn wanted(&self) -> &[AtomicU64] {
        self.slice(self.wanted, self.words())
    }

    fn again(&self, pace: Pace) -> &[AtomicU64] {
        self.slice(self.again[pace as usize], self.words())
    }

    fn by_bit(&self) -> &[CountsOfBit] {
        self.slice(self.by_bit, BITS)
    }

    /// Returns the counts of second looks, one word for 64 grains; see [`second_looks`].
    fn second_looks(&self) -> &[AtomicU32] {
        self.slice(self.second_looks, self.words())
    }

    fn records(&self) -> &[AtomicU32] {
        self.slice(self.records, self.layout.grains())
    }

    fn homes(&self) -> &[AtomicU16] {
        self.slice(self.homes, self.layout.grains())
    }

    pub(crate) fn is_armed(&self, grain: usize) -> bool {
        self.armed()[grain / 64].load(Relaxed) >> (grain % 64) & 1 == 1
    }

    /// Returns how many of the two neighbours of `grains` are armed.
    pub(crate) fn armed_beside(&self, grains: &Range<usize>) -> i64 {
        let before = grains.start > 0 && self.is_armed(grains.start - 1);
        let behind = grains.end < self.layout.grains() && self.is_armed(grains.end);
        i64::from(before) + i64::from(behind)
    }

    /// Returns the number of edges: the places where armed grains begin or end.
    pub(crate) fn edges(&self) -> i64 {
        let (mut edges, mut last) = (0, 0);
        for word in self.armed() {
            let word = word.load(Relaxed);
            edges += i64::from((word ^ (word << 1 | last)).count_ones());
            last = word >> 63;
        }
        edges + last as i64
    }

    /// Arms a grain whose pages are on the node `home`. Returns `true` if it was not armed before.
    pub(crate) fn arm(&self, grain: usize, home: u32) -> bool {
        self.set_home(grain, home);
        if let Some(tiers) = self.tiers().filter(|_| !self.is_armed(grain)) {
            tiers.stamp(grain);
        }
        // Release: pairs with the acquire in `disarm`, so that the disarming thread reads this
        // home.
        let before = self.armed()[grain / 64].fetch_or(1 << (grain % 64), Release);
        before >> (grain % 64) & 1 == 0
    }

    /// Disarms a grain. Returns `true` if it was armed.
    pub(crate) fn disarm(&self, grain: usize) -> bool {
        let before = self.armed()[grain / 64].fetch_and(!(1 << (grain % 64)), Acquire);
        before >> (grain % 64) & 1 == 1
    }

    /// Records that the calling thread uses a grain: if the grain is armed, it is disarmed and the
    /// access is judged. Async-signal-safe; two system calls, and a third to wake the balancer.
    pub(crate) fn use_armed(&self, grain: usize) {
        if self.disarm(grain) {
            let (thread, node) = (process::thread_id(), nodes::current_node());
            self.note_use(grain, PageAccess { thread, node });
        }
    }

    /// Like [`use_armed`](Shared::use_armed), for another thread, which waits. If `who` returns
    /// `None`, the access is only counted.
    pub(crate) fn use_armed_by(&self, grain: usize, who: impl FnOnce() -> Option<PageAccess>) {
        if !self.disarm(grain) {
            return;
        }
        match who() {
            Some(access) => self.note_use(grain, access),
            None => _ = self.unattributed.fetch_add(1, Relaxed),
        }
    }

    pub(crate) fn note_use(&self, grain: usize, access: PageAccess) {
        let bit = self.layout.width.bit(access.thread);
        self.users[bit as usize / 64].fetch_or(1 << (bit % 64), Relaxed);
        let uses = |node: u32| self.recent_accesses_by_node().get(node as usize);
        let used = |node| uses(node).map_or(0, |count| count.load(Relaxed));
        if let Some(count) = uses(access.node) {
            count.fetch_add(1, Relaxed);
        }
        let home = u32::from(self.homes()[grain].load(Relaxed));
        let at = Context {
            home,
            sequence: self.sequence.load(Relaxed),
            use_there: used(access.node),
            use_here: used(home),
            has_memory: self.has_memory(access.node),
            backoff: self.layout.backoff,
            doubtful: second_looks::are_doubtful(&self.second_looks()[grain / 64]),
        };
        // The grain is disarmed: no other thread executes this for it before it is armed again.
        let place = &self.records()[grain];
        let mut decision = decide(PageHistory::from_word(place.load(Relaxed)), access, &at);
        if let Some(tiers) = self.tiers() {
            let bytes = self.layout.grain(grain).len() as u64;
            decision = tiers.judge(decision, grain, bytes, home, at.has_memory);
        }
        place.store(decision.history.word(), Relaxed);
        let of_bit = &self.by_bit()[Width::Bits128.bit(access.thread) as usize];
        for what in [usize::from(!decision.local), 2 + usize::from(!decision.private)] {
            self.seen[what].fetch_add(1, Relaxed);
            of_bit[what].fetch_add(1, Relaxed);
        }
        if let Some(confirmed) = decision.confirmed {
            second_looks::note(&self.second_looks()[grain / 64], confirmed);
        }
        self.changes.fetch_add(u64::from(decision.change), Relaxed);
        let asked = match decision.look_again {
            LookAgain::WithPass => false,
            LookAgain::Soon => self.ask_again(grain, Pace::Soon),
            LookAgain::Later => self.ask_again(grain, Pace::Later),
        };
        if self.want(grain, decision.moves) || asked {
            wakeup::notify();
        }
    }

    /// Requests that a grain is armed again. Returns `true` if it is the only such grain at this
    /// pace.
    pub(crate) fn ask_again(&self, grain: usize, pace: Pace) -> bool {
        let bit = 1u64 << (grain % 64);
        let is_new = self.again(pace)[grain / 64].fetch_or(bit, Relaxed) & bit == 0;
        is_new && self.unsettled[pace as usize].fetch_add(1, Relaxed) == 0
    }

    /// Returns the number of grains that must be armed again at a pace.
    pub(crate) fn unsettled(&self, pace: Pace) -> u64 {
        self.unsettled[pace as usize].load(Relaxed)
    }

    /// Takes the grains of a range that must be armed again at a pace.
    pub(crate) fn take_again(&self, grains: Range<usize>, pace: Pace) -> Vec<usize> {
        let mut taken = Vec::new();
        let mut start = grains.start;
        while start < grains.end {
            let end = grains.end.min((start / 64 + 1) * 64);
            let mask = (u64::MAX >> (64 - (end - start))) << (start % 64);
            let word = &self.again(pace)[start / 64];
            if word.load(Relaxed) & mask != 0 {
                let mut bits = word.fetch_and(!mask, Relaxed) & mask;
                self.unsettled[pace as usize].fetch_sub(u64::from(bits.count_ones()), Relaxed);
                while bits != 0 {
                    taken.push(start / 64 * 64 + bits.trailing_zeros() as usize);
                    bits &= bits - 1;
                }
            }
            start = end;
        }
        taken
    }

    /// Returns the node that a grain is on, if it is known.
    pub(crate) fn home(&self, grain: usize) -> Option<u32> {
        let home = self.homes()[grain].load(Relaxed);
        (home != NOWHERE).then_some(u32::from(home))
    }

    /// Records the node that a grain is on.
    pub(crate) fn set_home(&self, grain: usize, node: u32) {
        self.homes()[grain].store(node as u16, Relaxed);
    }

    /// Returns the number of accesses so far that indicate a changed use of the region.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// Returns the accesses so far of the threads with a bit of [`Width::Bits128`]: local, remote,
    /// private, shared. The counts wrap at 2^32.
    pub(crate) fn seen_by(&self, bit: usize) -> [u32; 4] {
        [0, 1, 2, 3].map(|what: usize| self.by_bit()[bit][what].load(Relaxed))
    }

    /// Restricts moves to these nodes from now on.
    pub(crate) fn set_nodes(&self, nodes: &[u32]) {
        for (index, word) in self.with_memory.iter().enumerate() {
            let here = nodes.iter().filter(|node| **node as usize / 64 == index);
            word.store(here.fold(0, |bits, node| bits | 1 << (node % 64)), Relaxed);
        }
    }

    fn has_memory(&self, node: u32) -> bool {
        let word = self.with_memory.get(node as usize / 64);
        word.is_some_and(|word| word.load(Relaxed) >> (node % 64) & 1 == 1)
    }

    /// Sets or clears the pending move of a grain. Returns `true` if it is set and was the first
    /// one.
    fn want(&self, grain: usize, wanted: bool) -> bool {
        let (word, bit) = (&self.wanted()[grain / 64], 1u64 << (grain % 64));
        if wanted {
            return wishes::make(word, bit) && self.pending.fetch_add(1, Relaxed) == 0;
        }
        if wishes::take_back(word, bit) {
            self.pending.fetch_sub(1, Relaxed);
        }
        false
    }

    /// Returns the number of grains with a pending move.
    pub(crate) fn pending(&self) -> u64 {
        // A wish may be taken before it is counted.
        (self.pending.load(Relaxed) as i64).max(0) as u64
    }

    /// Takes up to `most` grains with a pending move, with their target nodes. Starts at the word
    /// `from` of the bits and advances it, so that every grain gets its turn.
    pub(crate) fn take_wanted(&self, most: usize, from: &mut usize) -> Vec<(usize, u32)> {
        let mut taken = Vec::new();
        for _ in 0..self.words() {
            let index = *from % self.words();
            let mut bits = self.wanted()[index].load(Relaxed);
            while bits != 0 && taken.len() < most {
                let grain = index * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let (word, bit) = (&self.wanted()[index], 1u64 << (grain % 64));
                let (was_there, record) = wishes::take(word, bit, &self.records()[grain]);
                self.pending.fetch_sub(u64::from(was_there), Relaxed);
                taken.extend(PageHistory::from_word(record).node().map(|node| (grain, node)));
            }
            if taken.len() == most || self.pending() == 0 {
                break;
            }
            *from = index + 1;
        }
        taken
    }

    /// Records that a grain was moved to the node of its last access.
    pub(crate) fn moved(&self, grain: usize, node: u32) {
        self.set_home(grain, node);
        let mark = |word| Some(PageHistory::from_word(word).moved().word());
        let _ = self.records()[grain].fetch_update(Relaxed, Relaxed, mark);
    }

    /// Takes the bits of the threads that used the region since the last call.
    pub(crate) fn take_users(&self) -> u128 {
        let [low, high] = [0, 1].map(|half: usize| u128::from(self.users[half].swap(0, Relaxed)));
        high << 64 | low
    }

    /// Returns the counts of accesses so far.
    pub(crate) fn seen(&self) -> AccessCounts {
        let [local, remote, private, shared] =
            [0, 1, 2, 3].map(|what: usize| self.seen[what].load(Relaxed));
        AccessCounts { local, remote, private, shared, failed: 0 }
    }

    /// Returns `true` if grains had to be disarmed together since the last call.
    pub(crate) fn was_disarmed_whole(&self) -> bool {
        let times = self.disarmed_whole.load(Relaxed);
        self.known_whole.swap(times, Relaxed) != times
    }

    /// Ends a sequence: halves the counts of earlier uses.
    pub(crate) fn age(&self) {
        for count in self.recent_accesses_by_node() {
            count.fetch_sub(count.load(Relaxed) / 2, Relaxed);
        }
    }
}

/// The owner of the shared data.
#[derive(Debug)]
pub(crate) struct Pages {
    shared: NonNull<Shared>,
    mapped: usize,
    tiers: Option<Tracked>,
    /// Number of the program's threads that wait for `work`.
    waiting: AtomicUsize,
    /// Held while more than one grain is armed, disarmed or moved; contains the grains that must
    /// not be armed.
    pub(crate) work: Mutex<Work>,
}

/// The balancer's state of a region, used while it works on it.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// `true` if the region is gone: its memory must not be changed any more.
    pub(crate) over: bool,
    /// Grains that must not be armed.
    pub(crate) excluded: Vec<Range<usize>>,
    /// Index of the word at which the search for pending moves continues.
    pub(crate) next_wanted: usize,
    /// Number of lookups of the nodes of grains.
    pub(crate) looks: u64,
}

impl Work {
    pub(crate) fn excludes(&self, grain: usize) -> bool {
        self.excluded.iter().any(|range| range.contains(&grain))
    }
}

// SAFETY: any thread may use and unmap the shared data.
unsafe impl Send for Pages {}
// SAFETY: the shared data consists of atomics; the other fields are atomic, locked or constant.
unsafe impl Sync for Pages {}

impl Pages {
    /// Makes the state of a region: nothing is armed and no access was recorded. All of it is in a
    /// mapping that `map` makes. Returns `None` if there is no memory.
    pub(crate) fn new(
        layout: Layout,
        with_memory: &[u32],
        map: fn(usize) -> Option<NonNull<u8>>,
    ) -> Option<Pages> {
        let (mapped, places) = layout.places();
        let base = map(mapped)?;
        let at = |place: usize| base.as_ptr().wrapping_add(places[place]).cast_const();
        let shared = Shared {
            layout,
            process: process::generation(),
            generation: AtomicU32::new(0),
            sequence: AtomicI64::new(0),
            users: [const { AtomicU64::new(0) }; 2],
            seen: [const { AtomicU64::new(0) }; 4],
            changes: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            unsettled: [const { AtomicU64::new(0) }; 2],
            disarmed_whole: AtomicU64::new(0),
            unattributed: AtomicU64::new(0),
            known_whole: AtomicU64::new(0),
            mappings: AtomicI64::new(0),
            with_memory: [const { AtomicU64::new(0) }; 16],
            tiers: AtomicPtr::default(),
            recent_accesses_by_node: at(0).cast(),
            armed: at(1).cast(),
            wanted: at(2).cast(),
            again: [at(3).cast(), at(4).cast()],
            by_bit: at(5).cast(),
            second_looks: at(6).cast(),
            records: at(7).cast(),
            homes: at(8).cast(),
        };
        let place = base.cast::<Shared>();
        // SAFETY: the mapping is new, large enough by `places`, and aligned to a page.
        unsafe { place.write(shared) };
        let (tiers, waiting, work) = (None, AtomicUsize::new(0), Mutex::default());
        let pages = Pages { shared: place, mapped, tiers, waiting, work };
        pages.set_nodes(with_memory);
        pages.homes().iter().for_each(|home| home.store(NOWHERE, Relaxed));
        Some(pages)
    }

    /// Adds the data for memory tiers. Nothing may be armed yet.
    pub(crate) fn set_tiers(&mut self, tiers: Tracked) {
        Deref::deref(self).tiers.store(tiers.as_ptr(), Release);
        self.tiers = Some(tiers);
    }

    /// Takes the lock for a thread of the program, which waits for one piece of work, not for all
    /// of it.
    pub(crate) fn interrupt_work(&self) -> MutexGuard<'_, Work> {
        self.waiting.fetch_add(1, Relaxed);
        let work = lock(&self.work);
        self.waiting.fetch_sub(1, Relaxed);
        work
    }

    /// Takes the lock for the balancer, after the threads of the program that wait for it.
    pub(crate) fn go_on_with_work(&self) -> MutexGuard<'_, Work> {
        while self.waiting.load(Relaxed) > 0 {
            std::thread::yield_now();
        }
        lock(&self.work)
    }

    /// Returns the address of the shared data, for the fault handler.
    pub(crate) fn as_ptr(&self) -> *mut Shared {
        self.shared.as_ptr()
    }
}

impl Deref for Pages {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        // SAFETY: it was written in `new` and stays until this value is dropped.
        unsafe { self.shared.as_ref() }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and nothing else refers to it: a trapped region
        // waits until no handler does.
        unsafe { memory::unmap(self.shared.cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(bytes: usize, shift: u32) -> Pages {
        let layout = Layout {
            start: 1 << 20,
            bytes,
            shift,
            nodes: 2,
            rights: 0,
            width: Width::Bits128,
            backoff: true,
            anonymous: true,
        };
        Pages::new(layout, &[0, 1], memory::map).expect("memory")
    }

    #[test]
    fn grains_cover_the_region() {
        let pages = pages(9 * 4096, 14);
        assert_eq!(pages.layout.grains(), 3);
        assert_eq!(pages.layout.grain(2).len(), 4096);
    }

    #[test]
    fn grains_begin_at_multiples_of_their_size() {
        let layout = Layout { start: (1 << 20) + 4096, ..pages(9 * 4096, 14).layout };
        assert_eq!((layout.lead(), layout.grains()), (4096, 3));
        let lengths = [0, 1, 2].map(|grain| layout.grain(grain).len() / 4096);
        assert_eq!(lengths, [3, 4, 2]);
        for grain in 0..3 {
            let Range { start, end } = layout.grain(grain);
            assert_eq!((layout.grain_at(start), layout.grain_at(end - 1)), (grain, grain));
        }
    }

    #[test]
    fn edges_are_counted_between_all_grains() {
        let pages = pages(128 * 4096, 12);
        assert_eq!(pages.edges(), 0);
        [0, 62, 63, 64, 127].iter().for_each(|&grain| _ = pages.arm(grain, 0));
        assert_eq!(pages.edges(), 6);
        let beside = [62..65, 1..62, 63..64, 65..127].map(|grains| pages.armed_beside(&grains));
        assert_eq!(beside, [0, 2, 2, 2]);
        // Counting by neighbours gives the same result as counting all edges.
        for (grain, armed) in [(65, true), (63, false), (0, false), (126, true), (127, false)] {
            let (before, beside) = (pages.edges(), pages.armed_beside(&(grain..grain + 1)));
            let change = if armed { 2 - 2 * beside } else { 2 * beside - 2 };
            _ = if armed { pages.arm(grain, 0) } else { pages.disarm(grain) };
            assert_eq!(pages.edges(), before + change, "grain {grain}");
        }
    }

    #[test]
    fn an_armed_grain_is_seen_once_and_moves_to_its_user() {
        let pages = pages(100 * 4096, 12);
        assert!(pages.arm(70, 0) && !pages.arm(70, 0));
        let access = PageAccess { thread: 9, node: 1 };
        assert!(pages.disarm(70) && !pages.disarm(70));
        pages.note_use(70, access);
        assert_eq!((pages.pending(), pages.seen().remote, pages.seen().private), (1, 1, 1));
        assert_eq!(pages.take_users(), 1 << Width::Bits128.bit(9));
        assert_eq!(pages.take_wanted(8, &mut 0), [(70, 1)]);
        assert_eq!((pages.pending(), pages.take_users()), (0, 0));
        pages.moved(70, 1);
        pages.note_use(70, access);
        assert_eq!((pages.pending(), pages.seen().local), (0, 1));
    }

    #[test]
    fn a_later_look_takes_a_wish_back() {
        let pages = pages(8 * 4096, 12);
        pages.arm(3, 0);
        pages.note_use(3, PageAccess { thread: 9, node: 1 });
        pages.note_use(3, PageAccess { thread: 8, node: 0 });
        assert_eq!((pages.pending(), pages.take_wanted(8, &mut 0).len()), (0, 0));
    }

    #[test]
    fn a_wish_is_counted_once() {
        let pages = pages(8 * 4096, 12);
        for _ in 0..3 {
            pages.note_use(3, PageAccess { thread: 9, node: 1 });
            assert_eq!(pages.pending(), 1);
        }
        assert_eq!((pages.take_wanted(8, &mut 0).len(), pages.pending()), (1, 0));
    }

    /// A thread may be preempted between making a wish and counting it.
    #[test]
    fn a_wish_that_is_taken_before_it_is_counted_is_none() {
        let pages = pages(8 * 4096, 12);
        pages.note_use(3, PageAccess { thread: 9, node: 1 });
        pages.pending.fetch_sub(1, Relaxed);
        assert_eq!(pages.take_wanted(8, &mut 0).len(), 1);
        assert_eq!(pages.pending(), 0);
        pages.pending.fetch_add(1, Relaxed);
        pages.note_use(4, PageAccess { thread: 9, node: 1 });
        assert_eq!(pages.pending(), 1);
    }

    #[test]
    fn every_wish_has_its_turn() {
        let pages = pages(1000 * 4096, 12);
        for grain in [3, 70, 71, 640] {
            pages.arm(grain, 0);
            pages.note_use(grain, PageAccess { thread: 9, node: 1 });
        }
        let mut from = 1;
        let mut take = |most| -> Vec<usize> {
            pages.take_wanted(most, &mut from).into_iter().map(|(grain, _)| grain).collect()
        };
        assert_eq!((take(1), take(2), take(9)), (vec![70], vec![71, 640], vec![3]));
    }

    #[test]
    fn what_is_to_be_armed_again_is_taken_once() {
        let pages = pages(200 * 4096, 12);
        let firsts = [3, 63, 64, 130, 130, 199].map(|grain| pages.ask_again(grain, Pace::Soon));
        assert_eq!(firsts, [true, false, false, false, false, false]);
        assert!(pages.ask_again(64, Pace::Later));
        let unsettled = || [Pace::Soon, Pace::Later].map(|pace| pages.unsettled(pace));
        let take = |grains| pages.take_again(grains, Pace::Soon);
        assert_eq!(unsettled(), [5, 1]);
        assert_eq!(take(60..131), [63, 64, 130]);
        assert_eq!((unsettled(), take(4..199)), ([2, 1], vec![]));
        assert_eq!((take(0..200), unsettled()), (vec![3, 199], [0, 1]));
        assert_eq!((pages.take_again(0..200, Pace::Later), unsettled()), (vec![64], [0, 0]));
    }

    #[test]
    fn threads_are_counted_apart() {
        let pages = pages(8 * 4096, 12);
        for (thread, node) in [(7, 0), (7, 0), (8, 1)] {
            pages.arm(3, 0);
            pages.note_use(3, PageAccess { thread, node });
        }
        let by = |thread| pages.seen_by(Width::Bits128.bit(thread) as usize);
        assert_eq!((by(7), by(8), by(9)), ([2, 0, 2, 0], [0, 1, 0, 1], [0; 4]));
    }

    #[test]
    fn use_fades() {
        let pages = pages(4096, 12);
        (0..8).for_each(|_| pages.note_use(0, PageAccess { thread: 1, node: 1 }));
        pages.age();
        assert_eq!(pages.recent_accesses_by_node()[1].load(Relaxed), 4);
    }
}
