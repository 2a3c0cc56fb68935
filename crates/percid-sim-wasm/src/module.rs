//! Loading of a module.

use std::fmt;
use std::sync::Arc;

use percid_sim::policies::{Policy, PolicySpec};
use percid_sim::topology::Topology;
use sha2::{Digest, Sha256};
use wasmi::{Config, Engine, ExternType, FuncType, Module, ValType};

use crate::exposed::exposed;
use crate::host::imports;
use crate::instance::{ModulePolicy, Program};
use crate::interface::{EXPORTS, Function, IMPORTS, Kind, NAMESPACE, PREFIX, REQUIRED};
use crate::shelf::Shelf;

/// The reason why a module is no policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError(String);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

/// Loads a module as a policy with this name. The policy lives until the program ends, as the
/// built-in ones do.
///
/// # Errors
///
/// Returns what was expected if the bytes are no module, or if its functions are not those of the
/// interface.
pub fn load(name: &str, module: &[u8]) -> Result<&'static PolicySpec, LoadError> {
    let mut config = Config::default();
    config.consume_fuel(true);
    let engine = Engine::new(&config);
    let invalid =
        |error: &dyn fmt::Display| LoadError(format!("expected a WebAssembly module: {error}"));
    let given = Module::new(&engine, module).map_err(|error| invalid(&error))?;
    expect_exports(&given)?;
    expect_imports(&given)?;
    let exposed = exposed(module).map_err(|error| invalid(&error))?;
    let module = Module::new(&engine, &exposed.bytes).map_err(|error| invalid(&error))?;
    let linker = imports(&engine).map_err(|error| LoadError(error.to_string()))?;
    let exports = EXPORTS.map(|known| known.name).into_iter();
    let exports = exports.filter(|name| module.get_export(name).is_some()).collect();
    let asks_distances = module.imports().any(|import| import.name() == "distance");
    let unused = Shelf::new();
    let program =
        Arc::new(Program { engine, module, linker, exports, asks_distances, exposed, unused });
    let create = move |topology: &Topology| -> Box<dyn Policy> {
        Box::new(ModulePolicy::new(program.clone(), topology))
    };
    Ok(Box::leak(Box::new(PolicySpec {
        name: String::leak(name.to_owned()),
        about: "a WebAssembly module",
        create: Box::leak(Box::new(create)),
    })))
}

/// Returns the SHA-256 of a module in hexadecimal digits, by which the runs of equal modules are
/// recognised.
pub fn sha256(module: &[u8]) -> String {
    Sha256::digest(module).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn expect_exports(module: &Module) -> Result<(), LoadError> {
    let exports = module.exports().filter(|export| export.name().starts_with(PREFIX));
    for export in exports {
        let (name, what) = (export.name(), export.ty());
        let Some(known) = EXPORTS.iter().find(|known| known.name == name) else {
            let all = EXPORTS.map(|known| known.name).join(", ");
            return Err(LoadError(format!("exports {name}; expected {all}")));
        };
        expect_type("exports", known, what)?;
    }
    if module.get_export(REQUIRED).is_none() {
        let required = EXPORTS.iter().find(|known| known.name == REQUIRED);
        let required = required.map_or(REQUIRED.to_owned(), Function::to_string);
        return Err(LoadError(format!("lacks a function; expected the export {required}")));
    }
    Ok(())
}

fn expect_imports(module: &Module) -> Result<(), LoadError> {
    for import in module.imports() {
        let (namespace, name) = (import.module(), import.name());
        let known = IMPORTS.iter().find(|known| namespace == NAMESPACE && known.name == name);
        let Some(known) = known else {
            let all = IMPORTS.map(|known| known.name).join(", ");
            return Err(LoadError(format!(
                "imports {namespace}.{name}; expected imports from {NAMESPACE}: {all}"
            )));
        };
        expect_type("imports", known, import.ty())?;
    }
    Ok(())
}

fn expect_type(how: &str, known: &Function, found: &ExternType) -> Result<(), LoadError> {
    let result = |kind| if kind == Kind::I32 { ValType::I32 } else { ValType::I64 };
    let parameters = known.parameters.iter().map(|_| ValType::I32);
    let expected = FuncType::new(parameters, known.result.map(result));
    match found {
        ExternType::Func(found) if *found == expected => Ok(()),
        ExternType::Func(found) => Err(LoadError(format!(
            "{how} {} with parameters {:?} and results {:?}; expected {known}",
            known.name,
            found.params(),
            found.results()
        ))),
        _ => {
            Err(LoadError(format!("{how} {}, which is no function; expected {known}", known.name)))
        }
    }
}
