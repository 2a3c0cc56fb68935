//! Stock kernels: which there are, where they come from, where they are kept.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::cache::{Cache, Scratch};
use crate::tool::{self, Tool};
use crate::{Error, Result, vmlinux};

/// A kernel series that the harness knows how to get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Series {
    /// rseq and its membarrier, but no concurrency IDs.
    V6_1,
    /// Concurrency IDs that grow cold in caches.
    V6_12,
}

impl Series {
    /// All of them, oldest first.
    pub const ALL: [Self; 2] = [Self::V6_1, Self::V6_12];

    /// The name, as in `--kernel`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
        }
    }

    /// The package that depends on the newest build of this series in Debian
    /// 12. Builds carry their number in their name and vanish when the next
    /// one comes, so only this one can be asked for.
    fn meta_package(self) -> &'static str {
        match self {
            Self::V6_1 => "linux-image-cloud-amd64",
            Self::V6_12 => "linux-image-6.12-cloud-amd64",
        }
    }

    /// Whether `package` is a build of this series. In other releases of Debian
    /// the same meta-package leads to other series.
    fn is_build(self, package: &str) -> bool {
        let version = package.strip_prefix("linux-image-");
        version.is_some_and(|version| self.matches(version)) && package.ends_with("-cloud-amd64")
    }

    /// Whether a kernel that calls itself `release` is of this series.
    pub fn matches(self, release: &str) -> bool {
        let rest = release.strip_prefix(self.name());
        rest.is_some_and(|rest| rest.starts_with('.'))
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Series {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|series| series.name() == text);
        found.ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|series| series.name()).collect();
            Error::Usage(format!("kernel `{text}`: expected {} or all", names.join(", ")))
        })
    }
}

/// A kernel that is ready to boot.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The series it was asked for as.
    pub series: Series,
    /// What it calls itself.
    pub release: String,
    /// The image for QEMU.
    pub image: PathBuf,
}

/// Names within a cached kernel's directory.
const VMLINUX: &str = "vmlinux";
const BZIMAGE: &str = "bzImage";
const RELEASE: &str = "release";

impl Kernel {
    /// The kernel of `series` in the cache, if there is one.
    pub fn cached(series: Series, cache: &Cache) -> Option<Self> {
        let dir = cache.kernels().join(series.name());
        let release = fs::read_to_string(dir.join(RELEASE)).ok()?;
        let image = [VMLINUX, BZIMAGE].map(|name| dir.join(name));
        let image = image.into_iter().find(|path| path.is_file())?;
        Some(Self { series, release: release.trim().to_owned(), image })
    }

    /// The kernel of `series`, downloaded and unpacked into the cache.
    /// Replaces one that is already there.
    pub fn fetch(series: Series, cache: &Cache) -> Result<Self> {
        let root = cache.kernels();
        fs::create_dir_all(root).map_err(Error::file("create", root))?;
        // Work on the same file system and rename at the end: nobody ever sees
        // half a kernel, and of two who fetch at a time the later one wins.
        let scratch = Scratch::new_in(root)?;
        let package = match drop_in(series, root) {
            Some(package) => package,
            None => download(series, root, scratch.path())?,
        };
        let ready = unpack(&package, scratch.path())?;
        install(&ready, &root.join(series.name()))?;
        Self::cached(series, cache)
            .ok_or(Error::BadImage { path: package, expected: "a kernel and its release" })
    }
}

/// A package that a person put into the cache, for machines without a network.
fn drop_in(series: Series, root: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(root).ok()?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let package = name.split('_').next().unwrap_or_default();
        name.ends_with(".deb") && series.is_build(package)
    })
}

fn download(series: Series, root: &Path, scratch: &Path) -> Result<PathBuf> {
    let package = resolve(series, root)?;
    let task = format!("download {package} (offline? kernels are kept once fetched)");
    let mut command = tool::APT_GET.command();
    command.args(["download", &package]).current_dir(scratch);
    tool::APT_GET.output(&mut command, &task)?;
    file_named(scratch, |name| name.ends_with(".deb")).ok_or(Error::ToolFailed {
        task,
        command: tool::words(&command),
        stderr: "expected a .deb file, found none".to_owned(),
    })
}

/// The newest build of `series` that the package lists know.
fn resolve(series: Series, root: &Path) -> Result<String> {
    let meta = series.meta_package();
    let mut command = tool::APT_CACHE.command();
    command.args(["depends", "--important", meta]);
    command.env("LC_ALL", "C");
    let answer = match tool::APT_CACHE.output(&mut command, "read the package lists") {
        Ok(answer) => String::from_utf8_lossy(&answer).into_owned(),
        // An unknown package is a failure of the tool, but a plain answer to us.
        Err(Error::ToolFailed { stderr, .. }) => stderr,
        Err(other) => return Err(other),
    };
    build_in(series, &answer).ok_or_else(|| Error::NoSuchKernel {
        series: series.name(),
        found: format!("{meta}: {}", answer.split_whitespace().collect::<Vec<_>>().join(" ")),
        drop_in: root.to_path_buf(),
    })
}

