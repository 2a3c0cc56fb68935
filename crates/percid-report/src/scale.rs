//! Positions of values on an axis, and the values that are written there.

use crate::axis::Axis;
use crate::number;

/// The values between the two ends of an axis, and their divisions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// `true` if only whole numbers are written, as for positions.
    is_whole: bool,
}

/// A value that is written at an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// The position in percent of the axis's length, from its low end.
    pub(crate) place: f64,
    pub(crate) text: String,
}

/// The rule for the values at the ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The values of the data.
    Data,
    /// The values of the data, and 0: if lengths are compared, or if 0 is not far away.
    Zero,
    /// Exactly the values of the data, without rounding.
    Exact,
}

/// Width of a character of a number, and the room between two numbers, in CSS pixels.
const CHARACTER: f64 = 7.5;
const APART: f64 = 18.0;

impl Scale {
    /// Creates an axis with all `values` that it can show. Its ends are round numbers unless `ends`
    /// excludes that.
    pub(crate) fn new(axis: &Axis, values: impl Iterator<Item = f64>, ends: Ends) -> Scale {
        let shown = values.filter(|value| axis.can_show(*value));
        let reach = shown.fold(None, |reach: Option<(f64, f64)>, value| {
            let (low, high) = reach.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        });
        let logarithmic = axis.is_logarithmic();
        let (low, high) = match (reach, logarithmic) {
            (None, true) => (1.0, 10.0),
            (None, false) => (0.0, 1.0),
            (Some(reach), true) if ends != Ends::Exact => round_powers(reach),
            (Some((low, high)), false) if ends == Ends::Zero => {
                round_steps((low.min(0.0), high.max(0.0)))
            }
            (Some(reach), false) if ends == Ends::Data => round_steps(reach),
            (Some(reach), _) => reach,
        };
        Scale { low, high, logarithmic, is_whole: false }
    }

    /// Writes only whole numbers.
    pub(crate) fn whole(self) -> Scale {
        Scale { is_whole: true, ..self }
    }

    /// Returns the percentage of the axis's length from its low end. Only for values that the axis
    /// can show.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let part = if self.logarithmic {
            (value / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if part.is_finite() { 100.0 * part } else { 50.0 }
    }

    /// Returns round values that can be written on an axis of this many CSS pixels without overlap.
    pub(crate) fn ticks(&self, room: f64) -> Vec<Tick> {
        let fits = |values: &Vec<f64>| {
            let widest = values.iter().map(|value| number::tick(*value).chars().count()).max();
            let width = widest.unwrap_or(0) as f64 * CHARACTER + APART;
            let mut places: Vec<f64> = values.iter().map(|value| self.place(*value)).collect();
            places.sort_by(f64::total_cmp);
            places.windows(2).all(|pair| (pair[1] - pair[0]) / 100.0 * room >= width)
        };
        let can_write =
            |values: &Vec<f64>| !self.is_whole || values.iter().all(|value| value.fract() == 0.0);
        let mut divisions = self.divisions().filter(can_write);
        let values = divisions.find(fits).unwrap_or_default();
        let tick = |value: f64| Tick { place: self.place(value), text: number::tick(value) };
        values.into_iter().map(tick).collect()
    }

    /// Returns divisions of the axis, from fine to coarse.
    fn divisions(&self) -> Box<dyn Iterator<Item = Vec<f64>> + '_> {
        if self.logarithmic { Box::new(self.powers()) } else { Box::new(self.steps()) }
    }

    fn powers(&self) -> impl Iterator<Item = Vec<f64>> + '_ {
        let exponents = move || self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let with = move |factors: &[f64], every: i32| -> Vec<f64> {
            let kept = exponents().filter(|exponent| exponent.rem_euclid(every) == 0);
            let values = kept.flat_map(|at| factors.iter().map(move |by| by * 10_f64.powi(at)));
            values.filter(|value| self.includes(*value)).collect()
        };
        let fine = [vec![1.0, 2.0, 5.0], vec![1.0, 3.0], vec![1.0]].into_iter();
        let fine = fine.map(move |factors| with(&factors, 1));
        let coarse = (2..=8).map(move |every| with(&[1.0], every));
        // An axis within one power of ten may contain no power of ten.
        let several = |values: &Vec<f64>| values.len() > 1;
        fine.chain(coarse).filter(several).chain([vec![self.low, self.high], vec![self.high]])
    }

    fn steps(&self) -> impl Iterator<Item = Vec<f64>> + '_ {
        let extent = self.high - self.low;
        let unit = 10_f64.powi((extent / 10.0).log10().floor() as i32);
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 25.0, 50.0, 100.0];
        let of_step = move |step: f64| -> Vec<f64> {
            let first = (self.low / step - 1e-9).ceil() as i64;
            let last = (self.high / step + 1e-9).floor() as i64;
            // Otherwise a negative zero would be written with its sign.
            (first..=last).map(|at| at as f64 * step + 0.0).collect()
        };
        let sensible = extent.is_finite() && extent > 0.0;
        let steps = if sensible { &steps[..] } else { &[] }.to_vec();
        steps.into_iter().map(move |step| of_step(step * unit)).chain([vec![self.low]])
    }

    fn includes(&self, value: f64) -> bool {
        value >= self.low * (1.0 - 1e-9) && value <= self.high * (1.0 + 1e-9)
    }
}

