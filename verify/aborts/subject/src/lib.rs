//! What the program that is interrupted and the program that interrupts it agree on: the board, a
//! page of memory that both map, and what is written there.

pub mod bell;
pub mod board;
pub mod fault;
pub mod operation;
pub mod party;

pub use fault::Fault;
pub use operation::Operation;
pub use party::Party;
