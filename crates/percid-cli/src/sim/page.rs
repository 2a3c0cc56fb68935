//! `percid sim page`: the simulator as a web page.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::PageArguments;
use percid_command::exit::{Exit, Failure};
use percid_command::output;

const MODULE: &str = "percid_sim_page.wasm";
/// The folder of the module beside the folder of a program that Cargo has built.
const BUILT: &str = "../wasm32-unknown-unknown/release";
const MISSING: &str = "it is not beside this percid; name it by --module, or build it (cargo rustc --release -p percid-sim-page --target wasm32-unknown-unknown --crate-type cdylib)";

/// The document of `percid sim page --json`.
#[derive(Debug, Serialize)]
struct Written {
    page: PathBuf,
    bytes: usize,
}

pub(crate) fn run(arguments: &PageArguments, json: bool) -> Result<Exit, Failure> {
    let module = module(arguments.module.as_deref())?;
    let cannot = |cause| Failure::new(format!("cannot read {}", module.display()), cause);
    let bytes = fs::read(&module).map_err(cannot)?;
    let html = percid_sim_page::html(&bytes)
        .map_err(|expected| Failure::Usage(format!("{}: {expected}", module.display())))?;
    let page = arguments.out.join("index.html");
    let written = fs::create_dir_all(&arguments.out).and_then(|()| fs::write(&page, &html));
    written.map_err(|cause| Failure::new(format!("cannot write {}", page.display()), cause))?;
    let written = Written { page, bytes: html.len() };
    if json {
        output::print_json(&written)?;
    } else {
        output::print_text(&format_args!(
            "{} ({} kB)\n",
            written.page.display(),
            html.len() / 1000
        ))?;
    }
    Ok(Exit::Complete)
}

/// Returns the path of the module.
fn module(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    let folder = env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let places = folder.map(|folder| [folder.join(MODULE), folder.join(BUILT).join(MODULE)]);
    places.into_iter().flatten().find(|path| path.is_file()).ok_or_else(|| {
        let cause = io::Error::new(io::ErrorKind::NotFound, MISSING);
        Failure::new(format!("cannot find {MODULE}"), cause)
    })
}
