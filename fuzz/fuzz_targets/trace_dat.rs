//! Files of `trace-cmd record`.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use percid_fuzz::{files, traces};
use percid_trace::read::Format;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if Format::detect(bytes) != Format::TraceDat {
        return Corpus::Reject;
    }
    if let Some(trace) = files::read(bytes, Format::TraceDat) {
        traces::check(&trace);
    }
    Corpus::Keep
});
