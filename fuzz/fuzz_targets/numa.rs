//! The command's own files about reports of other processes: they are private there.

#![allow(dead_code, reason = "the command uses all of it")]

#[path = "../../crates/percid-cli/src/numa/errno.rs"]
pub(crate) mod errno;
#[path = "../../crates/percid-cli/src/numa/figures.rs"]
pub(crate) mod figures;
#[path = "../../crates/percid-cli/src/numa/names.rs"]
pub(crate) mod names;
#[path = "../../crates/percid-cli/src/numa/process.rs"]
pub(crate) mod process;
#[path = "../../crates/percid-cli/src/numa/publication.rs"]
pub(crate) mod publication;
#[path = "../../crates/percid-cli/src/numa/published_report.rs"]
pub(crate) mod published_report;
