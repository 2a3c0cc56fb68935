//! The least of a function of a few numbers that has no derivatives.

/// Where a function is least, as far as was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Least {
    /// The place.
    pub at: Vec<f64>,
    /// The function's value there.
    pub value: f64,
}

/// How far the values of a simplex may be apart when it has come to rest.
const TOLERANCE: f64 = 1e-5;
/// The most steps of one simplex.
const STEPS: usize = 600;

/// The least value near `start`, by the simplex search of Nelder and Mead ("A simplex method for
/// function minimization", 1965). It starts with a simplex whose edges are `edge` long; when that
/// has come to rest, with new ones a quarter as long around what was found, until one finds nothing
/// better: a simplex that has become flat rests where nothing is least.
///
/// A value that is no number counts as larger than all others.
pub fn minimise(start: &[f64], edge: f64, function: impl Fn(&[f64]) -> f64) -> Least {
    let at = |place: Vec<f64>| {
        let value = function(&place);
        Least { at: place, value: if value.is_nan() { f64::INFINITY } else { value } }
    };
    let mut best = at(start.to_vec());
    let mut edge = edge;
    loop {
        let found = rest(simplex(&best, edge, &at), &at);
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

/// A place and, along each axis, one a step away from it.
fn simplex(start: &Least, edge: f64, at: &impl Fn(Vec<f64>) -> Least) -> Vec<Least> {
    let away = |axis: usize| {
        let mut place = start.at.clone();
        place[axis] += edge;
        at(place)
    };
    std::iter::once(start.clone()).chain((0..start.at.len()).map(away)).collect()
}

/// Lets a simplex walk until it rests, and returns its best corner.
fn rest(mut corners: Vec<Least>, at: &impl Fn(Vec<f64>) -> Least) -> Least {
    for _ in 0..STEPS {
        corners.sort_by(|one, other| one.value.total_cmp(&other.value));
        let (best, worst) = (&corners[0], &corners[corners.len() - 1]);
        if worst.value - best.value <= TOLERANCE {
            break;
        }
        step(&mut corners, at);
    }
    corners.swap_remove(0)
}

/// Replaces the worst corner by a better one on the line through the middle of the others, or draws
/// all corners towards the best one. The corners are sorted.
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

/// From one place in the direction of another one, `by` times as far.
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
