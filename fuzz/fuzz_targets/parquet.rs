//! Tables as percid stores them; what was read is stored and read again.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use percid_fuzz::{files, traces};
use percid_trace::read::Format;

fuzz_target!(init: files::allow_caught_panics(), |bytes: &[u8]| -> Corpus {
    if Format::detect(bytes) != Format::Parquet {
        return Corpus::Reject;
    }
    if let Some(trace) = files::read(bytes, Format::Parquet) {
        traces::check(&trace);
        files::check_stored(&trace);
    }
    Corpus::Keep
});
