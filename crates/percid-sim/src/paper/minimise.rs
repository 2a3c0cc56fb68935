//! Minimization of a function of a few numbers, without derivatives.

/// The minimum that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Least {
    /// Arguments of the minimum.
    pub at: Vec<f64>,
    /// The function's value there.
    pub value: f64,
}

/// Maximum difference between the values of a converged simplex.
const TOLERANCE: f64 = 1e-5;
/// Maximum number of steps of one simplex.
const STEPS: usize = 600;

/// Returns a local minimum near `start`, by the simplex search of Nelder and Mead ("A simplex
/// method for function minimization", 1965). It begins with a simplex with edges of length `edge`.
/// When that has converged, it repeats with edges a quarter as long around the best place, until
/// there is no improvement. The repetition is needed because a flat simplex can converge at a place
/// that is no minimum.
///
/// A value that is not a number counts as larger than all others.
pub fn minimise(start: &[f64], edge: f64, function: impl Fn(&[f64]) -> f64) -> Least {
    let at = |place: Vec<f64>| {
        let value = function(&place);
        Least { at: place, value: if value.is_nan() { f64::INFINITY } else { value } }
    };
    let mut best = at(start.to_vec());
    let mut edge = edge;
    loop {
        let found = rest(simplex(&best, edge, &at), STEPS, &at);
        let gained = best.value - found.value;
        if found.value < best.value {
            best = found;
        }
        if gained.is_nan() || gained <= TOLERANCE {
            return best;
        }
        edge /= 4.0;
    }
}

/// Returns the best place that one simplex finds near `start` in `steps` steps. It is for functions
/// that take long, and whose values are the less smooth the nearer the places are.
pub fn minimise_roughly(
    start: &[f64],
    edge: f64,
    steps: usize,
    function: impl Fn(&[f64]) -> f64,
) -> Least {
    let at = |place: Vec<f64>| {
        let value = function(&place);
        Least { at: place, value: if value.is_nan() { f64::INFINITY } else { value } }
    };
    rest(simplex(&at(start.to_vec()), edge, &at), steps, &at)
}

/// Returns a simplex: a place and, along each axis, a place one step away from it.
fn simplex(start: &Least, edge: f64, at: &impl Fn(Vec<f64>) -> Least) -> Vec<Least> {
    let away = |axis: usize| {
        let mut place = start.at.clone();
        place[axis] += edge;
        at(place)
    };
    std::iter::once(start.clone()).chain((0..start.at.len()).map(away)).collect()
}

/// Moves a simplex until it converges, and returns its best corner.
fn rest(mut corners: Vec<Least>, steps: usize, at: &impl Fn(Vec<f64>) -> Least) -> Least {
    for _ in 0..steps {
        corners.sort_by(|one, other| one.value.total_cmp(&other.value));
        let (best, worst) = (&corners[0], &corners[corners.len() - 1]);
        if worst.value - best.value <= TOLERANCE {
            break;
        }
        step(&mut corners, at);
    }
    corners.sort_by(|one, other| one.value.total_cmp(&other.value));
    corners.swap_remove(0)
}

/// Replaces the worst corner with a better one on the line through the middle of the others, or
/// contracts all corners towards the best one. The corners must be sorted.
fn step(corners: &mut [Least], at: &impl Fn(Vec<f64>) -> Least) {
    let last = corners.len() - 1;
    let (best, second, worst) = (corners[0].value, corners[last - 1].value, &corners[last]);
    let middle = middle(&corners[..last]);
    let along = |by: f64| at(between(&middle, &worst.at, by));
    let mirrored = along(-1.0);
    let better = if mirrored.value < best {
        let further = along(-2.0);
        Some(if further.value < mirrored.value { further } else { mirrored })
    } else if mirrored.value < second {
        Some(mirrored)
    } else {
        let nearer = along(if mirrored.value < worst.value { -0.5 } else { 0.5 });
        Some(nearer).filter(|nearer| nearer.value < worst.value.min(mirrored.value))
    };
    match better {
        Some(better) => corners[last] = better,
        None => {
            let best = corners[0].at.clone();
            for corner in &mut corners[1..] {
                *corner = at(between(&best, &corner.at, 0.5));
            }
        }
    }
}

fn middle(corners: &[Least]) -> Vec<f64> {
    let axes = corners[0].at.len();
    let mean = |axis: usize| {
        corners.iter().map(|corner| corner.at[axis]).sum::<f64>() / corners.len() as f64
    };
    (0..axes).map(mean).collect()
}

/// Returns the place `by` times as far from `from` as `to`, in the same direction.
fn between(from: &[f64], to: &[f64], by: f64) -> Vec<f64> {
    from.iter().zip(to).map(|(from, to)| from + by * (to - from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottom_of_a_bent_valley_is_found() {
        let valley = |x: &[f64]| {
            (1.0 - x[0]) * (1.0 - x[0]) + 100.0 * (x[1] - x[0] * x[0]) * (x[1] - x[0] * x[0])
        };
        let least = minimise(&[-1.2, 1.0], 0.5, valley);
        assert!(least.value < 1e-3, "{least:?}");
        assert!((least.at[0] - 1.0).abs() < 0.1 && (least.at[1] - 1.0).abs() < 0.1, "{least:?}");
    }

    #[test]
    fn a_rough_search_ends_near_the_bottom() {
        let bowl = |x: &[f64]| (x[0] - 0.3) * (x[0] - 0.3) + 2.0 * (x[1] + 0.2) * (x[1] + 0.2);
        let least = minimise_roughly(&[0.0, 0.0], 0.2, 40, bowl);
        assert!(least.value < 1e-3, "{least:?}");
        assert!(minimise_roughly(&[0.0, 0.0], 0.2, 1, bowl).value > least.value, "the control");
    }

    #[test]
    fn edges_and_values_that_are_no_numbers_do_not_hold_it_up() {
        let bent = |x: &[f64]| match x[0] < -1.0 {
            true => f64::NAN,
            false => (x[0] - 2.0).abs() + 3.0 * (x[1] + 1.0).abs() + 0.5 * (x[2] - x[0]).abs(),
        };
        let least = minimise(&[0.0, 0.0, 0.0], 0.3, bent);
        assert!(least.value < 1e-2, "{least:?}");
    }

    #[test]
    fn what_does_not_change_anything_stays_where_it_is() {
        let least = minimise(&[1.0, 7.0], 0.2, |x| x[0] * x[0]);
        assert!(least.value < 1e-3, "{least:?}");
    }
}
