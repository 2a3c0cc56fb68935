//! A balancer with other constants or rules than the published ones.

use crate::balancer::Balancer;
use percid_rules::scan::Rules;
use percid_rules::scan::{BadSetting, Settings};

/// Makes a [`Balancer`]; see [`Balancer::builder`].
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    settings: Settings,
    rules: Rules,
}

impl Builder {
    /// Uses these constants instead of the published ones.
    ///
    /// ```
    /// use std::time::Duration;
    /// use percid_numa::{Balancer, Settings};
    ///
    /// let quick = Settings { period_min: Duration::from_millis(100), ..Settings::default() };
    /// let balancer = Balancer::builder().settings(quick).build()?;
    /// assert_eq!(balancer.report().period, Duration::from_millis(100));
    /// # Ok::<(), percid_numa::BadSetting>(())
    /// ```
    pub fn settings(self, settings: Settings) -> Builder {
        Builder { settings, ..self }
    }

    /// Uses the rules of another kernel release than Linux 6.12.
    ///
    /// ```
    /// use percid_numa::{Balancer, Rules};
    ///
    /// let as_in_linux_6_6 = Balancer::builder().rules(Rules::BASE).build()?;
    /// assert_eq!(as_in_linux_6_6.report().passes, 0);
    /// # Ok::<(), percid_numa::BadSetting>(())
    /// ```
    pub fn rules(self, rules: Rules) -> Builder {
        Builder { rules, ..self }
    }

    /// Makes the balancer. It has no regions, and no thread.
    ///
    /// # Errors
    ///
    /// The setting that cannot be used.
    ///
    /// ```
    /// use percid_numa::{BadSetting, Balancer, Settings};
    ///
    /// let nothing = Settings { batch: 0, ..Settings::default() };
    /// let refused = Balancer::builder().settings(nothing).build();
    /// assert_eq!(refused.err(), Some(BadSetting::Zero("batch")));
    /// ```
    pub fn build(self) -> Result<Balancer, BadSetting> {
        self.settings.check()?;
        Ok(Balancer::build(self.settings, self.rules))
    }
}
