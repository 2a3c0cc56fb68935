//! The model of this machine.

use percid_command::presets::{self, THIS};
use percid_command::this_machine::Numbering;
use pyo3::prelude::*;

use crate::errors;

/// Returns this machine's model as a JSON document.
#[pyfunction]
pub(crate) fn this_machine(py: Python<'_>) -> PyResult<String> {
    let found = py.detach(|| presets::machine(THIS, Numbering::Dense));
    let machine = found.map_err(|failure| errors::of_command(py, failure))?;
    let value: Result<serde_json::Value, _> = toml::from_str(&machine.to_toml());
    value.map(|value| value.to_string()).map_err(|fault| errors::space(py, fault.to_string()))
}
