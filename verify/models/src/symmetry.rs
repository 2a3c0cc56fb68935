//! Renamings of up to three like things.

use std::cmp::Ordering;

/// Every order of three: `ORDERS[i][old] = new`. Those of fewer come first.
const ORDERS: [[u8; 3]; 6] = [[0, 1, 2], [1, 0, 2], [0, 2, 1], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Returns every order of a number of things.
pub(crate) fn orders(things: u8) -> &'static [[u8; 3]] {
    match things {
        0 | 1 => &ORDERS[..1],
        2 => &ORDERS[..2],
        _ => &ORDERS,
    }
}

/// Renames a set of things, one bit each.
pub(crate) fn rename_set(set: u8, order: &[u8]) -> u8 {
    (0..order.len())
        .filter(|member| set & 1 << member != 0)
        .fold(0, |renamed, member: usize| renamed | 1 << order[member])
}

/// Returns the orders of the first `things` of `keys` that sort them.
///
/// With keys that no renaming changes, only these orders can lead to the representative; most
/// states leave one or two.
pub(crate) fn sorting_orders<K: Copy + Ord>(
    things: u8,
    keys: [K; 3],
) -> impl Iterator<Item = &'static [u8; 3]> {
    orders(things).iter().filter(move |order| {
        let mut sorted = keys;
        (0..keys.len()).for_each(|old| sorted[usize::from(order[old])] = keys[old]);
        sorted[..usize::from(things)].is_sorted()
    })
}

/// Returns the least state among the renamings of one.
///
/// `head` is compared first in the order of states: only the renamings that make it least are
/// computed in full.
pub(crate) fn least<R, H: Ord, S: Ord>(
    renamings: impl Iterator<Item = R>,
    head: impl Fn(&R) -> H,
    full: impl Fn(&R) -> S,
) -> S {
    let (mut best, mut least): (Vec<R>, Option<H>) = (Vec::new(), None);
    for renaming in renamings {
        let head = head(&renaming);
        match least.as_ref().map_or(Ordering::Less, |least| head.cmp(least)) {
            Ordering::Greater => continue,
            Ordering::Less => {
                best.clear();
                least = Some(head);
            }
            Ordering::Equal => {}
        }
        best.push(renaming);
    }
    best.iter().map(full).min().expect("there is a renaming at least")
}
