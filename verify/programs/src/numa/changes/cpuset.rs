//! Nodes that a cpuset forbids.

use std::ffi::CString;
use std::fs;
use std::io;

use super::Outcome;
use super::following::{BYTES, Scene, Two};
use crate::numa::area::Area;

const ROOT: &str = "/percid-cgroups";

/// Checks that memory does not move to a node that the process may not use, and that the balancer
/// neither fails nor gives up: as soon as the node is permitted, the memory moves.
pub(super) fn forbidden_for_a_time() -> Outcome {
    let group = match Group::join() {
        Ok(group) => group,
        Err(why) => return Ok(Some(why)),
    };
    let two = Two::of_this_machine();
    let both = format!("{},{}", two.home.0, two.user.0);
    group.permit(&both)?;
    let scene = Scene::new(Area::new(BYTES)?)?;
    group.permit(&two.home.0.to_string())?;
    scene.stays()?;
    group.permit(&both)?;
    scene.follows()?;
    // And for memory that is registered while the node is forbidden.
    group.permit(&two.home.0.to_string())?;
    let later = Scene::new(Area::new(BYTES)?)?;
    later.stays()?;
    group.permit(&both)?;
    later.follows()?;
    Ok(None)
}

/// A control group whose only process is this one.
#[derive(Debug)]
struct Group(String);

impl Group {
    fn join() -> Result<Group, String> {
        let place = CString::new(ROOT).map_err(|error| error.to_string())?;
        let kind = c"cgroup2".as_ptr();
        fs::create_dir_all(ROOT).map_err(|error| format!("{ROOT}: {error}"))?;
        // SAFETY: all texts end with a zero; the kind has no options.
        if unsafe { libc::mount(kind, place.as_ptr(), kind, 0, std::ptr::null()) } != 0 {
            return Err(format!("{ROOT}: {}", io::Error::last_os_error()));
        }
        let group = Group(format!("{ROOT}/changes"));
        fs::create_dir_all(&group.0).map_err(|error| format!("{}: {error}", group.0))?;
        write(&format!("{ROOT}/cgroup.subtree_control"), "+cpuset")?;
        write(&format!("{}/cgroup.procs", group.0), &std::process::id().to_string())?;
        Ok(group)
    }

    /// Restricts the process's memory to these nodes from now on.
    fn permit(&self, nodes: &str) -> Result<(), String> {
        write(&format!("{}/cpuset.mems", self.0), nodes)
    }
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}
