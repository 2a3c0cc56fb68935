//! Colours with the same meaning on the whole page.

/// Assignment of colours to names: each new name gets the next one, so that a policy has the same
/// colour in every chart of a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Colours {
    names: Vec<String>,
    /// The things of the previous tracks.
    things: String,
}

/// Number of categorical colours in `style.css`. With the shapes of marks, which repeat with
/// another period, more names than this can be told apart.
pub(crate) const COLOURS: usize = 6;
/// Number of shapes in [`SHAPES`].
const KINDS: usize = 5;

/// The appearance of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    at: usize,
}

/// Shapes of marks, around the origin, in CSS pixels: disc, square, triangle, diamond, cross.
const SHAPES: [&str; KINDS] = [
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "M-4.5-4.5h9v9h-9z",
    "M0-6L5.5 4.5h-11z",
    "M0-6.5L5.5 0L0 6.5L-5.5 0z",
    "M-5-2h3v-3h4v3h3v4h-3v3h-4v-3h-3z",
];
/// Sizes of shapes: those of lines that lie below one or two others are larger.
const SIZES: [f64; 3] = [1.0, 1.5, 2.0];
/// A ring: the mark of the reference.
const RING: &str = "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z";

/// Dashes of lines, in CSS pixels.
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

impl Colours {
    /// Returns the look of this name.
    pub(crate) fn look(&mut self, name: &str) -> Look {
        let known = self.names.iter().position(|known| known == name);
        let at = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        Look { at }
    }

    /// Returns `true` if these things differ from those of the previous tracks, and stores them.
    pub(crate) fn are_new(&mut self, things: &str) -> bool {
        let are_new = self.things != things;
        if are_new {
            self.things = things.to_owned();
        }
        are_new
    }
}

impl Look {
    /// Returns a look by number, for numbered things without a name.
    pub(crate) fn numbered(at: usize) -> Look {
        Look { at }
    }

    /// Returns the class of `style.css` with its colour.
    pub(crate) fn class(self) -> String {
        format!("c{}", self.at % COLOURS)
    }

    /// Returns the number of its shape.
    pub(crate) fn shape(self) -> usize {
        self.at % KINDS
    }

    /// Returns the name of its shape in one of the [`SIZES`].
    pub(crate) fn mark(self, size: usize) -> String {
        mark(self.shape(), size)
    }

    pub(crate) fn dash(self) -> &'static str {
        DASHES[self.at % DASHES.len()]
    }
}

fn mark(shape: usize, size: usize) -> String {
    if size == 0 { format!("m{shape}") } else { format!("m{shape}-{size}") }
}

