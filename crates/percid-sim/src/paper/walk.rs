//! A walk over all inputs of a simulated published table: each is halved and doubled, and nothing is
//! fitted again. An input that moves a cell must be on a list that names what it rests on.

use rayon::prelude::*;
use serde::Serialize;

use super::basis::{Basis, Listed};
use crate::run_control::RunControl;

/// Change of a cell, as a share, above which an input must be on the list.
pub const MATTERS: f64 = 0.05;

/// The factors by which inputs are moved.
const FACTORS: [f64; 2] = [0.5, 2.0];

/// Difference of the seeds of two simulations that share none of the seeds of their runs.
const OTHER_SEED: u64 = 1 << 40;

/// An input of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Its name in a file or in the code.
    pub name: String,
    /// Its value, for readers.
    pub value: String,
    /// The source of the value; empty if the list has it.
    pub origin: String,
}

/// A table with all its inputs.
pub trait Inputs: Sized + Sync + Send {
    /// Returns all inputs.
    fn inputs(&self) -> Vec<Input>;

    /// Returns the table with one input multiplied by a factor. A choice without a number changes
    /// to another one at the factor 2. Returns `None` if the table cannot be simulated so, or if
    /// nothing would change.
    fn moved(&self, name: &str, factor: f64) -> Option<Self>;

    /// Simulates all cells, and returns their names and values. Returns `None` if it was stopped.
    fn cells(&self, seed: u64, progress: &RunControl) -> Option<Vec<(String, f64)>>;

    /// Returns the amount of work that one call of [`Inputs::cells`] reports as done.
    fn work(&self) -> u64;
}

/// The cell that changed most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Name of the cell.
    pub cell: String,
    /// Change of the cell, as a share of its value before; infinite if that was 0.
    pub change: f64,
}

/// An input that was moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// Its name in a file or in the code.
    pub name: String,
    /// Its value, for readers.
    pub value: String,
    /// The basis of the input; `None` if it is not on the list.
    pub basis: Option<Basis>,
    /// The source of the value.
    pub origin: String,
    /// The cell that changes most if the input is half as large; `None` if it cannot be.
    pub halved: Option<Change>,
    /// The cell that changes most if the input is twice as large, or another choice; `None` if it
    /// cannot be.
    pub doubled: Option<Change>,
    /// `true` if a cell changes by more than [`MATTERS`].
    pub matters: bool,
}

/// All inputs of a table, with the effects of moving them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Walk {
    /// Number of cells of the table.
    pub cells: usize,
    /// The cell that changes most with another seed: the effect of chance.
    pub chance: Change,
    /// The inputs; those that rest on least come first, and of these the ones that move most.
    pub inputs: Vec<Moved>,
}

impl Walk {
    /// Returns the inputs that move a cell by more than [`MATTERS`] and are not on the list.
    pub fn unlisted(&self) -> Vec<&str> {
        let unlisted = self.inputs.iter().filter(|input| input.matters && input.basis.is_none());
        unlisted.map(|input| input.name.as_str()).collect()
    }

    /// Returns the number of inputs that move a cell and rest on this.
    pub fn count(&self, basis: Basis) -> usize {
        let counts = |input: &&Moved| input.matters && input.basis == Some(basis);
        self.inputs.iter().filter(counts).count()
    }
}

impl Moved {
    /// Returns the largest change of a cell, as a share; 0 if the input cannot be moved.
    pub fn largest(&self) -> f64 {
        let changes = [&self.halved, &self.doubled].into_iter().flatten();
        changes.map(|change| change.change.abs()).fold(0.0, f64::max)
    }
}

/// Returns the amount of work of [`walk`] over all inputs.
pub fn work(table: &impl Inputs) -> u64 {
    (2 + FACTORS.len() as u64 * table.inputs().len() as u64) * table.work()
}

/// Moves all inputs of a table, or only some if `only` names any. Returns `None` if it was stopped.
pub fn walk<T: Inputs>(
    table: &T,
    list: &[Listed],
    only: &[&str],
    seed: u64,
    progress: &RunControl,
) -> Option<Walk> {
    let before = table.cells(seed, progress)?;
    let other = table.cells(seed ^ OTHER_SEED, progress)?;
    let mut inputs = table.inputs();
    inputs.retain(|input| only.is_empty() || only.contains(&input.name.as_str()));
    let moved = inputs.into_par_iter().map(|input| {
        let change = |factor: f64| {
            let Some(moved) = table.moved(&input.name, factor) else { return Some(None) };
            let after = moved.cells(seed, progress)?;
            Some(Some(largest(&before, &after)))
        };
        let [halved, doubled] = FACTORS.map(change);
        Some(entry(input, list, halved?, doubled?))
    });
    let moved: Option<Vec<Moved>> = moved.collect();
    let mut inputs = moved?;
    let rank = |input: &Moved| input.basis.map_or(0, |basis| 1 + basis as u8);
    inputs.sort_by(|one, other| {
        rank(one).cmp(&rank(other)).then(other.largest().total_cmp(&one.largest()))
    });
    Some(Walk { cells: before.len(), chance: largest(&before, &other), inputs })
}