/// Returns the nearest values outside these that are 1, 2 or 5 times a power of ten.
fn round_powers((low, high): (f64, f64)) -> (f64, f64) {
    let around = |value: f64| {
        let power = value.log10().floor() as i32;
        let powers = (power - 1..=power + 1).map(|at| 10_f64.powi(at));
        powers.flat_map(|power| [1.0, 2.0, 5.0].map(|by| by * power)).collect::<Vec<_>>()
    };
    let below = around(low).into_iter().filter(|value| *value <= low * 0.98).reduce(f64::max);
    let above = around(high).into_iter().find(|value| *value >= high * 1.02);
    (below.unwrap_or(low), above.unwrap_or(high))
}

/// Returns the nearest multiples outside these of a round step.
fn round_steps((low, high): (f64, f64)) -> (f64, f64) {
    if low >= high {
        let around = if low == 0.0 { 1.0 } else { low.abs() / 2.0 };
        return (low - around, high + around);
    }
    let rough = (high - low) / 5.0;
    let unit = 10_f64.powi(rough.log10().floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0].map(|by| by * unit).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    ((low / step).floor() * step, (high / step).ceil() * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis, values: &[f64], room: f64) -> Vec<String> {
        let scale = Scale::new(axis, values.iter().copied(), Ends::Data);
        scale.ticks(room).into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn ends_and_ticks_are_round_numbers() {
        let linear = Axis::new("count");
        assert_eq!(texts(&linear, &[0.0, 97.0], 400.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(texts(&linear, &[-30.0, 12.0], 300.0), ["-30", "-20", "-10", "0", "10", "20"]);
        let log = Axis::new("time").logarithmic();
        assert_eq!(
            texts(&log, &[1336.0, 26_721.0], 400.0),
            ["1,000", "2,000", "5,000", "10k", "20k", "50k"]
        );
        assert_eq!(texts(&log, &[0.02, 9e5], 300.0), ["0.01", "1", "100", "10k", "1M"]);
    }

    #[test]
    fn ticks_never_touch() {
        for logarithmic in [false, true] {
            let axis = Axis::new("x");
            let axis = if logarithmic { axis.logarithmic() } else { axis };
            for (low, high) in [(1.0, 1.1), (0.003, 7e8), (999.0, 1001.0), (5.0, 5.0), (1e-6, 4e-6)]
            {
                for room in [60.0, 150.0, 290.0, 900.0] {
                    let scale = Scale::new(&axis, [low, high].into_iter(), Ends::Data);
                    let ticks = scale.ticks(room);
                    assert!(!ticks.is_empty(), "{low} to {high} in {room}");
                    for pair in ticks.windows(2) {
                        let apart = (pair[1].place - pair[0].place) / 100.0 * room;
                        assert!(
                            apart >= pair[1].text.len() as f64 * CHARACTER,
                            "{pair:?} in {room}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn places_are_percents_of_the_axis() {
        let log = Scale::new(&Axis::new("x").logarithmic(), [1.0, 100.0].into_iter(), Ends::Exact);
        assert_eq!([1.0, 10.0, 100.0].map(|value| log.place(value)), [0.0, 50.0, 100.0]);
        let zero = Scale::new(&Axis::new("x"), [20.0, 40.0].into_iter(), Ends::Zero);
        assert_eq!([0.0, 20.0, 40.0].map(|value| zero.place(value)), [0.0, 50.0, 100.0]);
        let nothing = Scale::new(&Axis::new("x"), std::iter::empty(), Ends::Zero);
        assert_eq!(nothing.place(0.5), 50.0);
    }
}
