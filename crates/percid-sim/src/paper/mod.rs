//! The published tables beside the simulated ones.

pub mod bounds;
pub mod cross_validation;
pub mod findings;
pub mod fit;
pub mod intermittent;
pub mod minimise;
pub mod prediction;
pub mod predictions;
pub mod sensitivity;
pub mod setting;
pub mod table;
