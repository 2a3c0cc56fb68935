//! The operations of the structures of percid-sync, which C calls; beside those of the C library, and
//! of liburcu if the program was built with it.

use std::ffi::c_void;
use std::ptr;

use percid_capi::{budget, domain, rwlock};
use percid_sync::{Budget, Domain, RawRwLock};

use crate::loops::InC;
use crate::operations::{Comparison, RUST, in_c};
use crate::rounds::Way;

/// Units of the budgets, of which one is charged.
const LIMIT: u64 = 1 << 30;

unsafe extern "C" {
    fn percid_bench_c_rwlock_read(object: *mut c_void, times: u64);
    fn percid_bench_c_pthread_rwlock_read(object: *mut c_void, times: u64);
    fn percid_bench_c_domain_read(object: *mut c_void, times: u64);
    fn percid_bench_c_domain_synchronize(object: *mut c_void, times: u64);
    fn percid_bench_c_budget_charge(object: *mut c_void, times: u64);
}

pub(crate) fn all() -> Vec<Comparison> {
    let ([lock, domain, budget], liburcu) = (created(), liburcu::loops());
    let of_liburcu = |number: usize| {
        let ways = liburcu.into_iter().flat_map(move |of_flavours| of_flavours[number]);
        ways.map(|(name, body)| in_c(name, body, ptr::null_mut()))
    };
    let called = |body: InC, object| in_c("C, called", body, object);
    let null = ptr::null_mut();
    let locks = vec![
        locking(),
        called(percid_bench_c_rwlock_read, lock),
        in_c("pthread_rwlock_t", percid_bench_c_pthread_rwlock_read, null),
    ];
    let mut readers = vec![reading(), called(percid_bench_c_domain_read, domain)];
    readers.extend(of_liburcu(0));
    let mut periods = vec![waiting(), called(percid_bench_c_domain_synchronize, domain)];
    periods.extend(of_liburcu(1));
    let charges = vec![charging(), called(percid_bench_c_budget_charge, budget)];
    vec![
        Comparison { operation: "lock read + unlock", ways: locks },
        Comparison { operation: "domain enter + leave", ways: readers },
        Comparison { operation: "domain synchronize", ways: periods },
        Comparison { operation: "budget charge + release", ways: charges },
    ]
}

/// Creates a lock, a domain and a budget of C. A handle is NULL if that fails.
fn created() -> [*mut c_void; 3] {
    let (mut lock, mut readers, mut units) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: the places for handles are valid.
    let _ = unsafe {
        rwlock::percid_rwlock_create(&mut lock)
            + domain::percid_domain_create(&mut readers)
            + budget::percid_budget_create(&mut units, LIMIT)
    };
    [lock.cast(), readers.cast(), units.cast()]
}

fn rust(repeat: impl Fn(u64) + 'static) -> Way<'static> {
    Way { name: RUST, repeat: Box::new(repeat) }
}

fn locking() -> Way<'static> {
    let lock = RawRwLock::new();
    rust(move |times| {
        for _ in 0..times {
            if lock.read(None) {
                lock.read_unlock();
            }
        }
    })
}

fn reading() -> Way<'static> {
    let domain = Domain::new();
    rust(move |times| (0..times).for_each(|_| drop(domain.read())))
}

fn waiting() -> Way<'static> {
    let domain = Domain::new();
    rust(move |times| (0..times).for_each(|_| _ = domain.synchronize()))
}

fn charging() -> Way<'static> {
    let budget = Budget::new(LIMIT);
    rust(move |times| {
        for _ in 0..times {
            if budget.try_charge(1).is_ok() {
                budget.release(1);
            }
        }
    })
}

/// The loops of liburcu, if the program was built with it.
#[cfg(liburcu)]
mod liburcu {
    use super::InC;

    unsafe extern "C" {
        fn percid_bench_liburcu_start();
        fn percid_bench_liburcu_memb_read(object: *mut std::ffi::c_void, times: u64);
        fn percid_bench_liburcu_bp_read(object: *mut std::ffi::c_void, times: u64);
        fn percid_bench_liburcu_memb_synchronize(object: *mut std::ffi::c_void, times: u64);
        fn percid_bench_liburcu_bp_synchronize(object: *mut std::ffi::c_void, times: u64);
    }

    /// Returns the loops of readers, and those of grace periods, for each flavour.
    pub(super) fn loops() -> Option<[[(&'static str, InC); 2]; 2]> {
        // SAFETY: the thread is registered once.
        unsafe { percid_bench_liburcu_start() };
        let names = ["liburcu memb, inline", "liburcu bp, inline"];
        let loops: [[InC; 2]; 2] = [
            [percid_bench_liburcu_memb_read, percid_bench_liburcu_bp_read],
            [percid_bench_liburcu_memb_synchronize, percid_bench_liburcu_bp_synchronize],
        ];
        Some(loops.map(|[memb, bp]| [(names[0], memb), (names[1], bp)]))
    }
}

#[cfg(not(liburcu))]
mod liburcu {
    use super::InC;

    pub(super) fn loops() -> Option<[[(&'static str, InC); 2]; 2]> {
        None
    }
}
