//! The generations of the kernel's own IDs, by their behaviour, and the release that is likely to
//! have each.
//!
//! The release is only a hint: stable series and distributions backport scheduler changes, so the
//! same `uname` may stand for two generations. To be sure, observe how the IDs behave.

use core::fmt;

/// The way a kernel assigns its IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Generation {
    /// Linux 6.3: the first free ID at every switch into the process; no state is kept.
    FirstFree,
    /// Linux 6.4 to 6.12: a CPU keeps its ID for a while, but gets a different one after every
    /// pause.
    CacheCold,
    /// Linux 6.13: cache-local, but never dense again once the number of threads or allowed CPUs
    /// has decreased.
    NotCompacting,
    /// Linux 6.14 to 6.18: cache-local and dense.
    CacheLocal,
    /// Linux 6.19 and later: an ID belongs to a thread or to a CPU, and may exceed the density
    /// bound.
    Owned,
}

impl Generation {
    /// All generations, oldest first.
    pub const ALL: [Generation; 5] = [
        Generation::FirstFree,
        Generation::CacheCold,
        Generation::NotCompacting,
        Generation::CacheLocal,
        Generation::Owned,
    ];

    /// Returns the generation that a kernel release such as `6.18.44-amd64` suggests; `None` if
    /// kernels of that release have no IDs, or if the text does not begin with a release.
    ///
    /// ```
    /// use percid_rules::Generation;
    ///
    /// assert_eq!(Generation::hinted_by("6.12.117+deb12"), Some(Generation::CacheCold));
    /// assert_eq!(Generation::hinted_by("6.1.0"), None);
    /// ```
    pub fn hinted_by(release: &str) -> Option<Generation> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        Generation::of_version(next()?, next()?)
    }

    fn of_version(major: u32, minor: u32) -> Option<Generation> {
        match (major, minor) {
            (..6, _) | (6, ..3) => None,
            (6, 3) => Some(Generation::FirstFree),
            (6, 4..13) => Some(Generation::CacheCold),
            (6, 13) => Some(Generation::NotCompacting),
            (6, 14..19) => Some(Generation::CacheLocal),
            (6, 19..) | (7.., _) => Some(Generation::Owned),
        }
    }

    /// Returns the releases that introduced this generation, as published.
    pub fn releases(self) -> &'static str {
        match self {
            Generation::FirstFree => "Linux 6.3",
            Generation::CacheCold => "Linux 6.4 to 6.12",
            Generation::NotCompacting => "Linux 6.13",
            Generation::CacheLocal => "Linux 6.14 to 6.18",
            Generation::Owned => "Linux 6.19 and later",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Generation::FirstFree => "first-free",
            Generation::CacheCold => "cache-cold",
            Generation::NotCompacting => "not-compacting",
            Generation::CacheLocal => "cache-local",
            Generation::Owned => "owned",
        }
    }
}

/// Formats the name of the generation as one word.
impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_hints_at_a_generation() {
        for (release, expected) in [
            ("6.3.0", Some(Generation::FirstFree)),
            ("6.4.0", Some(Generation::CacheCold)),
            ("6.12.117+deb12-cloud-amd64", Some(Generation::CacheCold)),
            ("6.13-rc1", Some(Generation::NotCompacting)),
            ("6.14.0", Some(Generation::CacheLocal)),
            ("6.18.44", Some(Generation::CacheLocal)),
            ("6.19.14+deb13-cloud-amd64", Some(Generation::Owned)),
            ("7.0.1", Some(Generation::Owned)),
            ("6.2.16", None),
            ("6.1.0-56-cloud-amd64", None),
            ("5.19.0", None),
            ("6", None),
            ("6.x", None),
            ("", None),
        ] {
            assert_eq!(Generation::hinted_by(release), expected, "{release:?}");
        }
    }

    #[test]
    fn the_releases_of_a_generation_hint_at_it() {
        for generation in Generation::ALL {
            let words = generation.releases().split(' ');
            let releases: std::vec::Vec<&str> =
                words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).collect();
            assert!(!releases.is_empty(), "{generation}");
            for release in releases {
                assert_eq!(Generation::hinted_by(release), Some(generation), "{release}");
            }
        }
    }

    #[test]
    fn a_name_is_one_word_and_fills_its_column() {
        let names = Generation::ALL.map(|generation| std::format!("{generation}"));
        let expected = ["first-free", "cache-cold", "not-compacting", "cache-local", "owned"];
        assert_eq!(names, expected);
        assert_eq!(std::format!("{:>11}|", Generation::CacheCold), " cache-cold|");
    }
}
