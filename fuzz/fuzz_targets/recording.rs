//! Recordings of real kernels' IDs, which are replayed under the policies.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use percid_sim::conformance::{self, Recording};
use percid_sim::policies;

/// Machines with more CPUs cost more than they show.
const REPLAYED: u32 = 64;

fuzz_target!(|text: &str| -> Corpus {
    match Recording::read(text) {
        Ok(recording) => {
            recording.check().expect("what was read can be");
            let again = Recording::read(&recording.to_string());
            assert_eq!(again.as_ref(), Ok(&recording), "what is written is read");
            if recording.possible <= REPLAYED {
                let policy = conformance::generation(&recording.release);
                let policy = policy.unwrap_or(&policies::ALL[text.len() % policies::ALL.len()]);
                let found = recording.compare(policy);
                assert!(found.differences.len() <= found.compared);
            }
        }
        Err(malformed) => assert!(malformed.line <= text.lines().count().max(1)),
    }
    Corpus::Keep
});