/// The build of `series` among the dependencies as `apt-cache` prints them.
fn build_in(series: Series, depends: &str) -> Option<String> {
    let packages = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let mut builds = packages.filter(|package| series.is_build(package));
    builds.next().map(str::to_owned)
}

/// Unpacks `package` and lays out a cache entry; returns its directory.
fn unpack(package: &Path, scratch: &Path) -> Result<PathBuf> {
    let root = scratch.join("package");
    let mut command = tool::DPKG.command();
    command.arg("-x").arg(package).arg(&root);
    tool::DPKG.output(&mut command, &format!("unpack {}", package.display()))?;

    let boot = root.join("boot");
    let packed =
        file_named(&boot, |name| name.starts_with("vmlinuz-")).ok_or_else(|| Error::BadImage {
            path: package.to_path_buf(),
            expected: "a file boot/vmlinuz-RELEASE in it",
        })?;
    let name = packed.file_name().unwrap_or_default().to_string_lossy();
    let release = name.trim_start_matches("vmlinuz-");

    let ready = scratch.join("ready");
    fs::create_dir_all(&ready).map_err(Error::file("create", &ready))?;
    write(&ready.join(RELEASE), release.as_bytes())?;
    place_image(&packed, &ready)?;
    Ok(ready)
}

/// Puts the unpacked image into `ready`, or the packed one if it cannot be
/// unpacked: that boots as well, half a second slower.
fn place_image(packed: &Path, ready: &Path) -> Result<()> {
    match vmlinux::extract(packed) {
        Ok(image) => write(&ready.join(VMLINUX), &image),
        Err(why) => {
            eprintln!("percid-vm: note: booting the packed image, {why}");
            let target = ready.join(BZIMAGE);
            fs::copy(packed, &target).map_err(Error::file("write", &target))?;
            Ok(())
        }
    }
}

fn install(ready: &Path, place: &Path) -> Result<()> {
    if place.exists() {
        fs::remove_dir_all(place).map_err(Error::file("remove", place))?;
    }
    match fs::rename(ready, place) {
        // Somebody else was faster with the same kernel; use theirs.
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

/// Tools without which no kernel can be fetched.
pub const TOOLS: [Tool; 3] = [tool::APT_GET, tool::APT_CACHE, tool::DPKG];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_not_taken_for_each_other() {
        assert!(Series::V6_1.matches("6.1.0-56-cloud-amd64"));
        assert!(!Series::V6_1.matches("6.12.117+deb12-cloud-amd64"));
        assert!(Series::V6_12.matches("6.12.117+deb12-cloud-amd64"));
        assert_eq!("6.12".parse::<Series>().ok(), Some(Series::V6_12));
        let error = "6.13".parse::<Series>().expect_err("unknown").to_string();
        assert!(error.contains("expected 6.1, 6.12 or all"), "{error}");
    }

    #[test]
    fn the_build_is_read_from_the_dependencies() {
        let depends = "linux-image-cloud-amd64\n  Depends: linux-image-6.1.0-56-cloud-amd64\n";
        assert_eq!(
            build_in(Series::V6_1, depends).as_deref(),
            Some("linux-image-6.1.0-56-cloud-amd64")
        );
        assert_eq!(build_in(Series::V6_12, depends), None);
        let newer = depends.replace("6.1.0-56", "6.12.90+deb13");
        assert_eq!(build_in(Series::V6_1, &newer), None);
    }

    #[test]
    fn a_package_put_into_the_cache_is_used() {
        let scratch = Scratch::new().expect("temporary directory");
        for name in ["notes.txt", "linux-image-6.12.1-cloud-amd64_6.12.1_amd64.deb"] {
            fs::write(scratch.path().join(name), b"").expect("write");
        }
        assert!(drop_in(Series::V6_12, scratch.path()).is_some());
        assert!(drop_in(Series::V6_1, scratch.path()).is_none());
    }

    #[test]
    fn an_incomplete_cache_entry_is_no_kernel() {
        let scratch = Scratch::new().expect("temporary directory");
        let cache = Cache::below(scratch.path());
        let dir = cache.kernels().join("6.1");
        fs::create_dir_all(&dir).expect("create");
        fs::write(dir.join(RELEASE), b"6.1.0-1\n").expect("write");
        assert!(Kernel::cached(Series::V6_1, &cache).is_none());
        fs::write(dir.join(BZIMAGE), b"").expect("write");
        let kernel = Kernel::cached(Series::V6_1, &cache).expect("complete");
        assert_eq!(kernel.release, "6.1.0-1");
    }
}
