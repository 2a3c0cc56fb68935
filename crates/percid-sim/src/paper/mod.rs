//! The published tables beside the simulated ones.

pub mod accounts;
pub mod basis;
pub mod bounds;
pub mod cross_validation;
pub mod findings;
pub mod fit;
pub mod inputs;
pub mod intermittent;
pub mod leave_one_out;
pub mod minimise;
pub mod prediction;
pub mod predictions;
pub mod sensitivity;
pub mod setting;
pub mod table;
pub mod walk;
