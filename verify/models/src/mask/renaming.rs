//! Symmetry: IDs, markers and drainers are interchangeable; no step treats any of them by its
//! number.

use super::protocol::Mask;
use super::state::{Data, DrainStep, Drainer, Id, Marker, Set, State};
use crate::symmetry::{orders, rename_set, sorting_orders};

/// Returns the least state among those renamings of `state` that put the markers in order.
pub(super) fn representative(mask: &Mask, state: &State) -> State {
    let names = orders(mask.ids)
        .iter()
        .flat_map(|ids| orders(mask.drainers).iter().map(move |drainers| (ids, drainers)));
    let renamed = names.flat_map(|(ids, drainers)| {
        let renaming = Renaming { mask, ids, drainers };
        let markers = state.markers.map(|marker| renaming.marker(marker));
        sorting_orders(mask.markers, markers)
            .map(move |order| renaming.state(state, &markers, order))
    });
    renamed.min().expect("some order sorts the markers")
}

/// New names for IDs and drainers.
#[derive(Clone, Copy)]
struct Renaming<'a> {
    mask: &'a Mask,
    ids: &'a [u8; 3],
    drainers: &'a [u8; 3],
}

impl Renaming<'_> {
    /// Returns the renamed state. `markers` are those of `state`, renamed, and get new places by
    /// `order`.
    fn state(&self, state: &State, markers: &[Marker; 3], order: &[u8; 3]) -> State {
        let mut renamed = *state;
        renamed.mask = rename_set(state.mask, self.ids);
        for (old, marker) in markers.iter().enumerate() {
            renamed.markers[usize::from(order[old])] = *marker;
        }
        for (old, drainer) in state.drainers.iter().enumerate() {
            renamed.drainers[usize::from(self.drainers[old])] = self.drainer(drainer, order);
        }
        renamed
    }

    fn marker(&self, marker: Marker) -> Marker {
        let mut renamed = marker;
        if let Some(mark) = &mut renamed.mark {
            mark.id = self.id(mark.id);
            mark.found = rename_set(mark.found, self.ids);
        }
        renamed.early = marker.early.map(|word| rename_set(word, self.ids));
        for publication in renamed.buffer.iter_mut() {
            publication.id = self.id(publication.id);
            publication.data = self.data(publication.data);
        }
        for (id, data) in (0..).zip(marker.visible) {
            renamed.visible[usize::from(self.id(id))] = data.map(|data| self.data(data));
        }
        renamed
    }

    fn drainer(&self, drainer: &Drainer, markers: &[u8; 3]) -> Drainer {
        let done = match drainer.step {
            Some(DrainStep::Membarrier) => rename_set(drainer.done, markers),
            _ => self.words(drainer.done),
        };
        let [left, blind] = [drainer.left, drainer.blind].map(|set| rename_set(set, self.ids));
        Drainer { done, left, blind, ..*drainer }
    }

    /// Renames words with their IDs if every ID has a word of its own.
    fn words(&self, words: Set) -> Set {
        if self.mask.words == 1 { words } else { rename_set(words, self.ids) }
    }

    fn data(&self, data: Data) -> Data {
        Data { owed: rename_set(data.owed, self.drainers), ..data }
    }

    fn id(&self, id: Id) -> Id {
        self.ids[usize::from(id)]
    }
}
