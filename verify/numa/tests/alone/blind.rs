//! A pass that cannot read the process's mappings arms nothing, reports that, and harms nothing.
//! The process has no descriptors left during that time.

use std::time::Duration;

use percid_numa::{Balancer, Event, Settings};

const PAGE: usize = 4096;
const BYTES: usize = 64 * PAGE;

/// Limits the descriptors of the process. Returns the limit before.
fn limit_descriptors(limit: u64) -> u64 {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is a valid place for the answer, and is filled when it is read.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits), 0);
        let before = std::mem::replace(&mut limits.rlim_cur, limit);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limits), 0);
        before
    }
}

#[test]
fn a_blind_pass_arms_nothing_and_loses_no_region() {
    let _alone = crate::alone();
    percid_numa::testing::pretend_nodes(2);
    let settings = Settings { scan_delay: Duration::from_nanos(1), ..Settings::default() };
    let balancer = Balancer::builder().settings(settings).build().expect("good settings");
    let memory = vec![1u8; BYTES + PAGE];
    let start = memory.as_ptr().map_addr(|address| address.next_multiple_of(PAGE));
    let _region = balancer.register(start, BYTES).expect("private memory");
    let limit = limit_descriptors(0);
    let blind = balancer.pass();
    limit_descriptors(limit);
    assert_eq!(blind.armed, 0);
    assert!(balancer.take_events().contains(&Event::MappingsUnreadable));
    let seeing = balancer.pass();
    let report = balancer.report();
    assert!(!report.regions[0].gone);
    assert_eq!((report.unreadable_passes, report.passes), (1, 2));
    assert_eq!(seeing.armed as usize, BYTES / PAGE);
}
