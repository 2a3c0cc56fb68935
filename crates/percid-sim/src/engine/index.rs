//! Type-safe indices of threads and of processes, and the slabs that they index.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// The index of an item in the simulation. The index of an ended item is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ItemIndex<Of>(u32, PhantomData<Of>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfThread {}
pub(super) type ThreadIndex = ItemIndex<OfThread>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfProcess {}
pub(super) type ProcessIndex = ItemIndex<OfProcess>;

/// The first process.
pub(super) const FIRST_PROCESS: ProcessIndex = ItemIndex(0, PhantomData);

impl<Of> ItemIndex<Of> {
    pub(super) fn new(number: u32) -> ItemIndex<Of> {
        ItemIndex(number, PhantomData)
    }

    pub(super) fn number(self) -> u32 {
        self.0
    }
}

/// Items by their indices. A released item stays until a new one replaces it.
#[derive(Debug)]
pub(super) struct Slab<Of, T> {
    items: Vec<T>,
    free: Vec<ItemIndex<Of>>,
}

impl<Of: Copy, T> Slab<Of, T> {
    pub(super) fn new() -> Slab<Of, T> {
        Slab { items: Vec::new(), free: Vec::new() }
    }

    /// Stores an item at the index that was released last, or at a new one.
    pub(super) fn insert(&mut self, item: T) -> ItemIndex<Of> {
        if let Some(place) = self.free.pop() {
            self[place] = item;
            return place;
        }
        self.items.push(item);
        ItemIndex::new(self.items.len() as u32 - 1)
    }

    pub(super) fn release(&mut self, place: ItemIndex<Of>) {
        self.free.push(place);
    }

    /// Returns the number of items that have not been released.
    pub(super) fn used(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// Returns the indices of all items, including the released ones.
    pub(super) fn places(&self) -> impl Iterator<Item = ItemIndex<Of>> + use<Of, T> {
        (0..self.items.len() as u32).map(ItemIndex::new)
    }
}

impl<Of, T> Index<ItemIndex<Of>> for Slab<Of, T> {
    type Output = T;

    fn index(&self, place: ItemIndex<Of>) -> &T {
        &self.items[place.0 as usize]
    }
}

impl<Of, T> IndexMut<ItemIndex<Of>> for Slab<Of, T> {
    fn index_mut(&mut self, place: ItemIndex<Of>) -> &mut T {
        &mut self.items[place.0 as usize]
    }
}
