//! The rules under which a walk is replayed.

use percid_rules::scan::{Order, Rules};

/// Rules with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleSet {
    /// The name, in tables and arguments.
    pub name: &'static str,
    /// Description of the rules.
    pub about: &'static str,
    /// The rules.
    pub rules: Rules,
}

const UNTRACKED: Rules = Rules { track_regions: false, ..Rules::BASE };
const WINDOWS: Rules = Rules { window_before_test: true, ..Rules::BASE };
const PARTIAL: Rules = Rules { complete_partial: true, ..WINDOWS };
const OWN_SEQUENCES: Rules = Rules { per_region_cycles: true, ..Rules::SELECTIVE };

/// All, each with what those before it have; the last is in no kernel.
pub const RULE_SETS: [RuleSet; 8] = [
    RuleSet {
        name: "linux-6.3",
        about: "every region is scanned, whoever uses it",
        rules: UNTRACKED,
    },
    RuleSet {
        name: "base",
        about: "Linux 6.4 to 6.6: only threads that use a region scan it",
        rules: Rules::BASE,
    },
    RuleSet {
        name: "windows",
        about: "windows of activity end whoever scans (commit f3a6c97940fb)",
        rules: WINDOWS,
    },
    RuleSet { name: "partial", about: "what was begun is completed by any thread", rules: PARTIAL },
    RuleSet {
        name: "selective",
        about: "the published series, Linux 6.7: once a sequence, one inactive region by force",
        rules: Rules::SELECTIVE,
    },
    RuleSet {
        name: "own-sequences",
        about: "activity does not count in a region's own first two sequences",
        rules: OWN_SEQUENCES,
    },
    RuleSet { name: "linux-6.12", about: "starving regions are scanned", rules: Rules::LINUX_6_12 },
    RuleSet {
        name: "by-activity",
        about: "those of linux-6.12, regions in the order of their activity; in no kernel",
        rules: Rules { order: Order::Activity, ..Rules::LINUX_6_12 },
    },
];

/// The rules of a kernel of this release, such as `6.12.63`. `None` between 6.7 and 6.12, where
/// fixes came one by one and went into stable releases, and if it is no release.
pub fn of_release(release: &str) -> Option<&'static RuleSet> {
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    let name = match (number()?, number()?) {
        (..6, _) | (6, ..=3) => "linux-6.3",
        (6, 4..=6) => "base",
        (6, 7) => "selective",
        (6, 8..=11) => return None,
        _ => "linux-6.12",
    };
    RULE_SETS.iter().find(|set| set.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_their_rules() {
        let name = |release| of_release(release).map(|set| set.name);
        assert_eq!(name("5.10.0-30-amd64"), Some("linux-6.3"));
        assert_eq!(name("6.3.9"), Some("linux-6.3"));
        assert_eq!(name("6.4.0"), Some("base"));
        assert_eq!(name("6.6.1"), Some("base"));
        assert_eq!(name("6.7.0-rc3+"), Some("selective"));
        assert_eq!(name("6.9.7"), None);
        assert_eq!(name("6.12.63+deb13-cloud-amd64"), Some("linux-6.12"));
        assert_eq!(name("7.3"), Some("linux-6.12"));
        assert_eq!(name("unknown"), None);
    }

    #[test]
    fn every_set_differs_from_the_others() {
        for (place, set) in RULE_SETS.iter().enumerate() {
            let others = RULE_SETS[..place].iter();
            assert!(others.clone().all(|other| other.rules != set.rules && other.name != set.name));
        }
    }
}
