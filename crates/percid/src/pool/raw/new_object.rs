//! New objects, cut from slabs, and the slabs that are mapped for them.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::RawPool;
use super::slab::{ALL_SLABS, Header, Slab};
use crate::arena::Block;
use crate::push_list;
use crate::sys::{memory, race_detector};

impl RawPool {
    /// Cuts a new object.
    #[cold]
    pub(super) fn cut(&self) -> Option<NonNull<u8>> {
        self.ensure_number();
        loop {
            let current = self.current.get();
            // SAFETY: null, or a slab, which exists forever.
            if let Some(slab) = unsafe { current.as_ref() } {
                if let Some(index) = slab.cut.next(self.per_slab()) {
                    race_detector::acquire(ptr::from_ref(slab).addr());
                    return NonNull::new(self.object_of(slab, index));
                }
            }
            let slab = self.take_spare().or_else(|| self.new_slab())?;
            if !self.current.replace(current, slab) {
                // SAFETY: slabs exist forever.
                self.spare(unsafe { &*slab });
            }
        }
    }

    /// Returns an object that was just cut, after writing its header.
    fn object_of(&self, slab: &Slab, index: u32) -> *mut u8 {
        // SAFETY: `index` is below the number of objects that fit the slab.
        unsafe {
            let object = slab.start.add(self.first() + index as usize * self.stride());
            object.cast::<Header>().sub(1).write(Header { mark: 0, slab });
            object
        }
    }

    fn take_spare(&self) -> Option<*mut Slab> {
        let slab = ptr::with_exposed_provenance_mut::<Slab>(self.spares.pop()?.0);
        // SAFETY: slabs exist forever; this one is on no list any more.
        unsafe { (*slab).spare.clear() };
        Some(slab)
    }

    fn new_slab(&self) -> Option<*mut Slab> {
        let block = Block::claim(size_of::<Slab>())?;
        let Some(start) = memory::map(self.slab_bytes()) else {
            // SAFETY: no other thread has access to the block.
            unsafe { block.release(size_of::<Slab>()) };
            return None;
        };
        let slab = ptr::with_exposed_provenance_mut::<Slab>(block.0);
        // SAFETY: this is a fresh block in the shared slot, large enough, aligned to a cache line
        // and zeroed. Zero is the right value of all fields except these and the `older` ones. The
        // link is not written: a thread that lost a race for the block may still read it.
        unsafe {
            (&raw mut (*slab).start).write(start.as_ptr());
            (&raw mut (*slab).bytes).write(self.slab_bytes());
        }
        // For a detector, mapping memory is a write to it.
        race_detector::release(slab.addr());
        // SAFETY: before the slab is pushed a second time, only threads that iterate over all slabs
        // have access to it, and they do not read the other list's link.
        let link = |older| unsafe { (&raw mut (*slab).older_of_all).write(older) };
        push_list::push(&ALL_SLABS, slab, link);
        // SAFETY: no other thread uses the `older` link before the slab is pushed to this list.
        let link = |older| unsafe { (&raw mut (*slab).older).write(older) };
        push_list::push(&self.slabs, slab, link);
        Some(slab)
    }

    /// Assigns a number to the pool, unless it has one. This happens before the first object is
    /// cut, so every thread that has an object of the pool reads the number.
    fn ensure_number(&self) {
        static POOLS: AtomicU32 = AtomicU32::new(1);
        if self.number.load(Relaxed) == 0 {
            let number = u64::from(POOLS.fetch_add(1, Relaxed));
            // A number that another thread has assigned in the meantime stays.
            let _ = self.number.compare_exchange(0, number, Relaxed, Relaxed);
        }
    }
}
