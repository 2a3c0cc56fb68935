//! Memory that follows its threads: NUMA balancing that a program switches on for its own memory, without root
//! and without the machine-wide switch.
//!
//! A [`Balancer`] looks after *regions*: memory that the program registers. Now and then it *arms* pages, so that
//! the next access to each is seen; who uses a page from another node twice in a row gets it. Which regions are
//! armed when is the published scan (Linux 6.7, commits 9ae5c00ea2e6 to ef4e0604996f): see [`percid_rules::scan`], [`Rules`] and
//! [`Settings`]. Every decision is counted by region and reason, and listed by [`Balancer::take_events`]. Other
//! processes can see what is counted if the program calls [`Balancer::publish`].
//!
//! ```no_run
//! use percid_numa::Balancer;
//!
//! let mut table = vec![0u8; 64 << 20];
//! let start = table.as_ptr().map_addr(|address| address.next_multiple_of(4096));
//! let balancer = Balancer::new();
//! let region = balancer.register(start, 63 << 20)?;
//! balancer.start()?;
//! // In the threads that use it, once per page or so:
//! region.touch(12345);
//! # table[0] = 1;
//! for region in balancer.report().regions {
//!     println!("{:?}: {:?} pages, {} moved", region.range, region.pages_by_node, region.moved);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How access is seen
//!
//! * *Reported* ([`Balancer::register`]): the program calls [`Region::touch`]. It tests one bit and writes
//!   nothing unless the page is armed, so the scan itself is the sampling: each armed page is counted once, for
//!   the thread and node that came first. No fault, nothing that the program could notice.
//! * *Trapped* ([`Balancer::register_trapped`]): armed memory has no access rights, and a handler of SIGSEGV
//!   notes who faulted and gives them back. The program need not say anything, but it breaks what a handler
//!   cannot mend; see below. In grains of 64 KiB, because every armed grain may become a mapping of its own.
//! * *Written* ([`Balancer::register_written`]): armed memory is write-protected by `userfaultfd`, and a thread of
//!   percid's, the monitor, notes who writes there first and lets it go on. Only writes are seen, but nothing breaks:
//!   system calls wait as well. In grains of 64 KiB, because each takes a thread to sleep and wake again. The process
//!   must be permitted to: by `CAP_SYS_PTRACE`, `vm.unprivileged_userfaultfd` = 1 or `/dev/userfaultfd`.
//!
//! Where a region has huge pages, or will have as soon as it is used, a grain is one of them, in all three ways: the
//! kernel moves it as a whole.
//!
//! | what | reported | trapped | written |
//! |---|---|---|---|
//! | the program says where it goes | yes | no | no |
//! | reads are seen | yes | yes | no |
//! | system calls at armed memory | work | fail, unless excluded | wait, and work |
//! | permission is needed | no | no | yes |
//! | memory of files, shared memory | yes | yes | no |
//!
//! # Contract
//!
//! * **Threads**: everything may be called by any number of threads. Pages are moved by the balancer's thread
//!   or by who calls [`Balancer::move_batch`]; a thread of the program that faults or maps memory meanwhile
//!   waits for one batch at most ([`Settings::batch`]), and pages move at no more than
//!   [`Settings::bandwidth`].
//! * **Signals**: only [`Region::touch`] is async-signal-safe, and access to trapped and written memory. The
//!   balancer's own threads block all of the program's signals.
//! * **Fork**: a child has all of the memory. Its balancer does nothing, faults at pages that were armed are
//!   caught, and its regions may be dropped. To give memory to system calls that is still armed, the child drops its
//!   region or [excludes](Region::exclude) a part: either disarms all of it for good. Memory whose writes are
//!   seen is not protected in the child, which keeps copies of two descriptors that are of no use to it, until
//!   it calls `exec`. To balance the child, make another balancer; what it registers is disarmed first, and no
//!   longer the old one's.
//! * **Cost**: with one node nothing is armed, mapped, started or caught. Else about 0.2 us for every page that
//!   is armed, and less than 3 % of the time together; for the first access to an armed grain 0.3 us if it
//!   is reported, 4 us if it is trapped and 12 us if it is a write that is seen (an x86-64 virtual machine;
//!   `verify/programs` measures it: `numa-touch`, `numa-trap`, `numa-written`); a copy for every page that moves.
//! * **Memory**: 6.25 bytes a grain; where writes are seen, some 30 KiB for the monitor.
//! * **What trapping breaks**: system calls fail with `EFAULT` at armed pages: [`Region::exclude`] buffers that
//!   are given to the kernel, for as long as it has them (`io_uring`, asynchronous I/O). That goes for futex words
//!   too, so for everything that threads wait by: glibc's condition variables abort, wakes of shared ones are lost,
//!   and of robust mutexes the kernel cannot say that their owner died. Access by other processes
//!   (`process_vm_readv`, debuggers) fails too. A thread dies at its next access to an armed page if it blocks
//!   SIGSEGV, as handlers of crashes do that read the program's memory; and if its stack lies there, or the
//!   alternate one of its signal handlers. A handler that the program installs later, and that does not pass on, takes
//!   faults for crashes: it is noticed before the next pass, and nothing is armed any more. The access rights must
//!   not be changed.
//! * **Rights must come back**: nothing is armed, and everything disarmed at the next pass, while `RLIMIT_DATA` is set;
//!   executable memory is refused. A sandbox that forbids `mprotect` must be entered before the first region is
//!   registered, or after the last was dropped: what is armed then can be disarmed by nobody.
//! * **What is left to the program**: three quarters of the mappings that it can have (`vm.max_map_count` when a region
//!   is registered). A fault that would need more disarms its whole region, at 25 us or more for an armed MiB, and
//!   faults and mappings of all threads wait meanwhile.
//! * **What is not broken**: a crash stays a crash. The handler before percid's, or the default, gets every fault
//!   that no armed page explains, with the signals blocked that it expects, once if it asked for that. It runs on the
//!   thread's alternate stack, if there is one, even if it did not ask for it.
//! * **Limits**: the period is one for the process, not one per thread as in the kernel; pages that other
//!   processes map too do not move; memory that is made of huge pages after it was registered (`khugepaged`), or of
//!   several pages together (multi-size THP), is judged page by page and moved as a whole; where a sandbox forbids `move_pages`, everything is counted as failed.

#![deny(rustdoc::broken_intra_doc_links)]

#[cfg(not(target_os = "linux"))]
compile_error!("percid-numa uses Linux system calls: there is no other system it works on");

mod access;
mod balancer;
mod builder;
mod error;
mod inner;
mod migrate;
mod own_memory;
mod region;
mod report;
mod sys;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;

pub use access::AccessMethod;
pub use balancer::Balancer;
pub use builder::Builder;
pub use error::RegisterError;
pub use inner::Pass;
pub use migrate::Batch;
pub use own_memory::IdRegions;
pub use percid_rules::scan::{BadSetting, Order, Reason, Rules, Settings, Width};
pub use region::{Exclusion, Region};
pub use report::event::Event;
pub use report::{RegionReport, Report};
