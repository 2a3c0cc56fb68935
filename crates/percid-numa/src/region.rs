//! Regions: memory that is registered with a balancer.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard};

use crate::access::pages::{Pages, Work};
use crate::access::region_record::RegionRecord;
use crate::access::trap;
use crate::access_method::AccessMethod;
use crate::balancing::Inner;
use crate::balancing::arming::{disarm, disarm_rest};
use crate::sys::{memory, preserving_errno};

/// Memory that a [`Balancer`](crate::Balancer) manages, until this value is dropped.
///
/// # Contract
///
/// * **Threads**: all methods may be called by any number of threads.
/// * **Signals**: [`touch`](Region::touch) and [`touch_all`](Region::touch_all) are
///   async-signal-safe and leave `errno` alone.
/// * **Fork**: in the child nothing is armed anew. A page that was armed at the fork is disarmed when
///   it is touched, and all of them when a part is excluded or the value is dropped there.
/// * **Memory**: 6.6 bytes a grain, which is a page if accesses are reported and 64 KiB if they are
///   detected by faults; none on a machine with one node.
/// * **Cost**: [`touch`](Region::touch) costs a load and a test if the page is not armed. Otherwise
///   it costs two or three system calls and about ten atomic instructions; it never waits. Dropping
///   waits for the pass or the batch that is under way.
///
/// ```
/// use percid_numa::Balancer;
///
/// let table = vec![7u8; 2 << 20];
/// let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
/// let balancer = Balancer::new();
/// let region = balancer.register(start, 1 << 20)?;
/// std::thread::scope(|scope| {
///     for half in 0..2 {
///         let region = &region;
///         let pages = (half << 19..(half + 1) << 19).step_by(4096);
///         scope.spawn(move || pages.for_each(|page| region.touch(page)));
///     }
/// });
/// # Ok::<(), percid_numa::RegisterError>(())
/// ```
pub struct Region {
    /// The bits of the armed grains, 64 in a word.
    armed: *const AtomicU64,
    /// Number of bytes that can be armed; 0 on a machine with one node.
    bytes: usize,
    shift: u32,
    /// Number of bytes in front of the region that belong to its first grain.
    lead: usize,
    entry: Arc<RegionRecord>,
    balancer: Arc<Inner>,
}

// SAFETY: `armed` points to atomics that belong to `entry`, which lives as long as this value.
unsafe impl Send for Region {}
// SAFETY: `&Region` reads atomics; everything else is `Sync` or never changes.
unsafe impl Sync for Region {}

impl Region {
    pub(crate) fn new(entry: Arc<RegionRecord>, balancer: Arc<Inner>) -> Region {
        let reported = entry.pages.as_ref().filter(|_| entry.access == AccessMethod::Reported);
        let armed = reported.map_or(std::ptr::null(), |pages| pages.armed().as_ptr());
        let layout = reported.map(|pages| pages.layout);
        let (bytes, shift, lead) =
            layout.map_or((0, 0, 0), |layout| (layout.bytes, layout.shift, layout.lead()));
        Region { armed, bytes, shift, lead, entry, balancer }
    }

    /// Reports that the calling thread uses the memory `offset` bytes from the region's start. Call
    /// it about as often as the program changes from one page to another. A call for a page that is
    /// not armed costs a nanosecond and changes nothing, because an armed page counts once. Offsets
    /// beyond the region are ignored, and so is every call for a region whose accesses are detected
    /// by faults.
    ///
    /// ```
    /// # let table = vec![7u8; 2 << 20];
    /// # let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
    /// let balancer = percid_numa::Balancer::new();
    /// let region = balancer.register(start, 1 << 20)?;
    /// region.touch(4711);
    /// region.touch(usize::MAX);
    /// let seen = &balancer.report().regions[0];
    /// assert_eq!(seen.local + seen.remote, 0, "nothing was armed yet");
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    #[inline(always)]
    pub fn touch(&self, offset: usize) {
        if offset >= self.bytes {
            return;
        }
        let grain = (self.lead + offset) >> self.shift;
        // SAFETY: there is a word for every 64 grains of the region, and the offset is inside.
        let word = unsafe { &*self.armed.add(grain / 64) };
        if word.load(Relaxed) >> (grain % 64) & 1 == 1 {
            self.touch_armed(grain);
        }
    }

