//! The makers of values.

pub(super) mod sealed {
    use super::super::shard::Shard;

    /// A maker of values of type `T`: any function that returns one.
    #[doc(hidden)]
    pub trait Make<T> {
        /// Returns the size of a shard, in bytes.
        fn shard_bytes(&self) -> usize;

        /// Returns the size of a shard that belongs to no ID, in bytes: at least that of others.
        fn extra_bytes(&self) -> usize {
            self.shard_bytes()
        }

        /// Makes a value at an address.
        ///
        /// # Safety
        ///
        /// The address is that of the value in zeroed memory of a shard, and only the calling
        /// thread has access to it.
        unsafe fn make_at(&self, value: *mut T);
    }

    impl<T, F: Fn() -> T> Make<T> for F {
        fn shard_bytes(&self) -> usize {
            size_of::<Shard<T>>()
        }

        unsafe fn make_at(&self, value: *mut T) {
            // SAFETY: the caller guarantees memory for a value.
            unsafe { value.write(self()) };
        }
    }
}
