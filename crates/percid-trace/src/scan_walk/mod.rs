//! Replays the walks of the kernel's NUMA scan under other rules. The result is what each would
//! have scanned and left out of the same regions, at the same passes, with the same users.
//!
//! [`walks`] makes of a trace a [`Walk`] for each process that was scanned; [`replay`] applies a
//! [`RuleSet`] to it. If the rules are those of the recorded kernel, both must yield the same
//! lines. That check validates everything else ([`Agreement`]).
//!
//! The content of a walk depends on how it was recorded ([`Source`]). With probes it has every
//! pass, what was armed and which thread used it. Without probes, a pass consists of what one
//! thread left out in one go. The offset at which the next pass begins shows that the memory in
//! between was scanned. The users of a region are taken to be those whose passes did not leave it
//! out.

mod costs;
mod replay;
mod rule_sets;
mod walk;
mod walks;

pub use costs::{Costs, Placed, Times};
pub use replay::{Agreement, Difference, Replayed, Tally, kernel, replay};
pub use rule_sets::{RULE_SETS, RuleSet, of_release};
pub use walk::{Inferred, Line, Pass, Region, Source, Walk, WalkStep};
pub use walks::walks;
