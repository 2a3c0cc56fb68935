//! What tests do where something is missing that they need.

/// Says what is missing. That is a failure where the environment says `PERCID_TRACE=require`.
pub(super) fn skip(missing: &str) {
    eprintln!("skipped: {missing}");
    assert!(std::env::var("PERCID_TRACE").as_deref() != Ok("require"), "{missing}");
}
