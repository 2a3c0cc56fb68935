//! Helper of tests for requirements that this machine does not meet.

/// Reports what is missing. That is a failure if the environment has `PERCID_TRACE=require`.
pub(super) fn skip(missing: &str) {
    percid_skips::not_checked("recordings by tracefs and perf events", missing);
    assert!(std::env::var("PERCID_TRACE").as_deref() != Ok("require"), "{missing}");
}
