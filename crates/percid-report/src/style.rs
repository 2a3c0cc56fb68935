//! What all plots have in common: colours, margins, axes, and what the reader can do.

use plotly::color::{Rgb, Rgba};
use plotly::common::{Anchor, ExponentFormat, Font, Orientation, Title};
use plotly::configuration::{
    Configuration, DisplayModeBar, ImageButtonFormats, ModeBarButtonName, ToImageButtonOptions,
};
use plotly::layout::{
    self, AxisType, HoverMode, Layout, Legend, Margin, TicksDirection, TraceOrder,
};

use crate::axis::Axis;
use crate::escape;

/// Colours of marks: at least three times as light or dark as the page, light or dark, which is
/// what WCAG 2.1 (criterion 1.4.11) asks of graphics. Neighbours differ in hue. They repeat after
/// the last.
const MARKS: [(u8, u8, u8); 10] = [
    (0x2d, 0x74, 0xca),
    (0xda, 0x72, 0x0d),
    (0x23, 0x9d, 0x6a),
    (0xd3, 0x39, 0x49),
    (0x8c, 0x54, 0xc3),
    (0x97, 0x90, 0x2a),
    (0x2a, 0x9c, 0xae),
    (0x98, 0x64, 0x38),
    (0xd8, 0x61, 0xaa),
    (0x78, 0x81, 0x8c),
];

/// How many marks in a row differ in their colours.
pub(crate) const COLOURS: usize = MARKS.len();

pub(crate) fn colour(at: usize) -> Rgb {
    let (red, green, blue) = MARKS[at % COLOURS];
    Rgb::new(red, green, blue)
}

/// Room for an axis's numbers and name, in CSS pixels.
pub(crate) const BELOW: usize = 48;
/// Room for a legend of one line, in CSS pixels.
pub(crate) const ABOVE: usize = 36;
/// Room for half of a number at the end of an axis, in CSS pixels.
pub(crate) const SIDE: usize = 16;

/// What is left free beside the drawing area, in CSS pixels. Axes that ask for more get it.
pub(crate) fn margin(left: usize, right: usize) -> Margin {
    Margin::new().left(left).right(right).top(ABOVE).bottom(BELOW)
}

/// A drawing area of this height, with a legend above it.
pub(crate) fn layout(
    plot_height: usize,
    margin: Margin,
    x: layout::Axis,
    y: layout::Axis,
) -> Layout {
    let legend = Legend::new()
        .orientation(Orientation::Horizontal)
        .trace_order(TraceOrder::Normal)
        .x(0.0)
        .x_anchor(Anchor::Left)
        .y(1.0)
        .y_anchor(Anchor::Bottom);
    Layout::new()
        .height(plot_height + ABOVE + BELOW)
        .auto_size(true)
        .margin(margin)
        .font(Font::new().family("system-ui, sans-serif").size(13))
        .paper_background_color(clear())
        .plot_background_color(clear())
        .hover_mode(HoverMode::Closest)
        .legend(legend)
        .x_axis(x)
        .y_axis(y)
}

/// An axis of numbers, named and divided as `axis` says.
pub(crate) fn numbers(axis: &Axis) -> layout::Axis {
    let shown = named(axis).separate_thousands(true);
    if axis.is_logarithmic() {
        // More than four would crowd each other between two powers of ten.
        shown.type_(AxisType::Log).exponent_format(ExponentFormat::Power).n_ticks(4)
    } else {
        shown.type_(AxisType::Linear).exponent_format(ExponentFormat::None)
    }
}

/// An axis that only has its name yet.
pub(crate) fn named(axis: &Axis) -> layout::Axis {
    layout::Axis::new()
        .title(Title::with_text(escape::plot(&axis.title())))
        .auto_margin(true)
        .zero_line(false)
        // Invisible ticks keep the labels away from the marks.
        .ticks(TicksDirection::Outside)
        .tick_length(6)
        .tick_color(clear())
}

fn clear() -> Rgba {
    Rgba::new(0, 0, 0, 0.0)
}

/// The lowest and the highest of these, if there are any.
pub(crate) fn ends(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    values.clone().reduce(f64::min).zip(values.reduce(f64::max))
}

/// The buttons for reading and saving a plot, no advertisement, and the page's width.
pub(crate) fn configuration() -> Configuration {
    let image = ToImageButtonOptions::new().format(ImageButtonFormats::Svg).filename("plot");
    Configuration::new()
        .responsive(true)
        .display_logo(false)
        .typeset_math(false)
        .display_mode_bar(DisplayModeBar::Hover)
        .mode_bar_buttons_to_remove(vec![
            ModeBarButtonName::Select2d,
            ModeBarButtonName::Lasso2d,
            ModeBarButtonName::AutoScale2d,
        ])
        .to_image_button_options(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two backgrounds of `style.css`.
    fn backgrounds() -> Vec<(u8, u8, u8)> {
        let style = include_str!("style.css");
        let hex = |text: &str| u8::from_str_radix(text, 16).expect("two digits");
        let after = style.split("--page: #").skip(1);
        after.map(|text| (hex(&text[..2]), hex(&text[2..4]), hex(&text[4..6]))).collect()
    }

    /// Relative luminance as WCAG 2.1 defines it.
    fn luminance((red, green, blue): (u8, u8, u8)) -> f64 {
        let linear = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    fn contrast(one: (u8, u8, u8), other: (u8, u8, u8)) -> f64 {
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }

    #[test]
    fn marks_are_seen_on_light_and_on_dark_pages() {
        assert!((contrast((0, 0, 0), (255, 255, 255)) - 21.0).abs() < 1e-9);
        let backgrounds = backgrounds();
        assert_eq!(backgrounds.len(), 2, "light and dark");
        for page in backgrounds {
            for mark in MARKS {
                let contrast = contrast(mark, page);
                assert!(contrast >= 3.0, "{mark:x?} on {page:x?}: {contrast:.2}");
            }
        }
    }
}
