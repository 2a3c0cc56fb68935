//! Balancers' reports, as other processes write them.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use numa::published_report::PublishedReport;
use percid_numa::SkipReason;

mod numa;

fuzz_target!(|text: &[u8]| -> Corpus {
    match PublishedReport::parse(text) {
        Ok(report) => check(&report),
        Err(why) => assert!(why.contains("report"), "{why}"),
    }
    Corpus::Keep
});

/// Checks the displayed parts of a report.
fn check(report: &PublishedReport) {
    assert!(report.nodes.iter().all(|&node| node < 1024));
    let _ = (report.age(), report.scan_share(), report.move_share());
    for region in &report.regions {
        let shares = [region.local_share(), region.private_share()];
        assert!(shares.into_iter().flatten().all(|share| (0.0..=1.0).contains(&share)));
        assert!(region.pages_by_node.values().all(|&pages| pages <= region.pages()));
        let named: u64 =
            SkipReason::ALL.iter().filter(|&&of| region.skipped_for(of) > 0).count() as u64;
        assert!(named as usize <= region.skipped.len());
    }
    serde_json::to_string(report).expect("it is shown as JSON too");
}
