//! Replays the walks of the kernel's NUMA scan under other rules: what would each have scanned and
//! left out of the same regions, at the same passes, with the same users?
//!
//! [`walks`] makes of a trace a [`Walk`] for each process that was scanned; [`replay`] lets a
//! [`RuleSet`] live through it. Where the rules are those of the kernel that was recorded, both
//! must say the same, line by line: that is the check of everything else ([`Agreement`]).
//!
//! What a trace tells of a walk depends on how it was recorded ([`Source`]). With probes it has
//! every pass, what was armed and who used it. Without, a pass is what one thread left out in one
//! go; that memory in between was scanned shows by the offset at which the next pass begins, and
//! the users of a region are taken to be those whose passes did not leave it out.

mod costs;
mod replay;
mod rule_sets;
mod walk;
mod walks;

pub use costs::{Costs, Placed, Times};
pub use replay::{Agreement, Difference, Replayed, Tally, kernel, replay};
pub use rule_sets::{RULE_SETS, RuleSet, of_release};
pub use walk::{Inferred, Line, Pass, Region, Source, Step, Walk};
pub use walks::walks;
