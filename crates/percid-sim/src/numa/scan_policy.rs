//! The scan that a simulated process makes: by the rules of Linux, or by anything else.

use std::ops::Range;
use std::time::Duration;

use percid_rules::scan::{Effects, Rules, Scan, Scanner, Settings, Traits};

/// The scan of a process. [`run::process_by`](super::run::process_by) simulates a process with it.
/// The scans of Linux are those of [`Rules`].
///
/// # Contract
///
/// The simulation ends with a [`ScanViolation`](super::contract::ScanViolation) if a scan breaks
/// this:
///
/// - A pass ends: it calls its effects at most eight times for each region, and once for each 2 MiB
///   that it may inspect. It inspects at most what [`Settings`] allow, and a huge page more.
/// - A pass only arms and reports regions of the process. An armed part is inside its region.
/// - A cycle ends: in each pass that ends none, the scan inspects as many bytes as it may arm, or it
///   inspects a region. So a cycle has at most as many passes as that takes, and one more.
/// - [`sequence`](Self::sequence) never falls.
///
/// A pass that loops without a call of its effects cannot be ended.
///
/// # Examples
///
/// This scan leaves its region:
///
/// ```
/// use std::ops::Range;
/// use std::time::Duration;
///
/// use percid_rules::scan::{Effects, Scanner, Settings, Traits};
/// use percid_sim::numa::{Setup, run::process_by, scan_policy::ScanPolicy};
///
/// struct OnePageTooFar(Vec<Range<u64>>, i64);
///
/// impl ScanPolicy for OnePageTooFar {
///     fn map(&mut self, regions: Vec<(Range<u64>, Traits)>) {
///         self.0 = regions.into_iter().map(|(range, _)| range).collect();
///     }
///     fn pass(&mut self, _: Scanner, _: Duration, _: &Settings, effects: &mut dyn Effects) {
///         let Range { start, end } = self.0[0];
///         effects.arm(start, start..end + 4096);
///         self.1 += 1;
///     }
///     fn used(&mut self, _region: u64, _thread: u32) {}
///     fn sequence(&self) -> i64 {
///         self.1
///     }
/// }
///
/// let scan = OnePageTooFar(Vec::new(), 0);
/// let broken = process_by(&Setup::published(), scan, false, 0, 1);
/// let violation = broken.expect_err("a part outside").to_string();
/// assert!(violation.contains("expected a part inside the region"), "{violation}");
/// ```
pub trait ScanPolicy {
    /// Takes over the regions of the process by ascending address, before the first pass.
    fn map(&mut self, regions: Vec<(Range<u64>, Traits)>);

    /// Makes a pass for a thread at `now`, measured from the start of the process.
    fn pass(
        &mut self,
        scanner: Scanner,
        now: Duration,
        settings: &Settings,
        effects: &mut dyn Effects,
    );

    /// Reports that a thread used an armed page of the region that starts at this address.
    fn used(&mut self, region: u64, thread: u32);

    /// Returns the number of complete cycles over all regions.
    fn sequence(&self) -> i64;
}

/// The scan by the rules of a kernel.
pub(super) struct KernelScan<'a> {
    scan: Scan,
    rules: &'a Rules,
}

impl KernelScan<'_> {
    pub(super) fn new(rules: &Rules) -> KernelScan<'_> {
        KernelScan { scan: Scan::new(), rules }
    }
}

impl ScanPolicy for KernelScan<'_> {
    fn map(&mut self, regions: Vec<(Range<u64>, Traits)>) {
        self.scan.remap(regions);
    }

    fn pass(
        &mut self,
        scanner: Scanner,
        now: Duration,
        settings: &Settings,
        mut effects: &mut dyn Effects,
    ) {
        self.scan.pass(scanner, now, settings, self.rules, &mut effects);
    }

    fn used(&mut self, region: u64, thread: u32) {
        self.scan.used_by(region, 1 << self.rules.width.bit(thread));
    }

    fn sequence(&self) -> i64 {
        self.scan.sequence()
    }
}
