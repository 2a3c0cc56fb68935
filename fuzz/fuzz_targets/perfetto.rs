//! Traces of Perfetto; what was read is written and read again.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use percid_fuzz::{files, traces};
use percid_trace::read::Format;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if Format::detect(bytes) != Format::Perfetto {
        return Corpus::Reject;
    }
    if let Some(trace) = files::read(bytes, Format::Perfetto) {
        traces::check(&trace);
        files::check_shown(&trace);
    }
    Corpus::Keep
});
