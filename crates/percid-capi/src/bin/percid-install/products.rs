//! The products of the build step for the installation step: their folder and a description.

use std::fs;
use std::path::PathBuf;

use crate::failure::Failure;
use crate::files::{Content, FILES};
use crate::fingerprint::fingerprint;
use crate::lock::{Lock, Mode};
use crate::options::Options;
use crate::parts::{LibraryType, Parts};
use crate::product_names::BENCHMARK;
use crate::symbols::MAP;
use crate::{compile, link};

/// The built files that can be installed. The lock prevents concurrent builds.
#[derive(Debug)]
pub(crate) struct Products {
    pub(crate) folder: PathBuf,
    pub(crate) description: Description,
    _lock: Lock,
}

/// The data that the build step passes to the installation step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) parts: Parts,
    /// The system's libraries that percid needs, as options of the linker.
    pub(crate) native_libraries: Vec<String>,
}

const DESCRIPTION: &str = "built";

/// Returns the folder of the build products. Cargo does not manage it, and its name differs from
/// that of this program, which is in the same folder.
pub(crate) fn folder(options: &Options) -> Result<PathBuf, Failure> {
    let machine = options.target.as_deref().unwrap_or("host");
    if let Some(folder) = &options.products {
        return Ok(folder.join(machine));
    }
    let program = std::env::current_exe()
        .map_err(|error| format!("cannot find out where this program is: {error}"))?;
    Ok(program.with_file_name("percid-install-files").join(machine))
}

impl Products {
    /// Builds the requested parts.
    pub(crate) fn build(options: &Options) -> Result<Products, Failure> {
        let tools = link::Tools::find(options)?;
        let folder = folder(options)?;
        let cannot = |error| format!("cannot build in {}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(cannot)?;
        let lock = Lock::take(&folder, Mode::Exclusive).map_err(cannot)?;
        // From here to the end the products are not valid.
        let _ = fs::remove_file(folder.join(DESCRIPTION));
        let compiled = compile::static_library(options)?;
        link::libraries(tools, &compiled, options, &folder)?;
        if options.benchmark {
            let program = compile::benchmark(options, &compiled)?;
            fs::copy(program, folder.join(BENCHMARK)).map_err(cannot)?;
        }
        let description =
            Description { parts: options.built(), native_libraries: compiled.native_libraries };
        fs::write(folder.join(DESCRIPTION), description.text()).map_err(cannot)?;
        Ok(Products { folder, description, _lock: lock })
    }

    /// Finds the build products. Writes nothing.
    pub(crate) fn find(options: &Options) -> Result<Products, Failure> {
        let folder = folder(options)?;
        let none =
            || format!("nothing is built in {}: run percid-install build first", folder.display());
        let lock = Lock::take(&folder, Mode::Shared).map_err(|_| none())?;
        let text = fs::read_to_string(folder.join(DESCRIPTION)).map_err(|_| none())?;
        let description = Description::parse(&text).ok_or_else(|| {
            let folder = folder.display();
            format!("what is in {folder} was built from another percid: run percid-install build")
        })?;
        Ok(Products { folder, description, _lock: lock })
    }

    /// Returns the parts to install: the libraries that were named, or all.
    pub(crate) fn chosen(&self, named: &[LibraryType]) -> Result<Parts, Failure> {
        let built = &self.description.parts;
        match named.iter().find(|library| !built.libraries.contains(library)) {
            Some(missing) => Err(format!(
                "--library-type {0}: not built; run percid-install build --library-type {0}",
                missing.name()
            )),
            None if named.is_empty() => Ok(built.clone()),
            None => Ok(Parts { libraries: named.to_vec(), ..built.clone() }),
        }
    }

    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, Failure> {
        let path = self.folder.join(name);
        fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    }
}

impl Description {
    fn text(&self) -> String {
        let libraries =
            self.parts.libraries.iter().map(|library| format!("library {}\n", library.name()));
        let benchmark = self.parts.benchmark.then(|| format!("program {BENCHMARK}\n"));
        let needed = self.native_libraries.iter().map(|one| format!("needs {one}\n"));
        let first = format!("percid {:016x}\n", origin());
        std::iter::once(first).chain(libraries).chain(benchmark).chain(needed).collect()
    }

    /// Parses the description; `None` if it is not from this program.
    fn parse(text: &str) -> Option<Description> {
        let parts = Parts { libraries: Vec::new(), benchmark: false };
        let mut found = Description { parts, native_libraries: Vec::new() };
        let mut lines = text.lines();
        let origin_line = format!("percid {:016x}", origin());
        lines.next().filter(|line| *line == origin_line)?;
        for line in lines {
            match line.split_once(' ')? {
                ("library", name) => found.parts.libraries.push(LibraryType::named(name)?),
                ("program", BENCHMARK) => found.parts.benchmark = true,
                ("needs", one) => found.native_libraries.push(one.to_owned()),
                _ => return None,
            }
        }
        Some(found)
    }
}

/// Hashes the files that this program installs with the libraries: headers must not come from
/// another version.
fn origin() -> u64 {
    let texts = FILES.iter().filter_map(|file| match file.content {
        Content::Text(text) => Some(text),
        _ => None,
    });
    let all = [env!("CARGO_PKG_VERSION"), MAP].into_iter().chain(texts).collect::<String>();
    fingerprint(all.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_is_told_to_the_next_step() {
        let built = Description {
            parts: Parts { libraries: LibraryType::ALL.to_vec(), benchmark: true },
            native_libraries: vec!["-lrt".to_owned(), "-framework x".to_owned()],
        };
        assert_eq!(Description::parse(&built.text()), Some(built.clone()));
        assert_eq!(Description::parse(""), None);
        let other = built.text().replacen("percid ", "percid 1", 1);
        assert_eq!(Description::parse(&other), None);
    }
}
