//! The platforms that can be booted: a series of kernels on an architecture.

use std::env;
use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::tool::{self, Tool};

/// A processor architecture that machines are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
    /// 64-bit RISC-V.
    Riscv64,
}

impl Arch {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::X86_64, Self::Aarch64, Self::Riscv64];

    /// Returns the architecture that this program was built for.
    pub fn host() -> Result<Self, Error> {
        let host = env::consts::ARCH;
        let found = Self::ALL.into_iter().find(|arch| arch.name() == host);
        found.ok_or_else(|| Error::Usage(format!("no machines are made on {host}")))
    }

    /// Returns Debian's name.
    pub fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
            Self::Riscv64 => "riscv64",
        }
    }

    /// Returns the compiler's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
            Self::Riscv64 => "riscv64",
        }
    }

    /// Returns the compiler's name for programs of it.
    pub fn target(self) -> String {
        let processor = if self == Self::Riscv64 { "riscv64gc" } else { self.name() };
        format!("{processor}-unknown-linux-gnu")
    }

    /// Returns Debian's name of its smallest kernels, at the end of their releases.
    fn flavour(self) -> String {
        match self {
            Self::X86_64 | Self::Aarch64 => format!("-cloud-{}", self.debian()),
            Self::Riscv64 => format!("-{}", self.debian()),
        }
    }

    /// Returns the emulator.
    pub fn emulator(self) -> Tool {
        match self {
            Self::X86_64 => tool::QEMU,
            Self::Aarch64 => tool::QEMU_ARM,
            Self::Riscv64 => tool::QEMU_RISCV,
        }
    }

    /// Links programs for it on a host of another architecture.
    pub fn cross_linker(self) -> Tool {
        match self {
            Self::X86_64 => tool::X86_64_LINKER,
            Self::Aarch64 => tool::AARCH64_LINKER,
            Self::Riscv64 => tool::RISCV64_LINKER,
        }
    }

    /// Returns the architecture with Debian's name `text`.
    pub fn from_debian(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|arch| arch.debian() == text)
    }
}

/// A kernel series, as `6.12` of 6.12.107.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Series {
    major: u16,
    minor: u16,
}

impl Series {
    /// No concurrency IDs.
    pub const V6_1: Self = Self::new(6, 1);
    /// Concurrency IDs that grow cold in caches.
    pub const V6_12: Self = Self::new(6, 12);
    /// The last one whose concurrency IDs move without the lock of the run queue they leave.
    pub const V6_18: Self = Self::new(6, 18);

    /// Makes the series `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// Returns `true` if the kernel `release` is of this series.
    pub fn matches(self, release: &str) -> bool {
        let rest = release.strip_prefix(&self.to_string());
        rest.is_some_and(|rest| rest.starts_with('.'))
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.major, self.minor))
    }
}

impl FromStr for Series {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let numbers = text
            .split_once('.')
            .and_then(|(major, minor)| Some(Self::new(major.parse().ok()?, minor.parse().ok()?)));
        numbers.ok_or_else(|| Error::Usage(format!("kernel series `{text}`: expected one as 6.12")))
    }
}

/// A series on an architecture, written `6.12` on x86-64, `6.12-arm64` on Arm and `6.12-riscv64` on
/// RISC-V.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Platform {
    /// The series.
    pub series: Series,
    /// The architecture.
    pub arch: Arch,
}

impl Platform {
    /// Returns the platform `series` on 64-bit x86.
    pub const fn x86_64(series: Series) -> Self {
        Self { series, arch: Arch::X86_64 }
    }

    /// Returns the platform `series` on 64-bit Arm.
    pub const fn aarch64(series: Series) -> Self {
        Self { series, arch: Arch::Aarch64 }
    }

    /// Returns `true` if `package` is an image of this series for this architecture.
    pub fn is_image(self, package: &str) -> bool {
        self.release_in(package).is_some()
    }

    /// Returns the release of the kernel in `package`, if it is an image of this series for this
    /// architecture. Images were in `linux-image-…` up to 6.18; since then those packages are
    /// empty, and the image is in `linux-binary-…`.
    pub fn release_in(self, package: &str) -> Option<&str> {
        let rest = package.strip_prefix("linux-binary-");
        let rest = rest.or_else(|| package.strip_prefix("linux-image-"))?;
        let rest = rest.strip_prefix("unsigned-").unwrap_or(rest);
        let release = rest.strip_suffix("-unsigned").unwrap_or(rest);
        (self.series.matches(release) && release.ends_with(&self.arch.flavour())).then_some(release)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.arch {
            Arch::X86_64 => self.series.fmt(f),
            arch => f.pad(&format!("{}-{}", self.series, arch.debian())),
        }
    }
}

impl FromStr for Platform {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (series, arch) = text.split_once('-').unwrap_or((text, Arch::X86_64.debian()));
        let arch = Arch::from_debian(arch).ok_or_else(|| {
            Error::Usage(format!("kernel `{text}`: expected one as 6.12 or 6.12-arm64"))
        })?;
        Ok(Self { series: series.parse()?, arch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARM: Platform = Platform::aarch64(Series::V6_18);

    #[test]
    fn series_are_not_taken_for_each_other() {
        assert!(Series::V6_1.matches("6.1.0-56-cloud-amd64"));
        assert!(!Series::V6_1.matches("6.12.117+deb12-cloud-amd64"));
        assert!(Series::V6_12.matches("6.12.117+deb12-cloud-amd64"));
        assert!(Series::V6_1 < Series::V6_12);
        for text in ["6", "6.x", "", "6.12.107"] {
            assert!(text.parse::<Series>().is_err(), "{text}");
        }
    }

    #[test]
    fn platforms_are_read_as_they_are_written() {
        for platform in [Platform::x86_64(Series::V6_12), ARM] {
            assert_eq!(platform.to_string().parse::<Platform>().ok(), Some(platform));
        }
        assert_eq!(ARM.to_string(), "6.18-arm64");
        assert!("6.18-mips".parse::<Platform>().is_err());
    }

    #[test]
    fn images_are_known_by_the_names_of_their_packages() {
        for package in [
            "linux-image-6.18.15+deb13-cloud-arm64",
            "linux-image-6.18.15+deb13-cloud-arm64-unsigned",
            "linux-binary-6.18.15+deb13-cloud-arm64",
            "linux-binary-unsigned-6.18.15+deb13-cloud-arm64",
        ] {
            assert_eq!(ARM.release_in(package), Some("6.18.15+deb13-cloud-arm64"), "{package}");
        }
        for package in [
            "linux-image-6.18.15+deb13-cloud-amd64",
            "linux-image-6.18.15+deb13-arm64",
            "linux-image-6.18-cloud-arm64",
            "linux-image-cloud-arm64",
            "linux-image-6.18.15+deb13-cloud-arm64-dbg",
            "linux-headers-6.18.15+deb13-cloud-arm64",
        ] {
            assert!(!ARM.is_image(package), "{package}");
        }
    }
}
