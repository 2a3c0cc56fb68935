//! The package of each kernel: the table `kernels.txt`.

use std::fmt;
use std::sync::LazyLock;

use crate::error::{Error, Result};
use crate::platform::{Arch, Platform};

const TABLE: &str = include_str!("../kernels.txt");

/// A kernel by its package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The platform.
    pub platform: Platform,
    /// The suite of Debian in which it lies.
    pub suite: String,
    /// Its package and the version of that.
    pub package: Package,
    /// `true` if it aborts critical sections, as all kernels without the bug do.
    pub aborts: bool,
}

/// A package in a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The package.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.version)
    }
}

/// Returns all kernels, by architecture and then oldest first.
pub fn all() -> &'static [Pin] {
    static ALL: LazyLock<Vec<Pin>> = LazyLock::new(|| {
        let lines = TABLE.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let lines = lines.filter(|line| !line.is_empty());
        let pins = lines.map(|line| pin(line).unwrap_or_else(|| panic!("kernels.txt: {line}")));
        pins.collect()
    });
    &ALL
}

/// Returns the kernel for `platform`.
pub fn of(platform: Platform) -> Result<&'static Pin> {
    let found = all().iter().find(|pin| pin.platform == platform);
    found.ok_or_else(|| {
        let names: Vec<_> = all().iter().map(|pin| pin.platform.to_string()).collect();
        Error::Usage(format!("kernel `{platform}`: expected {} or all", names.join(", ")))
    })
}

fn pin(line: &str) -> Option<Pin> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ([series, arch, suite, name, version], traits) = words.split_first_chunk()?;
    let aborts = match traits {
        [] => true,
        ["no-aborts"] => false,
        _ => return None,
    };
    let platform = Platform { series: series.parse().ok()?, arch: Arch::from_debian(arch)? };
    let package = Package { name: (*name).to_owned(), version: (*version).to_owned() };
    platform.is_image(name).then(|| Pin { platform, suite: (*suite).to_owned(), package, aborts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound_and_names_each_kernel_once() {
        assert!(all().len() >= 14);
        for pin in all() {
            assert_eq!(of(pin.platform).ok(), Some(pin), "{}", pin.platform);
        }
        let x86: Vec<_> = all().iter().filter(|pin| pin.platform.arch == Arch::X86_64).collect();
        assert!(x86.is_sorted_by_key(|pin| pin.platform.series));
    }

    #[test]
    fn a_kernel_that_is_not_in_the_table_is_refused_with_those_that_are() {
        let error = of("6.13".parse().expect("a platform")).expect_err("unknown").to_string();
        assert!(error.contains("6.12,") && error.contains("7.2-riscv64 or all"), "{error}");
    }

    #[test]
    fn lines_with_anything_missing_or_another_kernels_package_are_refused() {
        let good = "6.12 amd64 sid linux-image-6.12.1-cloud-amd64 6.12.1-1";
        assert!(pin(good).is_some_and(|pin| pin.aborts));
        assert!(pin(&format!("{good} no-aborts")).is_some_and(|pin| !pin.aborts));
        assert!(pin(&format!("{good} nonsense")).is_none());
        for (from, to) in [("6.12 ", "6.13 "), (" amd64", " arm64"), ("6.12.1-1", ""), ("sid", "")]
        {
            assert!(pin(&good.replacen(from, to, 1)).is_none(), "{from} as {to}");
        }
    }
}