    /// Reports that the calling thread uses all of the region. Costs a load for every 64 grains,
    /// and the cost of [`touch`](Region::touch) for every armed one; async-signal-safe too.
    ///
    /// ```
    /// # let table = vec![7u8; 2 << 20];
    /// # let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
    /// let balancer = percid_numa::Balancer::new();
    /// let region = balancer.register(start, 1 << 20)?;
    /// balancer.pass();
    /// region.touch_all();
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub fn touch_all(&self) {
        let grains = (self.lead + self.bytes).div_ceil(1 << self.shift);
        let words = if self.bytes == 0 { 0 } else { grains.div_ceil(64) };
        for index in 0..words {
            // SAFETY: `index` is below the number of the region's words.
            let mut bits = unsafe { &*self.armed.add(index) }.load(Relaxed);
            while bits != 0 {
                self.touch_armed(index * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn touch_armed(&self, grain: usize) {
        if let Some(pages) = &self.entry.pages {
            preserving_errno(|| pages.use_armed(grain));
        }
    }

    /// Returns the addresses of the region.
    ///
    /// ```
    /// # let table = vec![7u8; 2 << 20];
    /// # let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
    /// let region = percid_numa::Balancer::new().register(start, 1 << 20)?;
    /// assert_eq!(region.range(), start.addr()..start.addr() + (1 << 20));
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub fn range(&self) -> Range<usize> {
        self.entry.range.clone()
    }

    /// Returns the method by which accesses are detected.
    ///
    /// ```
    /// # let table = vec![7u8; 2 << 20];
    /// # let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
    /// let region = percid_numa::Balancer::new().register(start, 1 << 20)?;
    /// assert_eq!(region.access(), percid_numa::AccessMethod::Reported);
    /// # Ok::<(), percid_numa::RegisterError>(())
    /// ```
    pub fn access(&self) -> AccessMethod {
        self.entry.access
    }

    /// Keeps a part of a trapped region, in bytes from its start, accessible until the returned
    /// value is dropped: for buffers that are passed to system calls, which fail with `EFAULT` at
    /// armed pages. Whole grains around the part are disarmed, and not armed again during that
    /// time. If the kernel refuses to disarm them, the report has its `errno` in
    /// [`failed`](crate::RegionReport::failed).
    ///
    /// Waits for the piece that is being armed, or the batch that is being moved, at this moment.
    /// Takes a lock and allocates: not async-signal-safe. Does nothing for regions that are not
    /// trapped: if writes are detected, system calls wait as the program itself does.
    ///
    /// ```
    /// use std::io::Read;
    /// use percid_numa::Balancer;
    ///
    /// let mut table = vec![7u8; 2 << 20];
    /// let offset = table.as_ptr().align_offset(1 << 16);
    /// let balancer = Balancer::new();
    /// // SAFETY: the vector stays until the region is dropped; system calls get excluded parts.
    /// let region = unsafe { balancer.register_trapped(table[offset..].as_ptr(), 1 << 20) }?;
    /// balancer.pass();
    /// let exclusion = region.exclude(0..4096);
    /// std::fs::File::open("/dev/zero")?.read_exact(&mut table[offset..offset + 4096])?;
    /// drop(exclusion);
    /// assert_eq!(table[offset + 4095], 0);
    /// # drop(region);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "the memory is armed again once this is dropped"]
    pub fn exclude(&self, part: Range<usize>) -> Exclusion<'_> {
        let trapped = self.entry.pages.as_ref().filter(|_| self.access() == AccessMethod::Trapped);
        let part = part.start.min(self.range().len())..part.end.min(self.range().len());
        let nothing = Exclusion { region: self, grains: None };
        let Some(pages) = trapped.filter(|_| !part.is_empty()) else { return nothing };
        if self.balancer.is_forked() {
            // Nothing is armed in the child any more, so disarmed grains stay so, and all of them
            // may be disarmed.
            trap::disarm_inherited(pages);
            return nothing;
        }
        let start = self.range().start;
        let grain_at = |offset| pages.layout.grain_at(start + offset);
        let grains = grain_at(part.start)..grain_at(part.end - 1) + 1;
        let mut work = pages.interrupt_work();
        work.excluded.push(grains.clone());
        self.disarm(pages, work, grains.clone());
        Exclusion { region: self, grains: Some(grains) }
    }

    /// Restores the rights of grains. Refusals by the kernel are counted; those grains stay armed.
    fn disarm(&self, pages: &Pages, work: MutexGuard<'_, Work>, grains: Range<usize>) {
        if self.entry.gone.load(Relaxed) {
            return disarm_rest(pages, &work, grains);
        }
        let outcome = disarm(pages, &work, grains.clone());
        // Before the tally is locked: a pass holds the tally while it waits for the work.
        drop(work);
        if let Err(errno) = outcome {
            let bytes = grains.len() << pages.layout.shift;
            self.entry.tally().fail(errno, (bytes / memory::page_size()) as u64);
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.balancer.forget(&self.entry);
        let by_faults = self.access() != AccessMethod::Reported;
        let Some(pages) = self.entry.pages.as_ref().filter(|_| by_faults) else { return };
        if self.balancer.is_forked() {
            trap::disarm_inherited(pages);
            // A thread of the parent may have been changing the bookkeeping, so it is never freed.
            std::mem::forget(Arc::clone(&self.entry));
            return;
        }
        let mut work = pages.interrupt_work();
        work.over = true;
        let removed = match &self.entry.monitor {
            Some(monitor) => {
                let removed = monitor.remove(pages);
                drop(work);
                removed
            }
            None => {
                self.disarm(pages, work, 0..pages.layout.grains());
                trap::remove(pages)
            }
        };
        if !removed {
            std::mem::forget(Arc::clone(&self.entry));
        }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.entry.range;
        write!(f, "Region({start:#x}..{end:#x}, {})", self.access())
    }
}

/// A guard that keeps a part of a region accessible until it is dropped; see [`Region::exclude`].
///
/// ```
/// # let table = vec![7u8; 2 << 20];
/// # let start = table.as_ptr().map_addr(|address| address.next_multiple_of(1 << 16));
/// let region = percid_numa::Balancer::new().register(start, 1 << 20)?;
/// let exclusion: percid_numa::Exclusion<'_> = region.exclude(0..4096);
/// assert!(format!("{exclusion:?}").contains("None"), "nothing is trapped");
/// # Ok::<(), percid_numa::RegisterError>(())
/// ```
#[derive(Debug)]
pub struct Exclusion<'r> {
    region: &'r Region,
    grains: Option<Range<usize>>,
}

impl Drop for Exclusion<'_> {
    fn drop(&mut self) {
        let (Some(grains), Some(pages)) = (&self.grains, &self.region.entry.pages) else { return };
        if self.region.balancer.is_forked() {
            return;
        }
        let mut work = pages.interrupt_work();
        if let Some(place) = work.excluded.iter().position(|other| other == grains) {
            work.excluded.swap_remove(place);
        }
    }
}
