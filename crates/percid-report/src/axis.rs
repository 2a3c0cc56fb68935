//! Name and unit of an axis.

/// One axis of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    name: String,
    unit: Option<String>,
    logarithmic: bool,
}

impl Axis {
    /// Creates a linear axis of a counted or named quantity without a unit.
    pub fn new(name: impl Into<String>) -> Self {
        Axis { name: name.into(), unit: None, logarithmic: false }
    }

    /// Sets the unit of all its values, such as `ns`.
    pub fn unit(self, unit: impl Into<String>) -> Self {
        Axis { unit: Some(unit.into()), ..self }
    }

    /// Makes the axis logarithmic, with powers of ten at equal distances. Values that are not above
    /// 0 are not drawn, and the chart reports that.
    pub fn logarithmic(self) -> Self {
        Axis { logarithmic: true, ..self }
    }

    pub(crate) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// Returns the name, and the unit in parentheses.
    pub(crate) fn title(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{} ({unit})", self.name),
            None => self.name.clone(),
        }
    }

    /// Returns the caption beneath or beside the drawing: the title, and a note on a logarithmic
    /// axis.
    pub(crate) fn caption(&self) -> String {
        let note = if self.logarithmic { ", logarithmic" } else { "" };
        format!("{}{note}", self.title())
    }

    /// Returns the text after a number: a space and the unit, or nothing.
    pub(crate) fn suffix(&self) -> String {
        self.unit.as_ref().map(|unit| format!(" {unit}")).unwrap_or_default()
    }

    pub(crate) fn can_show(&self, value: f64) -> bool {
        value.is_finite() && (value > 0.0 || !self.logarithmic)
    }
}
