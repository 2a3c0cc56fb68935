//! Check that the dynamic linker will find the installed library.

use std::path::Path;
use std::process::Command;

use crate::product_names::SONAME;

/// Returns the remaining step for programs to find the library in this folder. `None` if there is
/// none, or if the system does not report it (one without glibc's ldconfig).
pub(crate) fn hint(lib: &Path) -> Option<String> {
    let known = ldconfig(&["-p"])?;
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    if knows(&known, lib) || std::env::split_paths(&named).any(|folder| same(&folder, lib)) {
        return None;
    }
    let searched = ldconfig(&["-v", "-N", "-X"])?;
    let folder = lib.display();
    Some(match searches(&searched, lib) {
        true => format!("programs will find {folder}/{SONAME} once root has run: ldconfig"),
        false => format!(
            "the dynamic linker does not look into {folder} by itself: set LD_LIBRARY_PATH={folder} \
             or link with -Wl,-rpath,{folder}"
        ),
    })
}

/// Returns the output of ldconfig, which may be in a folder that is only in root's path.
fn ldconfig(options: &[&str]) -> Option<String> {
    let mut outputs = ["ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"]
        .into_iter()
        .map(|name| Command::new(name).args(options).env("LC_ALL", "C").output().ok());
    let output = outputs.find_map(|output| output)?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns `true` if the cache has the library of this folder: `NAME (...) => PATH`.
fn knows(cache: &str, lib: &Path) -> bool {
    let entries = cache.lines().filter_map(|line| line.trim().split_once(" => "));
    let mut paths = entries.filter(|(name, _)| name.split(' ').next() == Some(SONAME));
    paths.any(|(_, path)| Path::new(path).parent().is_some_and(|folder| same(folder, lib)))
}

/// Returns `true` if the cache includes this folder: `PATH: (from ...)`.
fn searches(verbose: &str, lib: &Path) -> bool {
    let folders = verbose.lines().filter(|line| line.starts_with('/'));
    let mut folders = folders.filter_map(|line| line.split(':').next());
    folders.any(|folder| same(Path::new(folder), lib))
}

/// Returns `true` if both paths are the same folder. On many systems /lib is a link to /usr/lib.
fn same(one: &Path, other: &Path) -> bool {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    canonical(one) == canonical(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_understood() {
        let cache = "2 libs found in cache `/etc/ld.so.cache'\n\
                     \tlibpercid.so.1 (libc6,x86-64) => /there/lib/libpercid.so.1\n\
                     \tlibother.so.1 (libc6,x86-64) => /here/lib/libother.so.1\n";
        assert!(knows(cache, Path::new("/there/lib")));
        assert!(!knows(cache, Path::new("/here/lib")));
        assert!(!knows("", Path::new("/there/lib")));
    }

    #[test]
    fn the_folders_are_understood() {
        let verbose =
            "/there/lib: (from /etc/ld.so.conf.d/libc.conf:2)\n\tlibm.so.6 -> libm.so.6\n";
        assert!(searches(verbose, Path::new("/there/lib")));
        assert!(!searches(verbose, Path::new("/here/lib")));
    }
}
