//! The subcommands that examine a Linux kernel, on other systems: each prints one line that it is
//! not supported.

/// `percid info --check`.
pub(crate) mod check {
    use std::fmt;
    use std::time::Duration;

    use percid_command::exit::{Exit, Failure};
    use serde::Serialize;

    /// An empty type: there is no report.
    #[derive(Debug, Serialize)]
    pub(crate) enum CheckReport {}

    pub(crate) fn run(_length: Duration) -> Result<CheckReport, Failure> {
        Err(super::not_supported("percid info --check"))
    }

    impl CheckReport {
        pub(crate) fn interrupted(&self) -> bool {
            match *self {}
        }

        pub(crate) fn verdict(&self) -> &'static str {
            match *self {}
        }

        pub(crate) fn exit(&self) -> Exit {
            match *self {}
        }
    }

    impl fmt::Display for CheckReport {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            match *self {}
        }
    }
}

/// `percid kernel-ids`.
pub(crate) mod kernel_ids {
    use std::path::Path;

    use percid_command::exit::{Exit, Failure};

    pub(crate) fn run(_html: Option<&Path>, _json: bool) -> Result<Exit, Failure> {
        Err(super::not_supported("percid kernel-ids"))
    }

    pub(crate) fn experiment() -> Result<Exit, Failure> {
        run(None, false)
    }
}

/// `percid numa`.
pub(crate) mod numa {
    use crate::cli::NumaArguments;
    use percid_command::exit::{Exit, Failure};

    pub(crate) fn run(_arguments: &NumaArguments, _json: bool) -> Result<Exit, Failure> {
        Err(super::not_supported("percid numa"))
    }
}

fn not_supported(what: &str) -> percid_command::exit::Failure {
    percid_command::exit::Failure::not_supported(what, "64-bit Linux")
}
