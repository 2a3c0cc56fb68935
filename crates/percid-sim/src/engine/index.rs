//! Places of threads and of processes, which the compiler tells apart, and the lists that they
//! select from.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// The place of something in the simulation. The place of what has ended is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place<Of>(u32, PhantomData<Of>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfThread {}
pub(super) type ThreadIndex = Place<OfThread>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfProcess {}
pub(super) type ProcessIndex = Place<OfProcess>;

/// The first process.
pub(super) const FIRST_PROCESS: ProcessIndex = Place(0, PhantomData);

impl<Of> Place<Of> {
    pub(super) fn new(number: u32) -> Place<Of> {
        Place(number, PhantomData)
    }

    pub(super) fn number(self) -> u32 {
        self.0
    }
}

/// Items by their places. A released item stays until a new one takes its place.
#[derive(Debug)]
pub(super) struct Slab<Of, T> {
    items: Vec<T>,
    free: Vec<Place<Of>>,
}

impl<Of: Copy, T> Slab<Of, T> {
    pub(super) fn new() -> Slab<Of, T> {
        Slab { items: Vec::new(), free: Vec::new() }
    }

    /// Puts an item into the place that was released last, or into a new one.
    pub(super) fn insert(&mut self, item: T) -> Place<Of> {
        if let Some(place) = self.free.pop() {
            self[place] = item;
            return place;
        }
        self.items.push(item);
        Place::new(self.items.len() as u32 - 1)
    }

    pub(super) fn release(&mut self, place: Place<Of>) {
        self.free.push(place);
    }

    /// How many items have not been released.
    pub(super) fn used(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// The places of all items, the released ones included.
    pub(super) fn places(&self) -> impl Iterator<Item = Place<Of>> + use<Of, T> {
        (0..self.items.len() as u32).map(Place::new)
    }
}

impl<Of, T> Index<Place<Of>> for Slab<Of, T> {
    type Output = T;

    fn index(&self, place: Place<Of>) -> &T {
        &self.items[place.0 as usize]
    }
}

impl<Of, T> IndexMut<Place<Of>> for Slab<Of, T> {
    fn index_mut(&mut self, place: Place<Of>) -> &mut T {
        &mut self.items[place.0 as usize]
    }
}
