//! The places of CPUs in the topology, as far as the table has looked them up.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use percid_rules::space::Distance;

use crate::sys::topology::{self, Place};

/// The place of a CPU in the topology, cached because a lookup costs about 50 us; `place` is
/// initialised if `known` is not 0.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownPlace {
    pub(super) known: u32,
    pub(super) place: MaybeUninit<Place>,
}

impl KnownPlace {
    fn get(self) -> Option<Place> {
        // SAFETY: `known` is set together with the place.
        (self.known != 0).then(|| unsafe { self.place.assume_init() })
    }
}

/// The places of the CPUs in the topology, each looked up at its first use. Must be used under the
/// lock.
pub(super) struct Places(pub(super) NonNull<KnownPlace>);

impl Places {
    /// Returns the distance of CPU `b` from CPU `a`.
    pub(super) fn distance(&self, a: u32, b: u32) -> Distance {
        let (a, b) = (self.get(a), self.get(b));
        let same = |a: Option<u32>, b: Option<u32>| a.is_some() && a == b;
        match () {
            () if same(a.core, b.core) => Distance::SameCore,
            () if same(a.l3, b.l3) => Distance::SameL3,
            () if same(a.node, b.node) => Distance::SameNode,
            () => Distance::Far,
        }
    }

    fn get(&self, cpu: u32) -> Place {
        // SAFETY: the array has an element for every CPU of the space, the creator of this value
        // holds the lock, and no other reference to the element is alive.
        let known = unsafe { &mut *self.0.add(cpu as usize).as_ptr() };
        known.get().unwrap_or_else(|| {
            let place = topology::place(cpu);
            *known = KnownPlace { known: 1, place: MaybeUninit::new(place) };
            place
        })
    }
}
