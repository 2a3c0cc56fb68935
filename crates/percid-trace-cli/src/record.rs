use crate::cli::RecordArguments;
use percid_command::outcome::{Failure, Outcome};
pub(crate) fn run(_: &RecordArguments, _: bool) -> Result<Outcome, Failure> {
    Ok(Outcome::Complete)
}
