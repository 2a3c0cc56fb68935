//! The tests of this crate, in one program: linked once.

mod arguments;
mod bench;
mod info;
mod interrupt;
mod kernel_ids;
mod load;
mod numa;
mod percid;
mod reports;
mod sim;
mod sim_check;
mod sim_numa;
mod sim_page;
mod sim_sweep;
