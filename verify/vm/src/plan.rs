//! Which machines to boot.

use crate::pins;
use crate::platform::{Platform, Series};
use crate::shape::Shape;

/// One machine of the default plan.
const DEFAULT: [(Platform, (u32, u32)); 5] = [
    (Platform::x86_64(Series::V6_1), (8, 2)),
    (Platform::x86_64(Series::V6_1), (16, 4)),
    (Platform::x86_64(Series::V6_12), (8, 2)),
    (Platform::x86_64(Series::V6_12), (16, 4)),
    // Takes as long as the others together, so once.
    (Platform::x86_64(Series::V6_12), (64, 8)),
];

/// The machines for the kernels and shapes that were asked for. Nothing asked
/// for is the default plan; only kernels, its part with these; shapes, these
/// on every kernel asked for.
pub fn plan(kernels: &[Platform], shapes: &[Shape]) -> Vec<(Platform, Shape)> {
    let wanted = |platform: &Platform| kernels.is_empty() || kernels.contains(platform);
    if shapes.is_empty() {
        let shape = |(cpus, nodes)| Shape::new(cpus, 0, nodes).expect("the default plan is sound");
        let all = DEFAULT.into_iter().filter(|(platform, _)| wanted(platform));
        return all.map(|(platform, size)| (platform, shape(size))).collect();
    }
    let platforms = pins::all().iter().map(|pin| pin.platform).filter(wanted);
    platforms.flat_map(|platform| shapes.iter().map(move |&shape| (platform, shape))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(kernels: &[Platform], shapes: &[&str]) -> Vec<String> {
        let shapes: Vec<Shape> = shapes.iter().map(|s| s.parse().expect("good")).collect();
        let plan = plan(kernels, &shapes);
        plan.iter().map(|(platform, shape)| format!("{platform} {shape}")).collect()
    }

    #[test]
    fn the_default_boots_the_large_machine_once() {
        let expected = ["6.1 8/2", "6.1 16/4", "6.12 8/2", "6.12 16/4", "6.12 64/8"];
        assert_eq!(named(&[], &[]), expected);
    }

    #[test]
    fn kernels_and_shapes_select() {
        let (old, new) = (Platform::x86_64(Series::V6_1), Platform::x86_64(Series::V6_12));
        assert_eq!(named(&[old], &[]), ["6.1 8/2", "6.1 16/4"]);
        assert_eq!(named(&[], &["4/2"]).len(), pins::all().len());
        assert_eq!(named(&[new], &["4/2", "64/8"]), ["6.12 4/2", "6.12 64/8"]);
    }
}
