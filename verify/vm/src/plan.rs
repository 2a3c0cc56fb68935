//! Which machines to boot.

use crate::kernel::Series;
use crate::shape::Shape;

/// One machine of the default plan.
const DEFAULT: [(Series, (u32, u32)); 5] = [
    (Series::V6_1, (8, 2)),
    (Series::V6_1, (16, 4)),
    (Series::V6_12, (8, 2)),
    (Series::V6_12, (16, 4)),
    // Takes as long as the others together, so once.
    (Series::V6_12, (64, 8)),
];

/// The machines for the kernels and shapes that were asked for. Nothing asked
/// for is the default plan; only kernels, its part with these; shapes, these
/// on every kernel asked for.
pub fn plan(kernels: &[Series], shapes: &[Shape]) -> Vec<(Series, Shape)> {
    let wanted = |series: &Series| kernels.is_empty() || kernels.contains(series);
    if shapes.is_empty() {
        let shape = |(cpus, nodes)| Shape::new(cpus, 0, nodes).expect("the default plan is sound");
        let all = DEFAULT.into_iter().filter(|(series, _)| wanted(series));
        return all.map(|(series, size)| (series, shape(size))).collect();
    }
    let series = Series::ALL.into_iter().filter(wanted);
    series.flat_map(|series| shapes.iter().map(move |&shape| (series, shape))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(kernels: &[Series], shapes: &[&str]) -> Vec<String> {
        let shapes: Vec<Shape> = shapes.iter().map(|s| s.parse().expect("good")).collect();
        let plan = plan(kernels, &shapes);
        plan.iter().map(|(series, shape)| format!("{series} {shape}")).collect()
    }

    #[test]
    fn the_default_boots_the_large_machine_once() {
        let expected = ["6.1 8/2", "6.1 16/4", "6.12 8/2", "6.12 16/4", "6.12 64/8"];
        assert_eq!(named(&[], &[]), expected);
    }

    #[test]
    fn kernels_and_shapes_select() {
        assert_eq!(named(&[Series::V6_1], &[]), ["6.1 8/2", "6.1 16/4"]);
        assert_eq!(named(&[], &["4/2"]), ["6.1 4/2", "6.12 4/2"]);
        assert_eq!(named(&[Series::V6_12], &["4/2", "64/8"]), ["6.12 4/2", "6.12 64/8"]);
    }
}
