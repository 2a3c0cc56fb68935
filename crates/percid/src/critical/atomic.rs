//! The twins of the critical sections on machines without any: there is nothing to try, so every
//! operation takes the way of a missing ID, which ends at an atomic instruction. They are `unsafe` for
//! the sake of the signatures; none needs anything of its caller.

use std::mem::MaybeUninit;

use super::Append;

macro_rules! operations {
    ($add:ident, $acquire:ident, $push:ident, $pop:ident, $append:ident, $discard:ident) => {
        /// See the function of this name in `x86_64.rs`.
        #[inline(always)]
        pub(crate) unsafe fn $add<const DISPLACEMENT: isize>(_object: usize, _n: i64) -> bool {
            false
        }

        /// See the function of this name in `x86_64.rs`.
        #[inline(always)]
        pub(crate) unsafe fn $acquire<const DISPLACEMENT: isize, const CLOSED: isize>(
            _object: usize,
            _expected: usize,
            _token: usize,
        ) -> usize {
            0
        }

        /// See the function of this name in `x86_64.rs`.
        #[inline(always)]
        pub(crate) unsafe fn $push<const DISPLACEMENT: isize>(
            _object: usize,
            _capacity: &u64,
            _item: MaybeUninit<u64>,
        ) -> bool {
            false
        }

        /// See the function of this name in `x86_64.rs`.
        #[inline(always)]
        pub(crate) unsafe fn $pop<const DISPLACEMENT: isize>(
            _object: usize,
        ) -> Option<MaybeUninit<u64>> {
            None
        }

        /// See the function of this name in `x86_64.rs`.
        #[inline(always)]
        pub(crate) unsafe fn $append<const DISPLACEMENT: isize>(
            _object: usize,
            _request: &Append,
        ) -> bool {
            false
        }

        /// See the function of this name in `x86_64.rs`.
        #[inline(always)]
        pub(crate) unsafe fn $discard<const DISPLACEMENT: isize>(
            _object: usize,
            _keep: u64,
            _mask: u64,
        ) -> bool {
            false
        }
    };
}

operations!(add_kernel, acquire_kernel, push_kernel, pop_kernel, append_kernel, discard_kernel);
operations!(add_table, acquire_table, push_table, pop_table, append_table, discard_table);
