//! Which machines can be.

use super::{Description, Machine, Shape};
use crate::file::{self, Error};

impl Machine {
    /// Reads a machine from the text of a file.
    ///
    /// # Errors
    ///
    /// What is no TOML, lacks a field, has one that is unknown, or describes a machine that cannot be: the
    /// line, the field, and what was expected.
    pub fn parse(text: &str) -> Result<Machine, Error> {
        let description: Description = file::parse(text)?;
        check(text, &description)?;
        let Description { name, topology, kernel, costs } = description;
        Ok(Machine { name, topology: topology.places(), kernel, costs })
    }
}

/// The largest machine that is simulated: what a Linux kernel of today can be built for.
const MAX_CPUS: u64 = 8192;

/// The largest cost, in the unit of its field: a second, if that is nanoseconds.
const MAX_COST: f64 = 1e9;

fn check(text: &str, machine: &Description) -> Result<(), Error> {
    let fault = |section: &str, field: &str, expected: String| {
        Err(Error::of_field(text, &[section, field], expected))
    };
    if let Some((field, expected)) = fault_of_shape(&machine.topology) {
        return fault("topology", field, expected.to_owned());
    }
    for (field, given) in machine.costs.all() {
        // The laws of cooling may start anywhere; their slopes and all else cost something.
        let least = match field {
            "own_ns" | "first_touch_us" => -MAX_COST,
            "hot_ns" | "overlap" => 1.0,
            _ => 0.0,
        };
        if !(least..=MAX_COST).contains(&given.value) {
            return fault("costs", field, format!("expected a number from {least} to {MAX_COST}"));
        }
    }
    for (field, given) in [("hz", &machine.kernel.hz), ("slice_ms", &machine.kernel.slice_ms)] {
        if !(0.001..=1e6).contains(&given.value) {
            return fault("kernel", field, "expected a number from 0.001 to 1000000".to_owned());
        }
    }
    Ok(())
}

/// What is wrong with a topology: the field, and what was expected.
fn fault_of_shape(shape: &Shape) -> Option<(&'static str, &'static str)> {
    let counts = [
        ("sockets", shape.sockets),
        ("l3s_per_socket", shape.l3s_per_socket),
        ("cores_per_l3", shape.cores_per_l3),
        ("threads_per_core", shape.threads_per_core),
        ("nodes_per_socket", shape.nodes_per_socket),
    ];
    if let Some((field, _)) = counts.iter().find(|(_, count)| *count == 0) {
        return Some((field, "expected at least 1"));
    }
    let cpus =
        counts[..4].iter().fold(1u64, |cpus, (_, count)| cpus.saturating_mul(u64::from(*count)));
    if cpus > MAX_CPUS {
        return Some(("sockets", "expected at most 8192 CPUs in all"));
    }
    let is_even = shape.l3s_per_socket.is_multiple_of(shape.nodes_per_socket);
    (!is_even).then_some(("nodes_per_socket", "expected a divisor of l3s_per_socket"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(from: &str, to: &str) -> String {
        let text = include_str!("../../machines/epyc-9654.toml");
        assert!(text.contains(from), "the preset says {from:?}");
        text.replacen(from, to, 1)
    }

    fn error(text: &str) -> String {
        Machine::parse(text).expect_err("this is no machine").to_string()
    }

    #[test]
    fn errors_name_the_line_and_the_field() {
        let lines = include_str!("../../machines/epyc-9654.toml").lines();
        let before = lines.take_while(|line| !line.starts_with("sockets")).count();
        let line = format!("line {}", before + 1);
        let unknown = error(&with("sockets = 2", "sokets = 2"));
        assert!(unknown.contains(&line) && unknown.contains("sokets"), "{unknown}");
        let word = error(&with("sockets = 2", "sockets = \"two\""));
        assert!(word.contains(&line) && word.contains("expected u32"), "{word}");
        assert_eq!(
            error(&with("sockets = 2", "sockets = 0")),
            format!("{line}: topology.sockets: expected at least 1")
        );
        let many = error(&with("cores_per_l3 = 8", "cores_per_l3 = 4000000000"));
        assert!(many.contains("at most 8192 CPUs"), "{many}");
        let uneven = error(&with("nodes_per_socket = 1", "nodes_per_socket = 5"));
        assert!(uneven.contains("nodes_per_socket: expected a divisor"), "{uneven}");
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let text = error(&with("[costs.hot_ns]\nvalue = 300", "[costs.hot_ns]\nvalue = nan"));
        assert!(text.contains("costs.hot_ns: expected"), "{text}");
        let text = error(&with("[kernel.hz]\nvalue = 250", "[kernel.hz]\nvalue = 0"));
        assert!(text.contains("kernel.hz: expected"), "{text}");
        for value in ["1e300", "1e-300", "-1"] {
            let text = error(&with(
                "[costs.overlap]\nvalue = 24",
                &format!("[costs.overlap]\nvalue = {value}"),
            ));
            assert!(text.contains("costs.overlap: expected a number from 1 to"), "{text}");
        }
    }

    #[test]
    fn no_text_is_a_panic() {
        for text in ["", "name", "= 1", "[topology]", "\u{0}", "name = 1\n[costs]\nhot_ns = []"] {
            assert!(Machine::parse(text).is_err());
        }
    }
}
