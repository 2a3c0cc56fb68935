//! Advice on the kernel's NUMA balancing for a process, from the counts while it ran.

use serde::Serialize;

/// Minimum number of detected accesses for any advice.
const TOO_FEW_FAULTS: u64 = 200;
/// Local share from which memory counts as well placed.
const WELL_PLACED: f64 = 0.9;
/// Increase of a share that counts as growth.
const BETTER: f64 = 0.1;
/// If more than this multiple of the memory was moved, and it is not well placed after that, it
/// moves back and forth.
const BACK_AND_FORTH: f64 = 1.5;
/// If less than this share of the memory was moved, balancing left it in place.
const LEFT_ALONE: f64 = 0.01;
/// Share of accesses by one thread from which memory is mostly private, and the shares from which
/// that, or the opposite, is clear. Fitted to 70 runs of `numa-cost` in machines of 2 nodes
/// (docs/measurements/2026-11.md).
const MOSTLY_PRIVATE: f64 = 0.65;
const CLEARLY_PRIVATE: f64 = 0.8;
const CLEARLY_SHARED: f64 = 0.5;
/// Bounds of the last local share that decide unclear cases. The last accesses to private memory
/// are all local, or all from the node that the threads have just moved to. Those to memory that
/// threads of several nodes use are a mixture. Fitted with the same runs.
const AT_ITS_USERS: f64 = 0.8;
const JUST_LEFT: f64 = 0.1;
/// Share of the machine's run time from which the machine's counts are attributed to the process.
const MOSTLY_ITS_OWN: f64 = 0.9;
/// Share below which the machine's counts give little information on the process.
const HARDLY_ITS_OWN: f64 = 0.5;

/// Recommended setting of the kernel's balancing for this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Advice {
    On,
    Off,
    CannotTell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Confidence {
    High,
    Medium,
    Low,
}

/// The values from which the advice is derived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// Nodes that have memory.
    pub(super) nodes: usize,
    /// `true` if the kernel's balancing is on.
    pub(super) is_on: bool,
    /// Accesses that it detected.
    pub(super) faults: u64,
    /// The local share of the first and of the last of them; `None` without any.
    pub(super) local_first: Option<f64>,
    pub(super) local_last: Option<f64>,
    /// The share of them by the thread that had also made the previous access to the page; `None`
    /// if unknown.
    pub(super) private: Option<f64>,
    /// The share of them that the threads made in proportion to their run time.
    pub(super) spread: Option<f64>,
    /// Pages that it moved, as a share of the process's pages.
    pub(super) moved: Option<f64>,
    /// The process's share of the machine's run time.
    pub(super) share_of_machine: Option<f64>,
}

/// Advice with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Verdict {
    pub(super) advice: Advice,
    pub(super) confidence: Confidence,
    pub(super) reason: String,
}

