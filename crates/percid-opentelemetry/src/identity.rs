//! The identity of an instrument, and its validation.

use std::borrow::Cow;

use crate::error::Error;

/// The specification's limits, in bytes.
const LONGEST_NAME: usize = 255;
const LONGEST_UNIT: usize = 63;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) name: Cow<'static, str>,
    pub(crate) description: Cow<'static, str>,
    pub(crate) unit: Cow<'static, str>,
}

impl Identity {
    pub(crate) fn new(
        name: Cow<'static, str>,
        description: Option<Cow<'static, str>>,
        unit: Option<Cow<'static, str>>,
    ) -> Result<Identity, Error> {
        let identity = Identity {
            name,
            description: description.unwrap_or_default(),
            unit: unit.unwrap_or_default(),
        };
        if !identity.has_valid_name() {
            return Err(Error::Name(identity.name.into_owned()));
        }
        if identity.unit.len() > LONGEST_UNIT || !identity.unit.is_ascii() {
            let (name, unit) = (identity.name.into_owned(), identity.unit.into_owned());
            return Err(Error::Unit { name, unit });
        }
        Ok(identity)
    }

    fn has_valid_name(&self) -> bool {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
        self.name.starts_with(|c: char| c.is_ascii_alphabetic())
            && self.name.len() <= LONGEST_NAME
            && self.name.chars().all(is_allowed)
    }

    /// Returns `true` if the names are equal. ASCII case is ignored.
    pub(crate) fn has_name_of(&self, other: &Identity) -> bool {
        self.name.eq_ignore_ascii_case(&other.name)
    }

    pub(crate) fn is_same(&self, other: &Identity) -> bool {
        self.has_name_of(other) && self.description == other.description && self.unit == other.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Result<Identity, Error> {
        Identity::new(name.to_owned().into(), None, None)
    }

    #[test]
    fn names_are_as_the_specification_wants_them() {
        let longest = "a".repeat(255);
        for name in ["a", "http.server/request-duration_s", "A0", &longest] {
            assert!(named(name).is_ok(), "{name}");
        }
        let too_long = "a".repeat(256);
        for name in ["", "0a", "_a", "a b", "ä", "a\n", &too_long] {
            assert_eq!(named(name), Err(Error::Name(name.to_owned())));
        }
    }

    #[test]
    fn units_are_short_and_ascii() {
        let with_unit = |unit: &str| Identity::new("a".into(), None, Some(unit.to_owned().into()));
        assert!(with_unit("").is_ok() && with_unit("{request}/s").is_ok());
        assert!(with_unit(&"s".repeat(63)).is_ok());
        assert!(with_unit("µs").is_err() && with_unit(&"s".repeat(64)).is_err());
    }

    #[test]
    fn capitals_make_no_other_name() {
        let [one, other] = ["Requests", "requests"].map(|name| named(name).expect("a name"));
        assert!(one.is_same(&other));
        let described = Identity { description: "for".into(), ..other.clone() };
        assert!(one.has_name_of(&described) && !one.is_same(&described));
        assert!(!one.is_same(&named("another").expect("a name")));
        let with_unit = Identity { unit: "s".into(), ..other };
        assert!(one.has_name_of(&with_unit) && !one.is_same(&with_unit));
    }
}
