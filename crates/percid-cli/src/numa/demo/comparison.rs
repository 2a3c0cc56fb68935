//! The result of the pairs of runs: values with an error bound, and text.

use std::fmt;

use serde::Serialize;

use super::estimate::{CONFIDENCE, Estimate, METHOD};
use crate::numa::figures::percent;

/// Difference of the shares of placed pages up to which they count as alike. The pages that the two
/// runs leave on other nodes by chance are fewer.
const ALIKE: f64 = 0.05;

/// Values of one pair: throughputs at the end in bytes per second, and shares of the pages that are
/// on their thread's node at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) throughput_without: Option<f64>,
    pub(super) throughput_with: Option<f64>,
    pub(super) placed_without: Option<f64>,
    pub(super) placed_with: Option<f64>,
}

/// Effect of balancing on the throughput at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Only one node has memory.
    NothingToGain,
    /// There are fewer than two pairs with values, so there is no error bound.
    TooFewPairs,
    /// The interval includes 1.
    NoDifferenceShown,
    Faster,
    Slower,
}

/// Placement of the pages at the end with balancing, compared to without: the mean over the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Placement {
    Alike,
    Better,
    Worse,
}

#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    verdict: Verdict,
    /// The estimate, if balancing was faster and its pages better placed; otherwise there is no
    /// gain.
    gain: Option<Estimate>,
    estimate: Option<Estimate>,
    confidence: f64,
    method: &'static str,
    /// One for each pair.
    ratios: Vec<Option<f64>>,
    placement: Option<Placement>,
    placed_without: Option<f64>,
    placed_with: Option<f64>,
    /// `true` if the kernel moves pages in the runs without percid's balancing too.
    kernel_balances_both: bool,
}

impl Comparison {
    pub(super) fn new(pairs: &[Ends], has_nodes: bool, kernel_balances: bool) -> Comparison {
        let ratios: Vec<Option<f64>> = pairs.iter().map(Ends::ratio).collect();
        let estimate =
            Estimate::from_ratios(&ratios.iter().copied().flatten().collect::<Vec<f64>>());
        let placed_without = mean(pairs.iter().map(|pair| pair.placed_without));
        let placed_with = mean(pairs.iter().map(|pair| pair.placed_with));
        let placement = placed_without.zip(placed_with).map(Placement::from_shares);
        let verdict = if has_nodes {
            Verdict::from_estimate(estimate.as_ref())
        } else {
            Verdict::NothingToGain
        };
        let is_gain = verdict == Verdict::Faster && placement == Some(Placement::Better);
        Comparison {
            verdict,
            gain: estimate.filter(|_| is_gain),
            estimate,
            confidence: CONFIDENCE,
            method: METHOD,
            ratios,
            placement,
            placed_without,
            placed_with,
            kernel_balances_both: has_nodes && kernel_balances,
        }
    }
}

impl Ends {
    /// Returns the throughput with balancing as a multiple of that without.
    fn ratio(&self) -> Option<f64> {
        let ratio = self.throughput_with? / self.throughput_without?;
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }
}

impl Verdict {
    fn from_estimate(estimate: Option<&Estimate>) -> Verdict {
        match estimate {
            None => Verdict::TooFewPairs,
            Some(of) if of.low > 1.0 => Verdict::Faster,
            Some(of) if of.high < 1.0 => Verdict::Slower,
            Some(_) => Verdict::NoDifferenceShown,
        }
    }
}

impl Placement {
    fn from_shares((without, with): (f64, f64)) -> Placement {
        match with - without {
            more if more > ALIKE => Placement::Better,
            more if more < -ALIKE => Placement::Worse,
            _ => Placement::Alike,
        }
    }
}

/// Returns the mean; `None` if any share is unknown, or if there is none.
fn mean(shares: impl ExactSizeIterator<Item = Option<f64>>) -> Option<f64> {
    let count = shares.len();
    let sum = shares.sum::<Option<f64>>()?;
    (count > 0).then(|| sum / count as f64)
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_verdict(f)?;
        if self.verdict != Verdict::NothingToGain {
            self.write_placement(f)?;
        }
        if self.kernel_balances_both {
            writeln!(
                f,
                "  The kernel balanced all runs: this is what percid's balancing adds to it."
            )?;
        }
        if let Some(estimate) = self.estimate {
            writeln!(
                f,
                "  Interval: {} %, by Student's t on the logarithms of the ratios of {} pairs.",
                100.0 * self.confidence,
                estimate.pairs
            )?;
        }
        Ok(())
    }
}

