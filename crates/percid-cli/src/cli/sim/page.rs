//! The arguments of `percid sim page`, and its manual.

use std::path::PathBuf;

use clap::Args;

pub(super) const ABOUT: &str = "\
Writes the simulator as a web page: DIR/index.html, one file that can be opened from a
disk or put on any server, and that uses no network. In the page one chooses machine,
workload, policies, parameters and seeds. The browser simulates, with the results of
`percid sim run` to the last digit. The address of the page keeps the choice, so it can
be shared.

The page contains the simulator as a WebAssembly module. It is FILE, or
percid_sim_page.wasm beside this program, or where Cargo puts it beside the folder of
this program. This builds it from the sources of this percid:

  rustup target add wasm32-unknown-unknown
  cargo rustc --release -p percid-sim-page --target wasm32-unknown-unknown --crate-type cdylib

In JSON: page (the path of the file) and bytes (its size).";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid sim page --out lab
  percid sim page --out lab --module percid_sim_page.wasm";

#[derive(Clone, Debug, Args)]
pub(crate) struct PageArguments {
    /// The folder of the page; it is made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// The WebAssembly module [default: beside this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) module: Option<PathBuf>,
}
