//! Check for the support of Parquet in this program.

use percid_command::exit::Failure;

/// Refuses an option that needs Parquet, if the library for it is not built in or does not work.
pub(super) fn expect(what: &str, instead: &str) -> Result<(), Failure> {
    if cfg!(not(feature = "sweep")) {
        return Err(Failure::Usage(format!(
            "{what}: expected a percid with the feature sweep (cargo install percid-cli --features \
             sweep); {instead}"
        )));
    }
    if cfg!(not(target_endian = "little")) {
        return Err(Failure::Usage(format!("{what}: expected a little-endian machine; {instead}")));
    }
    Ok(())
}
