//! The program's descriptions of its metrics.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use metrics::{KeyName, SharedString, Unit};

use crate::page;

/// Descriptions by the name on the page. The last one of a name is used.
#[derive(Debug, Default)]
pub(super) struct Descriptions {
    by_name: RwLock<HashMap<String, Description>>,
}

#[derive(Debug, Clone)]
pub(super) struct Description {
    pub(super) unit: Option<Unit>,
    pub(super) text: SharedString,
}

impl Descriptions {
    pub(super) fn add(&self, key: KeyName, unit: Option<Unit>, text: SharedString) {
        let name = page::metric_name(key.as_str()).into_owned();
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        by_name.insert(name, Description { unit, text });
    }

    pub(super) fn get(&self, name: &str) -> Option<Description> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}
