//! Policies in the files of WebAssembly modules.

use percid_sim::policies::PolicySpec;

/// The ending of a module's file.
const ENDING: &str = ".wasm";

/// A policy of a file.
#[derive(Debug, Clone)]
pub struct Module {
    /// The policy.
    pub policy: &'static PolicySpec,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: String,
}

/// Returns `true` if this name of a policy is the file of a module.
pub fn is_module(name: &str) -> bool {
    name.ends_with(ENDING)
}

/// Loads the policy of a file, with this name.
///
/// # Errors
///
/// Returns the problem of the file or of the module, or that this build has no interpreter.
#[cfg(feature = "wasm")]
pub fn load(path: &str, name: &str) -> Result<Module, String> {
    let module = std::fs::read(path).map_err(|error| format!("cannot read the file: {error}"))?;
    let policy = percid_sim_wasm::load(name, &module).map_err(|error| error.to_string())?;
    Ok(Module { policy, sha256: percid_sim_wasm::sha256(&module) })
}

/// Refuses a policy in a file: the interpreter is not built in.
///
/// # Errors
///
/// Always.
#[cfg(not(feature = "wasm"))]
pub fn load(_path: &str, _name: &str) -> Result<Module, String> {
    let remedy = "cargo install percid-cli --features wasm";
    Err(format!("this percid is built without the feature wasm; install it with `{remedy}`"))
}
