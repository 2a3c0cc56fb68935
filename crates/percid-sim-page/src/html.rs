//! The page: module, catalogue, scripts and style in one HTML file.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::catalogue::Catalogue;

/// The file is not a WebAssembly module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAModule;

impl fmt::Display for NotAModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a WebAssembly module, which begins with the bytes 00 61 73 6d")
    }
}

impl std::error::Error for NotAModule {}

const MAGIC: &[u8] = b"\0asm";

/// Returns the page that runs `module`: this crate, compiled for `wasm32-unknown-unknown`.
///
/// # Errors
///
/// Returns [`NotAModule`] if the bytes are something else.
///
/// ```
/// use percid_sim_page::{NotAModule, html};
///
/// assert_eq!(html(b"\x7fELF"), Err(NotAModule));
/// assert!(html(b"\0asm\x01\0\0\0")?.starts_with("<!doctype html>"));
/// # Ok::<(), NotAModule>(())
/// ```
pub fn html(module: &[u8]) -> Result<String, NotAModule> {
    if !module.starts_with(MAGIC) {
        return Err(NotAModule);
    }
    // Maps have strings as keys, and nothing else can fail.
    let catalogue = serde_json::to_string(&Catalogue::new()).unwrap_or_default();
    let parts = [
        ("{{style}}", include_str!("../page/style.css")),
        ("{{page}}", include_str!("../page/page.js")),
        ("{{worker}}", include_str!("../page/worker.js")),
        // In a script element, text ends where it seems to close the element.
        ("{{catalogue}}", &catalogue.replace("</", "<\\/")),
        ("{{module}}", &STANDARD.encode(module)),
    ];
    let mut page = include_str!("../page/index.html").to_owned();
    for (name, text) in parts {
        page = page.replacen(name, text, 1);
    }
    Ok(page)
}
