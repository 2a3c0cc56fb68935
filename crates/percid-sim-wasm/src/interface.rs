//! The functions that a module exports and may import.

use std::fmt;

use Kind::{I32, I64};

/// The type of a parameter or result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number of 32 bits.
    I32,
    /// A whole number of 64 bits.
    I64,
}

/// A function of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// The name.
    pub name: &'static str,
    /// Names of the parameters; each is an `i32`.
    pub parameters: &'static [&'static str],
    /// Type of the result, if there is one.
    pub result: Option<Kind>,
}

const fn export(name: &'static str, parameters: &'static [&'static str]) -> Function {
    Function { name, parameters, result: None }
}

const fn import(name: &'static str, parameters: &'static [&'static str], result: Kind) -> Function {
    Function { name, parameters, result: Some(result) }
}

/// The functions that a module exports: the methods of [`Policy`](percid_sim::policies::Policy).
/// All but `percid_id` may be left out. Threads and CPUs that are absent are -1.
pub const EXPORTS: [Function; 9] = [
    export("percid_start", &["cpus"]),
    Function { name: "percid_id", parameters: &["cpu", "thread"], result: Some(I32) },
    export("percid_switch", &["cpu", "prev", "next"]),
    export("percid_migrate", &["thread", "from", "to"]),
    export("percid_tick", &["cpu", "thread"]),
    export("percid_spawn", &["thread", "allowed_cpus"]),
    export("percid_exit", &["thread", "cpu"]),
    export("percid_affinity", &["thread", "allowed_cpus"]),
    export("percid_exec", &["cpu", "thread"]),
];

/// The functions that a module may import from `percid`.
pub const IMPORTS: [Function; 6] = [
    import("now", &[], I64),
    import("threads", &[], I32),
    import("allowed_cpus", &[], I32),
    import("distance", &["cpu", "other"], I32),
    export("count", &["what", "number"]),
    export("charge", &["what", "number"]),
];

/// The export that every module has.
pub(crate) const REQUIRED: &str = "percid_id";

/// The name of the module that has the imports.
pub(crate) const NAMESPACE: &str = "percid";

/// Prefix of all exports.
pub(crate) const PREFIX: &str = "percid_";

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            I32 => "i32",
            I64 => "i64",
        })
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters: Vec<String> =
            self.parameters.iter().map(|name| format!("{name}: i32")).collect();
        write!(f, "{}({})", self.name, parameters.join(", "))?;
        self.result.map_or(Ok(()), |result| write!(f, " -> {result}"))
    }
}
