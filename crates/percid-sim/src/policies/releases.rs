//! Policies by kernel release, in the form of `uname -r`.

use percid_rules::Generation;

use super::{ALL, PolicySpec, find, of_generation};

/// Prefix of release names.
const PREFIX: &str = "linux-";

/// Suffix of releases whose kernels have the IDs of the next generation.
const BACKPORT: &str = "-backport";

/// A range of release names that stand for a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Releases {
    /// The first name.
    pub first: &'static str,
    /// The last name; `None` if the range has no end.
    pub last: Option<&'static str>,
    /// Name of the policy.
    pub policy: &'static str,
    /// Description of these kernels.
    pub about: &'static str,
}

/// All release names, without the third and further numbers and without distributions' suffixes.
pub const RELEASES: [Releases; 7] = [
    Releases {
        first: "linux-6.3",
        last: Some("linux-6.3"),
        policy: "linux-6.3",
        about: "as released",
    },
    Releases {
        first: "linux-6.4",
        last: Some("linux-6.12"),
        policy: "linux-6.4",
        about: "as released",
    },
    Releases {
        first: "linux-6.4-backport",
        last: Some("linux-6.12-backport"),
        policy: "linux-6.13",
        about: "with cache-local IDs (commit 7e019dcc470f) taken back, as published for 6.6; some \
                distributions' 6.12",
    },
    Releases {
        first: "linux-6.13",
        last: Some("linux-6.13"),
        policy: "linux-6.13",
        about: "as released",
    },
    Releases {
        first: "linux-6.13-backport",
        last: Some("linux-6.13-backport"),
        policy: "linux-6.14",
        about: "with compaction (commit 02d954c0fdf9) taken back",
    },
    Releases {
        first: "linux-6.14",
        last: Some("linux-6.18"),
        policy: "linux-6.14",
        about: "as released",
    },
    Releases { first: "linux-6.19", last: None, policy: "linux-6.19", about: "as released" },
];

/// Returns the policy with this name, or of this release.
///
/// # Errors
///
/// Returns the possible names if there is no such policy.
pub fn named(name: &str) -> Result<&'static PolicySpec, String> {
    find(name).map_or_else(|| of_release(name), Ok)
}

fn of_release(name: &str) -> Result<&'static PolicySpec, String> {
    let Some(release) = name.strip_prefix(PREFIX) else { return Err(allowed()) };
    let (release, is_backport) = match release.strip_suffix(BACKPORT) {
        Some(release) => (release, true),
        None => (release, false),
    };
    let generation = Generation::hinted_by(release)
        .ok_or_else(|| format!("Linux {release} has no IDs, or is no release; {}", allowed()))?;
    if !is_backport {
        return Ok(of_generation(generation));
    }
    match generation {
        Generation::CacheCold => Ok(of_generation(Generation::NotCompacting)),
        Generation::NotCompacting => Ok(of_generation(Generation::CacheLocal)),
        _ => Err(format!("no IDs were taken back to Linux {release}; {}", allowed())),
    }
}

fn allowed() -> String {
    let known: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
    let releases = "a release from 6.3 on, such as linux-6.6.30, linux-6.6-backport";
    format!("allowed are all, {}, or {releases}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str) -> &'static str {
        named(name).unwrap_or_else(|fault| panic!("{name}: {fault}")).name
    }

    #[test]
    fn a_release_stands_for_the_policy_of_its_ids() {
        for (name, expected) in [
            ("linux-6.3.13", "linux-6.3"),
            ("linux-6.5", "linux-6.4"),
            ("linux-6.6.30", "linux-6.4"),
            ("linux-6.12.48+deb13-amd64", "linux-6.4"),
            ("linux-6.6-backport", "linux-6.13"),
            ("linux-6.12.30-backport", "linux-6.13"),
            ("linux-6.13-rc1", "linux-6.13"),
            ("linux-6.13-backport", "linux-6.14"),
            ("linux-6.17.0-8-generic", "linux-6.14"),
            ("linux-7.0.1", "linux-6.19"),
            ("per-cpu", "per-cpu"),
        ] {
            assert_eq!(policy(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_listed_is_what_is_understood() {
        for releases in RELEASES {
            assert_eq!(policy(releases.first), releases.policy);
            if let Some(last) = releases.last {
                assert_eq!(policy(last), releases.policy);
            }
        }
        // No gaps: the name after the last one of a line has another policy.
        for (last, next) in [("linux-6.12", "linux-6.13"), ("linux-6.18", "linux-6.19")] {
            assert_ne!(policy(last), policy(next));
        }
    }

    #[test]
    fn unknown_releases_are_answered_with_what_there_is() {
        for (name, expected) in [
            ("linux-6.1", "Linux 6.1 has no IDs"),
            ("linux-7", "Linux 7 has no IDs, or is no release"),
            ("linux-6.19-backport", "no IDs were taken back to Linux 6.19"),
            ("linux-6.3-backport", "no IDs were taken back"),
            ("linux-6.2-backport", "Linux 6.2 has no IDs"),
            ("linux-", "has no IDs, or is no release"),
            ("windows-11", "allowed are all, linux-6.3"),
        ] {
            let said = named(name).expect_err(name);
            assert!(said.contains(expected), "{said}");
            assert!(said.contains("linux-6.13, linux-6.14") && said.contains("linux-6.6.30"));
        }
    }
}
