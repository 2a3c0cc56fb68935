//! Memory whose pages are not the size that they had when it was registered, or not the small one.

use std::fs;

use super::Outcome;
use super::following::{BYTES, Scene};
use crate::numa::area::{Area, HUGE, Pages};

const SWITCH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// Folios of 64 KiB, since Linux 6.8, and how many were made, since 6.10.
const MIDDLE: &str = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB";
const MIDDLE_BYTES: usize = 64 << 10;

/// Checks small pages that become huge ones while they are registered as small ones.
pub(super) fn collapsed() -> Outcome {
    let huge = Area::on(&[0], HUGE, Pages::Huge);
    if let Err(why) = huge {
        return Ok(Some(why));
    }
    drop(huge);
    let scene = Scene::new(Area::new(2 * HUGE)?)?;
    scene.rests()?;
    scene.area.prefer_huge_pages();
    if let Err(why) = scene.area.collapse() {
        return Ok(Some(format!("the kernel collapses nothing when told to: {why}")));
    }
    let huge = scene.area.huge_bytes();
    if huge < scene.area.bytes() {
        return Err(format!("{huge} bytes are huge"));
    }
    scene.rests()?;
    scene.follows()?;
    Ok(None)
}

/// Checks that memory in folios of 16 pages, which only move as a whole, follows as small pages do.
pub(super) fn middle_sized() -> Outcome {
    let Ok(before) = made() else {
        return Ok(Some("the kernel does not count them".to_owned()));
    };
    for (switch, value) in [(SWITCH, "never"), (&format!("{MIDDLE}/enabled"), "always")] {
        fs::write(switch, value).map_err(|error| format!("{switch}: {error}"))?;
    }
    let scene = Scene::new(Area::of_any_pages(BYTES)?)?;
    let folios = made()? - before;
    if folios < BYTES / MIDDLE_BYTES {
        return Err(format!("{folios} folios of {}", BYTES / MIDDLE_BYTES));
    }
    scene.rests()?;
    scene.follows()?;
    Ok(None)
}

fn made() -> Result<usize, String> {
    let path = format!("{MIDDLE}/stats/anon_fault_alloc");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    text.trim().parse().map_err(|_| format!("{path}: {text}"))
}
