//! The contenders: the kernel and percid.

use std::fmt;
use std::str::FromStr;

/// The party that moves memory to its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contender {
    /// The kernel alone.
    Kernel,
    /// A balancer of percid's alone.
    Percid,
    /// The kernel and a balancer.
    Both,
    /// The negative control: memory stays where it is.
    Nobody,
}

impl Contender {
    const ALL: [Contender; 4] =
        [Contender::Kernel, Contender::Percid, Contender::Both, Contender::Nobody];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Contender::Kernel => "kernel",
            Contender::Percid => "percid",
            Contender::Both => "both",
            Contender::Nobody => "nobody",
        }
    }

    /// Returns `true` if a balancer of percid's runs.
    pub(super) fn has_balancer(self) -> bool {
        matches!(self, Contender::Percid | Contender::Both)
    }

    /// Switches the kernel's balancing on or off, for the whole machine, which must belong to the
    /// test.
    pub(super) fn switch_kernel(self) -> Result<(), String> {
        const SWITCH: &str = "/proc/sys/kernel/numa_balancing";
        let state = if matches!(self, Contender::Kernel | Contender::Both) { "1" } else { "0" };
        std::fs::write(SWITCH, state).map_err(|error| format!("{SWITCH}: {error}"))
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Contender {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Contender, &'static str> {
        let found = Contender::ALL.into_iter().find(|contender| contender.name() == text);
        found.ok_or("expected kernel, percid, both or nobody")
    }
}
