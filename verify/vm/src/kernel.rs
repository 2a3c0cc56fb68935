//! Stock kernels: fetched, unpacked, kept.

use std::fs;
use std::path::{Path, PathBuf};

use crate::apt::Lists;
use crate::cache::{Cache, Scratch};
use crate::error::{Error, Result};
use crate::pins::{self, Package, Pin};
use crate::platform::{Arch, Platform};
use crate::tool;
use crate::vmlinux;

/// A kernel that is ready to boot.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The requested platform.
    pub platform: Platform,
    /// The release of the kernel.
    pub release: String,
    /// The package it was taken from and the version of that.
    pub package: String,
    /// The package it should have been taken from, if Debian no longer has that.
    pub in_place_of: Option<String>,
    /// The image for QEMU: of x86-64 the uncompressed one (without symbols), of others as it was in
    /// the package.
    pub image: PathBuf,
}

/// Names within a cached kernel's directory.
const VMLINUX: &str = "vmlinux";
const PACKED: &str = "bzImage";
const RELEASE: &str = "release";
const PACKAGE: &str = "package";
const PIN: &str = "pin";

impl Kernel {
    /// Returns the kernel for `platform`: the one in the cache, or otherwise a new one.
    pub fn ready(platform: Platform, cache: &Cache) -> Result<Self> {
        Self::cached(platform, cache).map_or_else(|| Self::fetch(platform, cache), Ok)
    }

    /// Returns the kernel for `platform` in the cache, if there is one and it is the one of the
    /// table, or its replacement.
    pub fn cached(platform: Platform, cache: &Cache) -> Option<Self> {
        let pin = pins::of(platform).ok()?.package.to_string();
        let dir = cache.kernels().join(platform.to_string());
        let read = |name| {
            fs::read_to_string(dir.join(name)).ok().map(|text: String| text.trim().to_owned())
        };
        let image = [VMLINUX, PACKED].map(|name| dir.join(name));
        let image = image.into_iter().find(|path| path.is_file())?;
        let (release, package) = (read(RELEASE)?, read(PACKAGE)?);
        if read(PIN)? != pin {
            return None;
        }
        let in_place_of = (package != pin).then_some(pin);
        Some(Self { platform, release, package, in_place_of, image })
    }

    /// Downloads the kernel for `platform` and unpacks it into the cache. Replaces one that is
    /// already there.
    pub fn fetch(platform: Platform, cache: &Cache) -> Result<Self> {
        let pin = pins::of(platform)?;
        let root = cache.kernels();
        fs::create_dir_all(root).map_err(Error::file("create", root))?;
        // Work on the same file system and rename at the end: no other process ever sees half a
        // kernel, and if two fetch at a time the later one wins.
        let scratch = Scratch::new_in(root)?;
        let (package, file) = match drop_in(platform, root) {
            Some(file) => (name_of(&file), file),
            None => download(pin, root, scratch.path())?,
        };
        let ready = unpack(platform, &file, scratch.path())?;
        write(&ready.join(PACKAGE), package.as_bytes())?;
        write(&ready.join(PIN), pin.package.to_string().as_bytes())?;
        install(&ready, &root.join(platform.to_string()))?;
        Self::cached(platform, cache)
            .ok_or(Error::BadImage { path: file, expected: "a kernel and its release" })
    }
}

/// Returns a package that a person put into the cache, for machines without a network.
fn drop_in(platform: Platform, root: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(root).ok()?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| {
        let name = name_of(path);
        name.ends_with(".deb") && platform.is_image(name.split('_').next().unwrap_or_default())
    })
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Downloads the package that `pin` names, or otherwise the newest available one of its series.
fn download(pin: &Pin, root: &Path, scratch: &Path) -> Result<(String, PathBuf)> {
    let lists = Lists::of(pin, &scratch.join("apt"))?;
    let fetched =
        |package: &Package| Some((package.to_string(), lists.download(package, scratch).ok()?));
    if let Some(found) = fetched(&pin.package) {
        return Ok(found);
    }
    lists.images()?.iter().find_map(fetched).ok_or_else(|| Error::NoSuchKernel {
        kernel: pin.platform.to_string(),
        suite: pin.suite.clone(),
        drop_in: root.to_path_buf(),
    })
}

/// Unpacks `package` and lays out a cache entry; returns its directory.
fn unpack(platform: Platform, package: &Path, scratch: &Path) -> Result<PathBuf> {
    let root = scratch.join("package");
    let mut command = tool::DPKG.command();
    command.arg("-x").arg(package).arg(&root);
    tool::DPKG.output(&mut command, &format!("unpack {}", package.display()))?;

    let missing = || Error::BadImage {
        path: package.to_path_buf(),
        expected: "a file boot/vmlinuz-RELEASE or usr/lib/modules/RELEASE/vmlinuz in it",
    };
    let (release, packed) = image_below(&root).ok_or_else(missing)?;
    let ready = scratch.join("ready");
    fs::create_dir_all(&ready).map_err(Error::file("create", &ready))?;
    write(&ready.join(RELEASE), release.as_bytes())?;
    match platform.arch {
        Arch::X86_64 => place_image(&packed, &ready)?,
        Arch::Aarch64 | Arch::Riscv64 => copy(&packed, &ready.join(PACKED))?,
    }
    Ok(ready)
}