fn entry(input: Input, list: &[Listed], halved: Option<Change>, doubled: Option<Change>) -> Moved {
    let Input { name, value, origin } = input;
    let listed = list.iter().find(|listed| listed.name == name);
    let origin = match listed {
        Some(listed) if !listed.origin.is_empty() => listed.origin.to_owned(),
        _ => origin,
    };
    let basis = listed.map(|listed| listed.basis);
    let mut moved = Moved { name, value, basis, origin, halved, doubled, matters: false };
    moved.matters = moved.largest() > MATTERS;
    moved
}

/// Returns the cell that changed most.
fn largest(before: &[(String, f64)], after: &[(String, f64)]) -> Change {
    let change = |((cell, before), (_, after)): (&(String, f64), &(String, f64))| {
        let change = if before == after { 0.0 } else { (after - before) / before.abs() };
        Change { cell: cell.clone(), change }
    };
    let changes = before.iter().zip(after).map(change);
    let largest = changes.max_by(|one, other| one.change.abs().total_cmp(&other.change.abs()));
    largest.unwrap_or(Change { cell: String::new(), change: 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of two cells with four inputs.
    #[derive(Clone)]
    struct Invented([f64; 4]);

    const NAMES: [&str; 4] = ["strong", "weak", "unused", "fixed"];

    impl Inputs for Invented {
        fn inputs(&self) -> Vec<Input> {
            let input = |(name, value): (&&str, &f64)| Input {
                name: (*name).to_owned(),
                value: value.to_string(),
                origin: "a test".to_owned(),
            };
            NAMES.iter().zip(&self.0).map(input).collect()
        }

        fn moved(&self, name: &str, factor: f64) -> Option<Invented> {
            let at = NAMES[..3].iter().position(|known| *known == name)?;
            let mut moved = self.clone();
            moved.0[at] *= factor;
            Some(moved)
        }

        fn cells(&self, seed: u64, _: &RunControl) -> Option<Vec<(String, f64)>> {
            let [strong, weak, ..] = self.0;
            let chance = if seed == 1 { 0.0 } else { 0.03 };
            Some(vec![
                ("constant".to_owned(), 7.0),
                ("sum".to_owned(), strong + 0.04 * weak + chance),
            ])
        }

        fn work(&self) -> u64 {
            1
        }
    }

    fn walked(list: &[Listed]) -> Walk {
        let table = Invented([0.96, 1.0, 1.0, 1.0]);
        walk(&table, list, &[], 1, &RunControl::default()).expect("nobody stops it")
    }

    #[test]
    fn an_input_that_moves_a_cell_must_be_on_the_list() {
        let listed = [Listed::new("strong", Basis::Assumed, "")];
        let walk = walked(&listed);
        assert_eq!(walk.unlisted(), [] as [&str; 0]);
        assert_eq!((walk.cells, walk.count(Basis::Assumed), walk.count(Basis::Fitted)), (2, 1, 0));
        assert_eq!(walked(&[]).unlisted(), ["strong"], "weak and unused move too little");
    }

    #[test]
    fn the_cell_that_changes_most_is_named() {
        let walk = walked(&[]);
        let of = |name: &str| walk.inputs.iter().find(|input| input.name == name).expect("walked");
        let doubled = of("strong").doubled.as_ref().expect("it can be doubled");
        assert!(doubled.cell == "sum" && (doubled.change - 0.96).abs() < 1e-9, "{doubled:?}");
        assert_eq!((of("fixed").halved.as_ref(), of("fixed").matters), (None, false));
        assert_eq!(of("unused").largest(), 0.0);
        assert!((walk.chance.change - 0.03).abs() < 1e-9, "{:?}", walk.chance);
    }

    #[test]
    fn a_cell_that_was_zero_changes_without_bound() {
        let cell = |value| [("cell".to_owned(), value)];
        assert_eq!(largest(&cell(0.0), &cell(1.0)).change, f64::INFINITY);
        assert_eq!(largest(&cell(0.0), &cell(0.0)).change, 0.0);
    }
}
