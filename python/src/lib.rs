//! What the Python package `percid` consists of that is not written in Python: percid's crates,
//! with the types and the errors of Python. There is nothing here that they do not do.

mod errors;
mod interruptible;
mod machine;
mod paper;
mod records;
mod sim;
mod sweep;
mod table;
mod threads;
mod trace;

use pyo3::prelude::*;

/// The package's own module. It is used through the others.
#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use machine::this_machine;
    #[pymodule_export]
    use paper::published;
    #[pymodule_export]
    use sim::{catalogue, machine_text, spans, toml_of, workload_text};
    #[pymodule_export]
    use sweep::{Campaign, Control, Plan, compute, merge, run};
    #[pymodule_export]
    use table::Table;
    #[pymodule_export]
    use trace::{read_trace, replay_trace};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", percid_sweep::VERSION)
    }
}