/// Returns the image below `root`, an unpacked package, and its release. From 7.2 on it is beside
/// its modules.
fn image_below(root: &Path) -> Option<(String, PathBuf)> {
    // RISC-V's are not packed.
    for prefix in ["vmlinuz-", "vmlinux-"] {
        if let Some(image) = file_named(&root.join("boot"), |name| name.starts_with(prefix)) {
            let release = name_of(&image).trim_start_matches(prefix).to_owned();
            return Some((release, image));
        }
    }
    let modules = file_named(&root.join("usr/lib/modules"), |_| true)?;
    let image = file_named(&modules, |name| name == "vmlinuz" || name == "vmlinuz.unsigned")?;
    Some((name_of(&modules), image))
}

/// Puts the unpacked image into `ready`, or the packed one if it cannot be
/// unpacked: that boots as well, half a second slower.
fn place_image(packed: &Path, ready: &Path) -> Result<()> {
    match vmlinux::extract(packed) {
        Ok(image) => write(&ready.join(VMLINUX), &image),
        Err(why) => {
            eprintln!("percid-vm: note: booting the packed image, {why}");
            copy(packed, &ready.join(PACKED))
        }
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map_err(Error::file("write", to))?;
    Ok(())
}

fn install(ready: &Path, place: &Path) -> Result<()> {
    if place.exists() {
        fs::remove_dir_all(place).map_err(Error::file("remove", place))?;
    }
    match fs::rename(ready, place) {
        // Another thread was faster with the same kernel; use its file.
        Err(_) if place.exists() => Ok(()),
        result => result.map_err(Error::file("write", place)),
    }
}

fn write(path: &Path, contents: &[u8]) -> Result<()> {
    fs::write(path, contents).map_err(Error::file("write", path))
}

fn file_named(dir: &Path, wanted: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let mut entries = fs::read_dir(dir).ok()?.filter_map(|entry| entry.ok());
    let entry = entries.find(|entry| wanted(&entry.file_name().to_string_lossy()))?;
    Some(entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Series;

    const OLD: Platform = Platform::x86_64(Series::V6_1);

    #[test]
    fn a_package_put_into_the_cache_is_used() {
        let scratch = Scratch::new().expect("temporary directory");
        for name in ["notes.txt", "linux-image-6.12.1-cloud-amd64_6.12.1_amd64.deb"] {
            fs::write(scratch.path().join(name), b"").expect("write");
        }
        assert!(drop_in(Platform::x86_64(Series::V6_12), scratch.path()).is_some());
        assert!(drop_in(Platform::aarch64(Series::V6_12), scratch.path()).is_none());
        assert!(drop_in(OLD, scratch.path()).is_none());
    }

    #[test]
    fn images_are_found_in_both_layouts() {
        let scratch = Scratch::new().expect("temporary directory");
        assert_eq!(image_below(scratch.path()), None);
        for (directory, file, release) in [
            ("new/usr/lib/modules/7.3.4-a", "vmlinuz", "7.3.4-a"),
            ("bare/usr/lib/modules/7.3.5-a", "vmlinuz.unsigned", "7.3.5-a"),
            ("old/boot", "vmlinuz-6.1.0-1", "6.1.0-1"),
            ("old/usr/lib/modules/6.1.0-1", "modules.dep", "6.1.0-1"),
        ] {
            let directory = scratch.path().join(directory);
            fs::create_dir_all(&directory).expect("create");
            fs::write(directory.join(file), b"").expect("write");
            let root = directory.strip_prefix(scratch.path()).expect("below");
            let root = scratch.path().join(root.iter().next().expect("a first part"));
            assert_eq!(image_below(&root).map(|(release, _)| release).as_deref(), Some(release));
        }
    }

    #[test]
    fn an_incomplete_cache_entry_or_one_of_another_pin_is_no_kernel() {
        let scratch = Scratch::new().expect("temporary directory");
        let cache = Cache::below(scratch.path());
        let dir = cache.kernels().join("6.1");
        fs::create_dir_all(&dir).expect("create");
        let pin = pins::of(OLD).expect("in the table").package.to_string();
        for (name, text) in [(RELEASE, "6.1.0-1\n"), (PACKAGE, "other=1\n"), (PIN, &pin)] {
            assert!(Kernel::cached(OLD, &cache).is_none());
            fs::write(dir.join(name), text).expect("write");
        }
        assert!(Kernel::cached(OLD, &cache).is_none());
        fs::write(dir.join(PACKED), b"").expect("write");
        let kernel = Kernel::cached(OLD, &cache).expect("complete");
        assert_eq!((kernel.release.as_str(), kernel.package.as_str()), ("6.1.0-1", "other=1"));
        assert_eq!(kernel.in_place_of.as_deref(), Some(pin.as_str()));
        fs::write(dir.join(PIN), "another=1").expect("write");
        assert!(Kernel::cached(OLD, &cache).is_none());
    }
}
