//! Installation: copies of the build products and of the files inside this program.

use std::path::{Path, PathBuf};

use crate::destination::{Destination, remove};
use crate::directories::Directories;
use crate::failure::Failure;
use crate::files::{Content, FILES, File};
use crate::fingerprint::fingerprint;
use crate::loader;
use crate::lock::{Lock, Mode};
use crate::manifest::{FileState, Installed, Manifest, What};
use crate::options::Options;
use crate::output::{say, tell};
use crate::parts::{LibraryType, Parts};
use crate::products::Products;
use crate::setting::Setting;

/// Installs the build products.
pub(crate) fn install(products: &Products, options: &Options) -> Result<(), Failure> {
    let directories = Directories::from_options(options)?;
    let parts = products.chosen(&options.library_types)?;
    let setting = Setting {
        directories: &directories,
        parts: &parts,
        native_libraries: &products.description.native_libraries,
    };
    let destination = Destination { root: options.destdir.as_deref() };
    let installed = write_all(destination, products, &setting)?;
    for file in &installed {
        say(options, &destination.real(file));
    }
    if options.destdir.is_none() && options.target.is_none() && setting.has(LibraryType::Cdylib) {
        if let Some(hint) = loader::hint(&directories.lib) {
            tell(options, &hint);
        }
    }
    Ok(())
}

/// Prints the files that would be installed from the build products.
pub(crate) fn pretend(options: &Options) -> Result<(), Failure> {
    pretend_these(&Products::find(options)?.chosen(&options.library_types)?, options)
}

/// Prints the files that would be installed of these parts.
pub(crate) fn pretend_these(parts: &Parts, options: &Options) -> Result<(), Failure> {
    let directories = Directories::from_options(options)?;
    let destination = Destination { root: options.destdir.as_deref() };
    for file in wanted(parts) {
        say(options, &destination.real(&file.place(&directories)));
    }
    say(options, &destination.real(&directories.manifest()));
    Ok(())
}

fn wanted(parts: &Parts) -> impl Iterator<Item = &'static File> {
    FILES.iter().filter(move |file| file.belongs_to(parts))
}

/// Writes every file and their list, and removes the other files of an earlier installation.
fn write_all(
    destination: Destination<'_>,
    products: &Products,
    setting: &Setting<'_>,
) -> Result<Vec<PathBuf>, Failure> {
    let directories = setting.directories;
    let mut transaction = destination.begin();
    transaction.folder(&directories.lib)?;
    let _lock = Lock::take(&destination.real(&directories.lib), Mode::Exclusive)
        .map_err(|error| format!("cannot lock {}: {error}", directories.lib.display()))?;
    let list = directories.manifest();
    let earlier = Manifest::read(&destination.real(&list))?;
    let earlier =
        earlier.filter(|earlier| earlier.prefix == directories.prefix).unwrap_or_default();
    let mut manifest = Manifest {
        prefix: directories.prefix.clone(),
        files: Vec::new(),
        folders: earlier.folders.clone(),
    };
    for file in wanted(setting.parts) {
        let path = file.place(directories);
        let (content, mode) = match file.content {
            Content::Text(text) => (text.as_bytes().to_vec(), 0o644),
            Content::Written(text) => (text(setting).into_bytes(), 0o644),
            Content::Product(mode) => (products.read(file.name)?, mode),
            Content::Link(target) => {
                transaction.link(&path, target)?;
                manifest.files.push(Installed { path, what: What::Link(target.to_owned()) });
                continue;
            }
        };
        transaction.write(&path, &content, mode)?;
        manifest.files.push(Installed { path, what: What::File(fingerprint(&content)) });
    }
    transaction.folder(list.parent().unwrap_or(&list))?;
    manifest.add_folders(transaction.folders());
    transaction.write(&list, manifest.text().as_bytes(), 0o644)?;
    transaction.commit()?;
    remove_stale(destination, &earlier, &manifest)?;
    Ok(manifest.files.into_iter().map(|file| file.path).chain([list]).collect())
}

/// Removes the files of an earlier installation that the new one lacks. Linkers would find its
/// library, which does not fit the headers.
fn remove_stale(
    destination: Destination<'_>,
    earlier: &Manifest,
    now: &Manifest,
) -> Result<(), Failure> {
    for file in earlier.files.iter().filter(|file| !now.lists(&file.path)) {
        if file.state(destination)? == FileState::Unchanged {
            let path = destination.real(&file.path);
            remove(&path).map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
        }
    }
    Ok(())
}

impl File {
    fn place(&self, directories: &Directories) -> PathBuf {
        directories.path(self.folder).join(Path::new(self.name))
    }
}
