//! The library's names in JSON: an access method, and counts by reason.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Returns the value with this name among all values.
fn named<T: ToString, E: Error>(all: impl IntoIterator<Item = T>, name: &str) -> Result<T, E> {
    let found = all.into_iter().find(|one| one.to_string() == name);
    found.ok_or_else(|| E::custom(format_args!("unknown name `{name}`")))
}

pub(super) mod access {
    use percid_numa::AccessMethod;

    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        method: &AccessMethod,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(method)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<AccessMethod, D::Error> {
        named(AccessMethod::ALL, &String::deserialize(from)?)
    }
}

pub(super) mod skipped {
    use std::collections::BTreeMap;

    use percid_numa::SkipReason;

    use super::*;

    type ReasonCounts = BTreeMap<SkipReason, u64>;

    pub(crate) fn serialize<S: Serializer>(
        counts: &ReasonCounts,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(counts.iter().map(|(reason, count)| (reason.name(), count)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<ReasonCounts, D::Error> {
        let counts = BTreeMap::<String, u64>::deserialize(from)?.into_iter();
        counts.map(|(name, count)| Ok((named(SkipReason::ALL, &name)?, count))).collect()
    }
}
