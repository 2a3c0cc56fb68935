//! What tests do where something is missing that they need.

/// Says what is missing. That is a failure where the environment says `PERCID_TRACE=require`.
pub(super) fn skip(missing: &str) {
    percid_skips::not_checked("recordings by tracefs and perf events", missing);
    assert!(std::env::var("PERCID_TRACE").as_deref() != Ok("require"), "{missing}");
}