pub(super) fn judge(evidence: &Evidence) -> Verdict {
    let none = |reason: &str| Verdict {
        advice: Advice::CannotTell,
        confidence: Confidence::High,
        reason: reason.to_owned(),
    };
    if evidence.nodes < 2 {
        return none("one node has memory: there is nothing to balance");
    }
    if !evidence.is_on {
        return none("the kernel's balancing is off: what it would do was not seen");
    }
    if evidence.faults < TOO_FEW_FAULTS {
        return none("it saw hardly any accesses: it neither cost nor brought anything");
    }
    let (Some(last), Some(moved)) = (evidence.local_last, evidence.moved) else {
        return none("the kernel does not say where the accesses or the pages were");
    };
    let first = evidence.local_first.unwrap_or(last);
    let (advice, is_clear, reason) = match evidence.private {
        Some(private) => by_threads(first, last, moved, private * evidence.spread.unwrap_or(1.0)),
        None => by_figures(first, last, moved),
    };
    Verdict { advice, confidence: confidence(is_clear, evidence.share_of_machine), reason }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Returns the advice, whether it is clear, and the reason, if the kernel records which accesses
/// are by one thread alone. Memory that one thread uses was moved to it permanently. Memory that
/// several threads use was moved to the first of them, unless all of them are on one node: then
/// accesses become local and stay local.
fn by_threads(first: f64, last: f64, moved: f64, private: f64) -> (Advice, bool, String) {
    let (moved_text, private_text) = (percent(moved), percent(private));
    if moved <= LEFT_ALONE {
        let why = format!("hardly anything moves ({moved_text} of the memory)");
        return (Advice::Off, last >= WELL_PLACED || private < MOSTLY_PRIVATE, why);
    }
    let is_mixture = JUST_LEFT < last && last < AT_ITS_USERS;
    if private >= CLEARLY_PRIVATE || private >= MOSTLY_PRIVATE && !is_mixture {
        let wanders = moved >= BACK_AND_FORTH && last < WELL_PLACED;
        let why = format!(
            "{moved_text} of the memory was moved, and {private_text} of accesses are to memory of \
             single threads"
        );
        return (Advice::On, !wanders && private >= CLEARLY_PRIVATE, why);
    }
    if last >= WELL_PLACED && last - first >= BETTER {
        let why = format!(
            "the local share of accesses rose from {} to {}, though several threads use the memory",
            percent(first),
            percent(last)
        );
        return (Advice::On, false, why);
    }
    let mut why = format!(
        "{moved_text} of the memory was moved, but {} of accesses are to memory that several threads \
         use",
        percent(1.0 - private)
    );
    if private >= MOSTLY_PRIVATE {
        why.push_str(&format!(", and {} of the last ones were local", percent(last)));
    }
    (Advice::Off, private < CLEARLY_SHARED, why)
}

/// Returns the advice, whether it is clear, and the reason, from the machine's counts alone.
fn by_figures(first: f64, last: f64, moved: f64) -> (Advice, bool, String) {
    if last - first >= BETTER {
        let clear = last >= WELL_PLACED;
        let why = format!(
            "the local share of accesses rose from {} to {}",
            percent(first),
            percent(last)
        );
        return (Advice::On, clear, why);
    }
    if last >= WELL_PLACED && moved <= LEFT_ALONE {
        let why = format!("{} of accesses are local, and nothing moves", percent(last));
        return (Advice::Off, true, why);
    }
    if last >= WELL_PLACED {
        let why = format!(
            "{} of accesses are local while pages move ({} of the memory)",
            percent(last),
            percent(moved)
        );
        return (Advice::On, false, why);
    }
    if moved >= BACK_AND_FORTH {
        let why = format!(
            "pages move back and forth: {moved:.1} times the memory was moved, and {} of accesses are local",
            percent(last)
        );
        return (Advice::Off, true, why);
    }
    let why = format!(
        "memory is used from several nodes: {} of accesses are local, and that does not rise",
        percent(last)
    );
    (Advice::Off, moved <= LEFT_ALONE, why)
}

/// Returns the confidence. The counts are the machine's: the more other processes ran, the less
/// they apply to this one.
fn confidence(is_clear: bool, share_of_machine: Option<f64>) -> Confidence {
    match share_of_machine {
        Some(share) if share >= MOSTLY_ITS_OWN && is_clear => Confidence::High,
        Some(share) if share >= MOSTLY_ITS_OWN => Confidence::Medium,
        Some(share) if share >= HARDLY_ITS_OWN && is_clear => Confidence::Medium,
        _ => Confidence::Low,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Evidence = Evidence {
        nodes: 2,
        is_on: true,
        faults: 10_000,
        local_first: Some(0.5),
        local_last: Some(0.5),
        private: None,
        spread: None,
        moved: Some(0.2),
        share_of_machine: Some(0.95),
    };

    fn advice(evidence: Evidence) -> (Advice, Confidence) {
        let verdict = judge(&evidence);
        (verdict.advice, verdict.confidence)
    }

    #[test]
    fn what_becomes_local_is_worth_it() {
        let better = Evidence { local_last: Some(0.95), moved: Some(0.5), ..PLAIN };
        assert_eq!(advice(better), (Advice::On, Confidence::High));
        let somewhat = Evidence { local_last: Some(0.65), ..better };
        assert_eq!(advice(somewhat), (Advice::On, Confidence::Medium));
        let reason = judge(&better).reason;
        assert_eq!(reason, "the local share of accesses rose from 50 % to 95 %");
    }

    #[test]
    fn what_is_local_anyway_or_never_becomes_so_is_not() {
        let local =
            Evidence { local_first: Some(0.97), local_last: Some(0.98), moved: Some(0.0), ..PLAIN };
        assert_eq!(advice(local), (Advice::Off, Confidence::High));
        let shared = Evidence { moved: Some(0.005), ..PLAIN };
        assert_eq!(advice(shared), (Advice::Off, Confidence::High));
        let wandering = Evidence { moved: Some(3.4), ..PLAIN };
        assert_eq!(advice(wandering), (Advice::Off, Confidence::High));
        assert!(judge(&wandering).reason.contains("3.4 times"));
    }

    #[test]
    fn where_the_kernel_tells_threads_apart_it_is_they_that_matter() {
        let told =
            |private, moved| Evidence { private: Some(private), moved: Some(moved), ..PLAIN };
        // Moved to its users after the last detected access: no access was local yet.
        assert_eq!(advice(told(0.8, 1.3)), (Advice::On, Confidence::High));
        assert_eq!(advice(told(0.3, 0.4)), (Advice::Off, Confidence::High));
        assert_eq!(advice(told(0.6, 0.4)), (Advice::Off, Confidence::Medium));
        // In between, the last accesses decide.
        for (last, expected) in
            [(0.85, Advice::On), (0.05, Advice::On), (0.4, Advice::Off), (0.75, Advice::Off)]
        {
            let between = Evidence { local_last: Some(last), ..told(0.7, 0.3) };
            assert_eq!(advice(between), (expected, Confidence::Medium), "{last}");
        }
        assert_eq!(advice(told(0.95, 0.001)), (Advice::Off, Confidence::Medium), "nothing to move");
        // One of four threads is the first everywhere: the memory seems to be private to it.
        let first_everywhere = Evidence { spread: Some(0.25), ..told(0.99, 0.4) };
        assert_eq!(advice(first_everywhere), (Advice::Off, Confidence::High));
        assert_eq!(advice(Evidence { spread: Some(0.9), ..first_everywhere }).0, Advice::On);
        // Several threads of one node.
        let of_a_node = Evidence { local_last: Some(0.97), ..told(0.2, 0.5) };
        assert_eq!(advice(of_a_node), (Advice::On, Confidence::Medium));
        // The control: local before too.
        let before = Evidence { local_first: Some(0.95), ..of_a_node };
        assert_eq!(advice(before).0, Advice::Off);
    }

    /// The control: a share that rises by less than a tenth is no gain, whatever moved.
    #[test]
    fn a_small_rise_is_no_gain() {
        let small = Evidence { local_last: Some(0.59), ..PLAIN };
        assert_eq!(judge(&small).advice, Advice::Off);
        assert_eq!(judge(&Evidence { local_last: Some(0.61), ..PLAIN }).advice, Advice::On);
    }

    #[test]
    fn without_something_to_see_there_is_no_verdict() {
        for blind in [
            Evidence { nodes: 1, ..PLAIN },
            Evidence { is_on: false, ..PLAIN },
            Evidence { faults: 199, ..PLAIN },
            Evidence { moved: None, ..PLAIN },
            Evidence { local_last: None, ..PLAIN },
        ] {
            assert_eq!(judge(&blind).advice, Advice::CannotTell, "{blind:?}");
        }
    }

    #[test]
    fn what_others_ran_lowers_the_confidence() {
        let better = Evidence { local_last: Some(0.95), ..PLAIN };
        for (share, expected) in
            [(Some(0.7), Confidence::Medium), (Some(0.2), Confidence::Low), (None, Confidence::Low)]
        {
            assert_eq!(judge(&Evidence { share_of_machine: share, ..better }).confidence, expected);
        }
    }
}
