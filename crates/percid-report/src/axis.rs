//! What an axis shows, and in which unit.

/// One axis of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    name: String,
    unit: Option<String>,
    logarithmic: bool,
}

impl Axis {
    /// A linear axis of something that is counted or named and has no unit.
    pub fn new(name: impl Into<String>) -> Self {
        Axis { name: name.into(), unit: None, logarithmic: false }
    }

    /// The unit of all its values, such as `ns`.
    pub fn unit(self, unit: impl Into<String>) -> Self {
        Axis { unit: Some(unit.into()), ..self }
    }

    /// With powers of ten at equal distances. What is not above 0 is not drawn, and the chart says
    /// so.
    pub fn logarithmic(self) -> Self {
        Axis { logarithmic: true, ..self }
    }

    pub(crate) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// The name, and the unit in parentheses.
    pub(crate) fn title(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{} ({unit})", self.name),
            None => self.name.clone(),
        }
    }

    /// Beneath or beside the drawing: the title, and that the axis is logarithmic.
    pub(crate) fn caption(&self) -> String {
        let note = if self.logarithmic { ", logarithmic" } else { "" };
        format!("{}{note}", self.title())
    }

    /// What stands behind a number: a space and the unit, or nothing.
    pub(crate) fn suffix(&self) -> String {
        self.unit.as_ref().map(|unit| format!(" {unit}")).unwrap_or_default()
    }

    pub(crate) fn can_show(&self, value: f64) -> bool {
        value.is_finite() && (value > 0.0 || !self.logarithmic)
    }
}
