//! The state of a balancer on a system without regions.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use percid_rules::scan::{Rules, Settings};

use super::unsupported;
use crate::access_method::AccessMethod;
use crate::done::{Batch, Pass};
use crate::error::RegisterError;
use crate::report::Report;
use crate::report::event::Event;

#[derive(Debug)]
pub(crate) struct Inner {
    settings: Settings,
    began: Instant,
}

impl Inner {
    pub(crate) fn new(settings: Settings, _rules: Rules) -> Inner {
        Inner { settings, began: Instant::now() }
    }

    pub(crate) fn has_nodes(&self) -> bool {
        false
    }

    /// Returns `false`: without regions, a `fork` affects nothing.
    pub(crate) fn is_forked(&self) -> bool {
        false
    }

    pub(crate) fn is_active(&self) -> bool {
        false
    }

    pub(crate) fn register(
        &self,
        _start: *const u8,
        _bytes: usize,
        _access: AccessMethod,
    ) -> Result<Infallible, RegisterError> {
        Err(RegisterError::UnsupportedPlatform)
    }

    pub(crate) fn pass(&self) -> Pass {
        Pass::default()
    }

    pub(crate) fn move_batch(&self) -> Batch {
        Batch::default()
    }

    pub(crate) fn take_events(&self) -> Vec<Event> {
        Vec::new()
    }

    pub(crate) fn report(&self) -> Report {
        let (period, age) = (self.settings.period_min, self.began.elapsed());
        Report { period, age, ..Report::default() }
    }
}

/// The type of the background thread, which is never started here.
#[derive(Debug)]
pub(crate) enum Background {}

impl Background {
    pub(crate) fn start(_inner: Arc<Inner>) -> io::Result<Background> {
        Err(unsupported())
    }
}