/// Returns the definitions of the shapes, to be used by their numbers on the whole page.
pub(crate) fn definitions(more: &str) -> String {
    let shapes = SHAPES.iter().enumerate().flat_map(|(at, shape)| {
        SIZES.iter().enumerate().map(move |(size, scale)| {
            let id = mark(at, size);
            format!("<path id=\"{id}\" transform=\"scale({scale})\" d=\"{shape}\"/>")
        })
    });
    let shapes: String = shapes.collect();
    format!(
        "<svg class=\"shapes\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>{shapes}\
         <path id=\"ring\" d=\"{RING}\"/>{more}</defs></svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linear red, green and blue, 0 to 1.
    type Colour = [f64; 3];

    /// The vision of people without one kind of cones: Machado, Oliveira and Fernandes, "A
    /// Physiologically-based Model for Simulation of Color Vision Deficiency" (2009), severity 1.
    const SIGHTS: [(&str, [Colour; 3]); 4] = [
        ("all cones", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protanopia",
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
        ),
        (
            "deuteranopia",
            [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ],
        ),
        (
            "tritanopia",
            [
                [1.255_528, -0.076_749, -0.178_779],
                [-0.078_411, 0.930_809, 0.147_602],
                [0.004_733, 0.691_367, 0.303_900],
            ],
        ),
    ];

    fn colour(hex: &str) -> Colour {
        let part = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
        [part(0), part(2), part(4)].map(|value| {
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    /// Returns the values of a variable of `style.css`: in light, and in dark.
    fn both(variable: &str) -> [Colour; 2] {
        let style = include_str!("style.css");
        let start = format!("--{variable}: #");
        let after = style.split(start.as_str()).skip(1);
        let found: Vec<Colour> = after.map(|text| colour(&text[..6])).collect();
        found.try_into().expect("light and dark")
    }

    /// Returns the contrast by the relative luminance, as WCAG 2.1 defines them.
    fn contrast(one: Colour, other: Colour) -> f64 {
        let luminance = |of: Colour| 0.2126 * of[0] + 0.7152 * of[1] + 0.0722 * of[2] + 0.05;
        let (one, other) = (luminance(one), luminance(other));
        one.max(other) / one.min(other)
    }

    /// Returns the distance in Oklab, in which equal distances look alike. Black and white are 1
    /// apart.
    fn distance(one: Colour, other: Colour) -> f64 {
        let lab = |[red, green, blue]: Colour| {
            let [long, middle, short] = [
                0.412_221_470_8 * red + 0.536_332_536_3 * green + 0.051_445_992_9 * blue,
                0.211_903_498_2 * red + 0.680_699_545_1 * green + 0.107_396_956_6 * blue,
                0.088_302_461_9 * red + 0.281_718_837_6 * green + 0.629_978_700_5 * blue,
            ]
            .map(f64::cbrt);
            [
                0.210_454_255_3 * long + 0.793_617_785_0 * middle - 0.004_072_046_8 * short,
                1.977_998_495_1 * long - 2.428_592_205_0 * middle + 0.450_593_709_9 * short,
                0.025_904_037_1 * long + 0.782_771_766_2 * middle - 0.808_675_766_0 * short,
            ]
        };
        let pairs = lab(one).into_iter().zip(lab(other));
        pairs.map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt()
    }

    fn seen(sight: [Colour; 3], of: Colour) -> Colour {
        sight.map(|row| (0..3).map(|at| row[at] * of[at]).sum::<f64>().clamp(0.0, 1.0))
    }

    /// Returns the distance of the closest two colours in any of the kinds of vision.
    fn closest(colours: &[Colour]) -> f64 {
        let mut least = f64::INFINITY;
        for (_, sight) in SIGHTS {
            for (at, one) in colours.iter().enumerate() {
                for other in &colours[at + 1..] {
                    least = least.min(distance(seen(sight, *one), seen(sight, *other)));
                }
            }
        }
        least
    }

    #[test]
    fn colours_are_seen_on_their_page_and_told_apart_by_colour_blind_readers() {
        let page = both("page");
        for (theme, page) in page.into_iter().enumerate() {
            let colours: Vec<Colour> =
                (0..COLOURS).map(|at| both(&format!("c{at}"))[theme]).collect();
            for colour in &colours {
                // The requirement of WCAG 2.1 (criterion 1.4.11) on graphics.
                let contrast = contrast(*colour, page);
                assert!(contrast >= 3.0, "{contrast:.2} in theme {theme}");
            }
            let least = closest(&colours);
            assert!(least >= APART, "{least:.3} in theme {theme}");
        }
        // Red and green of the same lightness, which many readers cannot tell apart.
        let control = closest(&[colour("c4504b"), colour("6f7f22")]);
        assert!(control < APART, "{control:.3}");
    }

    /// Four times the smallest visible distance between adjacent patches, which is about 0.02.
    const APART: f64 = 0.08;

    #[test]
    fn parts_of_a_whole_get_darker_or_lighter_and_their_numbers_are_read() {
        for theme in 0..2 {
            let parts: Vec<Colour> = (0..8).map(|at| both(&format!("o{at}"))[theme]).collect();
            let neighbours = parts.windows(2).map(closest);
            let least = neighbours.fold(f64::INFINITY, f64::min);
            assert!(least >= 0.05, "{least:.3} in theme {theme}");
            for (at, part) in parts.iter().enumerate() {
                let ink = both(&format!("i{at}"))[theme];
                let contrast = contrast(*part, ink);
                assert!(contrast >= 4.5, "part {at}: {contrast:.2} in theme {theme}");
            }
        }
    }

    #[test]
    fn names_keep_their_looks() {
        let mut colours = Colours::default();
        let first = colours.look("one");
        let others: Vec<Look> = (0..29).map(|at| colours.look(&at.to_string())).collect();
        assert_eq!(colours.look("one"), first);
        let all: std::collections::BTreeSet<_> =
            others.iter().chain([&first]).map(|look| (look.class(), look.shape())).collect();
        assert_eq!(all.len(), 30, "colours and shapes together tell 30 names apart");
    }
}
