//! The part of the Python package `percid` that is not written in Python: percid's crates with the
//! types and the errors of Python. It adds no functions of its own.

mod errors;
mod interruptible;
mod machine;
mod paper;
mod policy;
mod records;
mod sim;
mod sweep;
mod table;
mod threads;
mod trace;

use pyo3::prelude::*;

/// The package's private module, used by its public modules.
#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use machine::this_machine;
    #[pymodule_export]
    use paper::published;
    #[pymodule_export]
    use policy::Process;
    #[pymodule_export]
    use sim::{catalogue, machine_text, spans, text_of, workload_text};
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
