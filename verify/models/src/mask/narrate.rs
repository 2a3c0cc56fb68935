//! Steps and states in words.

use super::protocol::{Action, Mask};
use super::state::{DrainStep, Id, MarkStep, Marker, Set, State};

/// Returns the actor of `action` in `before`, and a description of the step.
pub(super) fn narrate(mask: &Mask, before: &State, action: Action) -> (String, String) {
    match action {
        Action::Mark(nr, id) => {
            let mut begun = *before;
            begun.markers[nr].mark = Some(mask.marking.first(id));
            (marker(nr), format!("begins to mark {id}: {}", mark_step(mask, &begun, nr)))
        }
        Action::Marker(nr) => (marker(nr), mark_step(mask, before, nr)),
        Action::Early(nr) => {
            (marker(nr), format!("the load of its next test is performed: {}", set(before.mask)))
        }
        Action::Flush(nr, index) => {
            let publication = before.markers[nr].buffer.iter().nth(index);
            let id = publication.map_or(Id::MAX, |publication| publication.id);
            (marker(nr), format!("its data for {id} becomes visible"))
        }
        Action::Drain(nr) => (drainer(nr), "begins to drain".into()),
        Action::Drainer(nr, part) => (drainer(nr), drain_step(mask, before, nr, part)),
        Action::Read(nr, id) => (drainer(nr), format!("its load of data {id} is performed: none")),
    }
}

fn marker(nr: usize) -> String {
    format!("marker{nr}")
}

fn drainer(nr: usize) -> String {
    format!("drainer{nr}")
}

fn mark_step(mask: &Mask, before: &State, nr: usize) -> String {
    let marker = &before.markers[nr];
    let Some(mark) = marker.mark else { return String::new() };
    let id = mark.id;
    match mark.step {
        MarkStep::Publish => format!("store data for {id}"),
        MarkStep::Fence => "full barrier".into(),
        MarkStep::Test => {
            let word = marker.early.unwrap_or(before.mask) & mask.word_of(id);
            let outcome = if word & 1 << id == 0 { "clear" } else { "set" };
            let early = if marker.early.is_some() { ", from an early load" } else { "" };
            format!("test bit {id}: {outcome}{early}")
        }
        MarkStep::Set => format!("fetch_or bit {id}"),
        MarkStep::Store => format!("store word {}", set(mark.found | 1 << id)),
    }
}

fn drain_step(mask: &Mask, before: &State, nr: usize, part: u8) -> String {
    let drainer = &before.drainers[nr];
    let word = set(before.mask & mask.word(part.min(mask.words - 1)));
    match drainer.step {
        None => String::new(),
        Some(DrainStep::Take) => format!("swap word {part} with zero: {word}"),
        Some(DrainStep::Look) => format!("load word {part}: {word}"),
        Some(DrainStep::Clear) => format!("store zero to word {part}"),
        Some(DrainStep::Membarrier) => format!("membarrier reaches marker{part}"),
        Some(DrainStep::Fence) => "full barrier".into(),
        Some(DrainStep::Visit) => {
            let bit = 1 << part;
            let seen = |marker: &Marker| marker.visible[usize::from(part)].is_some();
            let finds = drainer.blind & bit == 0 && before.markers.iter().any(seen);
            format!("visit {part}: {}", if finds { "data" } else { "nothing there" })
        }
    }
}

fn set(members: Set) -> String {
    let members: Vec<String> =
        (0..Id::BITS).filter(|id| members & 1 << id != 0).map(|id| id.to_string()).collect();
    format!("{{{}}}", members.join(" "))
}

/// Returns the state on one line: the mask, the publications of each marker, the IDs that the
/// drains will visit.
pub(super) fn picture(mask: &Mask, state: &State) -> String {
    let markers = state.markers[..usize::from(mask.markers)].iter().map(|marker| {
        let visible = (0..).zip(marker.visible).filter(|(_, data)| data.is_some());
        let visible = visible.fold(0, |visible, (id, _): (Id, _)| visible | 1 << id);
        let waiting = marker.buffer.iter().fold(0, |waiting, data| waiting | 1 << data.id);
        format!("data {:5} waiting {:5}", set(visible), set(waiting))
    });
    let drainers = state.drainers[..usize::from(mask.drainers)].iter().map(|drainer| {
        let state = if drainer.step.is_some() { "draining" } else { "-" };
        format!("{state:8} {:5}", set(drainer.left))
    });
    let both: Vec<String> = markers.chain(drainers).collect();
    format!("| mask {:5} | {}", set(state.mask), both.join(" | "))
}
