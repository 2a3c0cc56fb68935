//! The interface between the program that is interrupted and the one that interrupts it: the board,
//! a page of memory that both map, and its contents.

pub mod bell;
pub mod board;
pub mod fault;
pub mod operation;
pub mod party;

pub use fault::Fault;
pub use operation::Operation;
pub use party::Party;