impl Comparison {
    /// Returns the verdict in one sentence with a number.
    pub(super) fn told(&self) -> String {
        let (Some(Estimate { low, high, .. }), false) =
            (self.estimate, self.verdict == Verdict::NothingToGain)
        else {
            return match self.verdict {
                Verdict::NothingToGain => {
                    "With memory on 1 node there is nothing to balance.".to_owned()
                }
                _ => {
                    "There is no verdict, because an error bound needs 2 finished pairs.".to_owned()
                }
            };
        };
        let what = match self.verdict {
            Verdict::Faster if self.gain.is_some() => "a gain",
            Verdict::Faster => "faster, which is not shown to come from placement",
            Verdict::Slower => "slower",
            _ => "no difference can be shown",
        };
        format!(
            "With balancing the throughput at the end is from {low:.3} to {high:.3} times that without it: {what}."
        )
    }

    /// Writes the verdict; on one node the heading has already reported it.
    fn write_verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Estimate { ratio, low, high, .. }) = self.estimate else {
            return match self.verdict {
                Verdict::NothingToGain => Ok(()),
                _ => writeln!(f, "no verdict: an error bound needs two finished pairs (--pairs)"),
            };
        };
        let bounds = format!("{low:.3} to {high:.3}");
        let times = "times the throughput at the end";
        match self.verdict {
            Verdict::NothingToGain => writeln!(f, "equal runs: {bounds} {times}"),
            Verdict::Faster if self.gain.is_some() => {
                writeln!(f, "faster: gain {ratio:.3} {times}, {bounds}")
            }
            Verdict::Faster => {
                let known = if self.placement.is_some() { ", but not by placement" } else { "" };
                writeln!(f, "faster: {bounds} {times}{known}")
            }
            Verdict::Slower => writeln!(f, "slower: {ratio:.3} {times}, {bounds}"),
            Verdict::NoDifferenceShown | Verdict::TooFewPairs => {
                writeln!(f, "no difference can be shown: {bounds} {times}")
            }
        }
    }

    fn write_placement(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(placement) = self.placement else {
            return writeln!(f, "  The places of the pages at the end are not known.");
        };
        let what = match placement {
            Placement::Alike => ": alike.\n  So there is no gain from placement",
            Placement::Better => "",
            Placement::Worse => ": worse",
        };
        writeln!(
            f,
            "  Pages on their thread's node at the end: {} % without balancing, {} % with it{what}.",
            percent(self.placed_without),
            percent(self.placed_with)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs with these ratios, and these shares of placed pages.
    fn pairs(ratios: &[f64], placed_without: f64, placed_with: f64) -> Vec<Ends> {
        let pair = |ratio: &f64| Ends {
            throughput_without: Some(2e9),
            throughput_with: Some(2e9 * ratio),
            placed_without: Some(placed_without),
            placed_with: Some(placed_with),
        };
        ratios.iter().map(pair).collect()
    }

    fn compared(pairs: &[Ends]) -> (Comparison, String) {
        let comparison = Comparison::new(pairs, true, false);
        let text = comparison.to_string();
        (comparison, text)
    }

    const NOISE: [f64; 6] = [2.30, 0.52, 1.31, 0.70, 0.95, 1.10];
    const GAIN: [f64; 6] = [1.80, 1.92, 1.75, 1.85, 1.79, 1.88];
    const LOSS: [f64; 6] = [0.90, 0.92, 0.91, 0.90, 0.93, 0.89];

    #[test]
    fn runs_that_end_alike_have_no_gain_and_no_figure_for_it() {
        let (comparison, text) = compared(&pairs(&NOISE, 0.5, 0.5));
        assert_eq!(comparison.verdict, Verdict::NoDifferenceShown);
        assert_eq!(comparison.placement, Some(Placement::Alike));
        assert!(comparison.gain.is_none());
        assert!(text.contains("no difference can be shown"), "{text}");
        assert!(text.contains("no gain from placement"), "{text}");
        assert!(!text.contains("2.30") && !text.contains(": gain"), "{text}");
    }

    /// Page placement is not the cause of the higher throughput in these runs.
    #[test]
    fn runs_whose_pages_end_alike_have_no_gain_even_if_they_are_faster() {
        for placed in [0.5, 0.97] {
            let (comparison, text) = compared(&pairs(&GAIN, placed, placed + 0.03));
            assert_eq!(comparison.verdict, Verdict::Faster);
            assert!(comparison.gain.is_none());
            assert!(text.contains("but not by placement"), "{text}");
            assert!(text.contains("no gain from placement"), "{text}");
            assert!(!text.contains(": gain"), "{text}");
        }
    }

    #[test]
    fn a_real_difference_is_a_gain_with_its_bounds() {
        let (comparison, text) = compared(&pairs(&GAIN, 0.5, 1.0));
        assert_eq!(comparison.verdict, Verdict::Faster);
        assert_eq!(comparison.gain, comparison.estimate);
        let gain = comparison.gain.expect("a gain");
        assert!(1.7 < gain.low && gain.low < 1.83 && 1.83 < gain.high && gain.high < 2.0);
        assert!(text.starts_with("faster: gain 1.8"), "{text}");
        assert!(text.contains("95 %"), "{text}");
        assert!(text.contains("50.0 % without balancing, 100.0 % with it."), "{text}");
    }

    #[test]
    fn what_is_slower_is_called_so() {
        let (comparison, text) = compared(&pairs(&LOSS, 0.5, 0.5));
        assert_eq!((comparison.verdict, comparison.gain), (Verdict::Slower, None));
        assert!(text.starts_with("slower: 0.9"), "{text}");
        let (comparison, text) = compared(&pairs(&LOSS, 0.5, 0.3));
        assert_eq!(comparison.placement, Some(Placement::Worse));
        assert!(text.contains("with it: worse."), "{text}");
    }

    /// Better placement is no gain either if no run is faster.
    #[test]
    fn placement_alone_is_no_gain() {
        let (comparison, text) = compared(&pairs(&NOISE, 0.5, 1.0));
        assert_eq!((comparison.verdict, comparison.gain), (Verdict::NoDifferenceShown, None));
        assert!(!text.contains("gain"), "{text}");
    }

    #[test]
    fn one_pair_has_no_verdict_and_no_figure() {
        let (comparison, text) = compared(&pairs(&[2.30], 0.5, 1.0));
        assert_eq!((comparison.verdict, comparison.gain), (Verdict::TooFewPairs, None));
        assert!(text.contains("needs two finished pairs") && !text.contains("2.3"), "{text}");
        assert_eq!(compared(&[]).0.verdict, Verdict::TooFewPairs);
    }

    #[test]
    fn pairs_without_a_throughput_do_not_count() {
        let mut some = pairs(&GAIN, 0.5, 1.0);
        some[0].throughput_with = None;
        some[1].throughput_without = Some(0.0);
        some[2].throughput_with = Some(0.0);
        let (comparison, _) = compared(&some);
        assert_eq!(comparison.estimate.map(|of| of.pairs), Some(3));
        assert_eq!(comparison.ratios.iter().filter(|ratio| ratio.is_none()).count(), 3);
    }

    #[test]
    fn where_the_kernel_hides_pages_nothing_is_said_of_a_gain() {
        let mut hidden = pairs(&GAIN, 0.5, 1.0);
        hidden.iter_mut().for_each(|pair| (pair.placed_with, pair.placed_without) = (None, None));
        let (comparison, text) = compared(&hidden);
        assert_eq!((comparison.placement, comparison.gain), (None, None));
        assert!(text.contains("not known") && !text.contains("by placement"), "{text}");
    }

    #[test]
    fn on_one_node_there_is_nothing_to_gain() {
        for ratios in [&GAIN[..], &GAIN[..1]] {
            let comparison = Comparison::new(&pairs(ratios, 1.0, 1.0), false, true);
            assert_eq!((comparison.verdict, comparison.gain), (Verdict::NothingToGain, None));
            let text = comparison.to_string();
            assert!(!text.contains("kernel") && !text.contains("aster"), "{text}");
            assert_eq!(text.contains("equal runs"), ratios.len() > 1, "{text}");
        }
    }

    #[test]
    fn what_the_kernel_balances_too_is_said_to_be() {
        let comparison = Comparison::new(&pairs(&GAIN, 0.5, 1.0), true, true);
        assert!(comparison.to_string().contains("The kernel balanced all runs"));
    }
}
