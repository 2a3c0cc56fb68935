//! The return of slabs without objects in use to the kernel.

use std::collections::BTreeMap;
use std::ptr::{self, NonNull};

use super::RawPool;
use super::slab::{Slab, header};
use crate::arena::Block;
use crate::sys::{memory, preserving_errno, race_detector};

impl RawPool {
    /// Leaves an idle object of a slab, for which there is no room, or no memory for a list. The
    /// last object of a slab frees the slab's memory.
    #[cold]
    pub(super) fn leave(&self, slab: &Slab) {
        if slab.left.add(1) == self.per_slab() {
            // SAFETY: `retire` is told that the caller holds no objects of the slab.
            preserving_errno(|| unsafe { self.retire(slab, 0) });
        }
    }

    /// Returns the memory of all slabs without objects in use to the kernel, and returns the number
    /// of idle objects in them. Idle objects of other slabs stay. For objects that it may miss, see
    /// [`Stack`](crate::Stack); it also misses slabs whose objects another drain currently holds.
    ///
    /// ```
    /// use percid::pool::RawPool;
    /// use std::alloc::Layout;
    ///
    /// let pool = RawPool::new(Layout::new::<u64>(), 64);
    /// let object = pool.get().expect("memory");
    /// // SAFETY: the object came from this pool and is not used any more.
    /// unsafe { pool.put(object) }?;
    /// assert_eq!(pool.drain(), 1);
    /// # Ok::<(), percid::pool::PutError>(())
    /// ```
    pub fn drain(&self) -> usize {
        // Not a hash map: the first one of a thread calls the C library for random bytes, which is
        // a cancellation point.
        let mut idle: BTreeMap<*const Slab, Vec<usize>> = BTreeMap::new();
        self.idle.drain(|address| {
            let object = ptr::with_exposed_provenance_mut::<u8>(address);
            // SAFETY: an idle object has a header, which belongs to this thread alone now.
            let slab = NonNull::new(object).map(|object| unsafe { (*header(object)).slab });
            idle.entry(slab.unwrap_or(ptr::null())).or_default().push(address);
        });
        let mut freed = 0;
        for slab in self.all_slabs() {
            let objects = idle.remove(&ptr::from_ref(slab)).unwrap_or_default();
            // SAFETY: the objects came from the lists.
            match unsafe { self.retire(slab, objects.len() as u32) } {
                Some(count) => freed += count as usize,
                None => objects.into_iter().for_each(|object| self.keep(object, slab)),
            }
        }
        freed
    }

    /// Frees a slab's memory if these idle objects, and those that were left, are all that were
    /// ever cut from it. In that case returns their number.
    ///
    /// # Safety
    ///
    /// The caller holds that many objects of the slab.
    unsafe fn retire(&self, slab: &Slab, idle: u32) -> Option<u32> {
        let left = slab.left.take();
        // SAFETY: the caller holds `idle` objects, and this call has taken those that were left.
        let retired = idle + left > 0 && unsafe { self.give_back(slab, idle + left) };
        if !retired && left > 0 {
            slab.left.add(left);
        }
        retired.then_some(idle + left)
    }

    /// Frees a slab's memory if the caller has all objects that were ever cut from it. Returns
    /// `true` if it did.
    ///
    /// # Safety
    ///
    /// The caller holds that many objects of the slab, and at least one.
    unsafe fn give_back(&self, slab: &Slab, idle: u32) -> bool {
        // From here on no object is cut from it.
        let Some(count) = slab.cut.close(idle, self.per_slab()) else { return false };
        // SAFETY: all objects of the slab belong to the caller.
        let discarded =
            unsafe { memory::discard(slab.start.expose_provenance(), self.slab_bytes()) };
        if discarded {
            // A thread that cuts objects from it again is ordered after the last users of the
            // memory.
            race_detector::release(ptr::from_ref(slab).addr());
            slab.cut.open(0);
            self.spare(slab);
        } else {
            slab.cut.open(count);
        }
        discarded
    }

    /// Adds a slab that objects can be cut from to the list of spares, unless it is there.
    pub(super) fn spare(&self, slab: &Slab) {
        if slab.spare.set() {
            self.spares.push(Block(ptr::from_ref(slab).expose_provenance()));
        }
    }
}
