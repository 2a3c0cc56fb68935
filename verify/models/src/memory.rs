//! Store buffers, for protocols that depend on barriers.

/// The way in which the stores of one processor reach the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// At once, and loads are performed in program order: no real processor is like that.
    Sequential,
    /// Through a buffer, in program order. An atomic read-modify-write empties it first. x86-64.
    Fifo,
    /// Through a buffer, and stores to different places overtake each other. An atomic
    /// read-modify-write leaves the buffer alone, and loads may be performed early. Arm allows
    /// that, if nothing but the barriers of the model is in the program.
    Unordered,
}

/// A store that waits in a buffer.
pub trait Store: Copy {
    /// Names a place in memory.
    type Place: Eq;

    /// Returns the target of the store.
    fn place(&self) -> Self::Place;
}

/// The stores of one processor that the others do not see yet, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Buffer<S, const N: usize>([Option<S>; N]);

impl<S: Store, const N: usize> Buffer<S, N> {
    /// No store waits.
    pub const EMPTY: Self = Self([None; N]);

    /// Returns `true` if another store must wait until one has left.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0[N - 1].is_some()
    }

    /// Returns `true` if no store waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    /// Returns the waiting stores, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &S> {
        self.0.iter().flatten()
    }

    /// Returns the waiting stores, mutably.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut S> {
        self.0.iter_mut().flatten()
    }

    /// Adds a store.
    ///
    /// # Panics
    ///
    /// If the buffer is full.
    pub fn push(&mut self, store: S) {
        let free = self.0.iter_mut().find(|place| place.is_none());
        *free.expect("whoever stores has looked for room") = Some(store);
    }

    /// Returns the positions of the stores that may become visible next. Stores to one place never
    /// overtake each other.
    pub fn ready(&self, memory: Memory) -> impl Iterator<Item = usize> {
        let first_to_its_place = |index: usize, store: &S| {
            self.iter().take(index).all(|older| older.place() != store.place())
        };
        self.iter().enumerate().filter_map(move |(index, store)| {
            let leaves =
                index == 0 || memory == Memory::Unordered && first_to_its_place(index, store);
            leaves.then_some(index)
        })
    }

    /// Takes a store out.
    ///
    /// # Panics
    ///
    /// If there is none at `index`.
    pub fn remove(&mut self, index: usize) -> S {
        let store = self.0[index].take().expect("only waiting stores leave");
        self.0[index..].rotate_left(1);
        store
    }

    /// Takes all stores out, in program order.
    pub fn take(&mut self) -> impl Iterator<Item = S> + use<S, N> {
        std::mem::replace(self, Self::EMPTY).0.into_iter().flatten()
    }
}
