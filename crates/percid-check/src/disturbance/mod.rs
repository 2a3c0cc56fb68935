//! The disturbances of the second part.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))))]
mod elsewhere;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod linux;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod signals;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere))))]
pub(crate) use elsewhere::Disturbances;
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
pub(crate) use linux::Disturbances;
