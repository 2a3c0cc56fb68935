//! Replacement of the implementation on systems other than 64-bit Linux. No memory can be
//! registered, so there are no regions, and a balancer has nothing to do.

pub(crate) mod balancing;
pub(crate) mod publish;
pub(crate) mod region;

use std::io;

/// Returns the error of functions that need Linux.
fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, crate::RegisterError::UnsupportedPlatform)
}

#[cfg(test)]
mod tests {
    use std::io;

    use crate::{Balancer, Batch, Pass, RegisterError};
    use percid::Source;
    use percid::pool::RawPool;

    #[test]
    fn no_memory_can_be_registered() {
        let (table, balancer) = (vec![7u8; 1 << 16], Balancer::new());
        let refused = Some(RegisterError::UnsupportedPlatform);
        assert_eq!(balancer.register(table.as_ptr(), 1 << 16).err(), refused);
        assert_eq!(balancer.register_written(table.as_ptr(), 1 << 16).err(), refused);
        // SAFETY: nothing is registered, as the assertion below checks.
        let trapped = unsafe { balancer.register_trapped(table.as_ptr(), 1 << 16) };
        assert_eq!(trapped.err(), refused);
    }

    #[test]
    fn percids_own_memory_cannot_be_registered_either() {
        let counter =
            percid::Counter::with_source(Source::Atomic).expect("every system has atomics");
        counter.add(1);
        let pool = RawPool::new(std::alloc::Layout::new::<[u64; 8]>(), 64);
        let object = pool.get().expect("memory");
        let balancer = Balancer::new();
        let refused = Some(RegisterError::UnsupportedPlatform);
        assert_eq!(balancer.register_ids(Source::Atomic).err(), refused);
        assert_eq!(balancer.register_pool(&pool).err(), refused);
        // SAFETY: the object is from this pool, and nothing uses it any more.
        assert!(unsafe { pool.put(object) }.is_ok());
    }

    #[test]
    fn a_balancer_has_nothing_to_do_and_says_so() {
        let balancer = Balancer::default();
        assert!(!balancer.has_nodes());
        assert_eq!(balancer.pass(), Pass::default());
        assert_eq!(balancer.move_batch(), Batch::default());
        balancer.start().expect("nothing is started, as on a machine with one node");
        balancer.stop();
        let report = balancer.report();
        assert!(report.nodes.is_empty() && report.regions.is_empty() && report.passes == 0);
        assert!(balancer.take_events().is_empty());
        let refused = balancer.publish().expect_err("no memfd");
        assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
        assert_eq!(
            refused.to_string(),
            "memory is balanced on 64-bit Linux only: not supported here"
        );
    }
}
