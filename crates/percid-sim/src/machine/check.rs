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

fn check(text: &str, machine: &Description) -> Result<(), Error> {
    let Shape { sockets, nodes_per_socket, l3s_per_socket, cores_per_l3, threads_per_core, .. } =
        machine.topology;
    let counts = [
        ("sockets", sockets),
        ("nodes_per_socket", nodes_per_socket),
        ("l3s_per_socket", l3s_per_socket),
        ("cores_per_l3", cores_per_l3),
        ("threads_per_core", threads_per_core),
    ];
    let fault = |section: &str, field: &str, expected: &str| {
        Error::of_field(text, &[section, field], expected)
    };
    for (field, count) in counts {
        if count == 0 {
            return Err(fault("topology", field, "expected at least 1"));
        }
    }
    let cpus = counts.iter().filter(|(field, _)| *field != "nodes_per_socket");
    let cpus = cpus.fold(1u64, |cpus, (_, count)| cpus.saturating_mul(u64::from(*count)));
    if cpus > MAX_CPUS {
        return Err(fault("topology", "sockets", "expected at most 8192 CPUs in all"));
    }
    if l3s_per_socket % nodes_per_socket != 0 {
        return Err(fault("topology", "nodes_per_socket", "expected a divisor of l3s_per_socket"));
    }
    for (field, given) in machine.costs.all() {
        // The laws of cooling may start anywhere; their slopes and all else cost something.
        let may_be_negative = ["own_ns", "first_touch_us"].contains(&field);
        if !given.value.is_finite() || (given.value < 0.0 && !may_be_negative) {
            return Err(fault("costs", field, "expected a number that is not negative"));
        }
    }
    let kernel = &machine.kernel;
    let positive = [
        ("kernel", "hz", kernel.hz.value),
        ("kernel", "slice_ms", kernel.slice_ms.value),
        ("costs", "hot_ns", machine.costs.hot_ns.value),
        ("costs", "overlap", machine.costs.overlap.value),
    ];
    for (section, field, value) in positive {
        if !(value > 0.0 && value <= 1e6) {
            return Err(fault(section, field, "expected a number above 0 and at most 1000000"));
        }
    }
    Ok(())
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
        let unknown = error(&with("sockets = 2", "sokets = 2"));
        assert!(unknown.contains("line 9") && unknown.contains("sokets"), "{unknown}");
        let word = error(&with("sockets = 2", "sockets = \"two\""));
        assert!(word.contains("line 9") && word.contains("expected u32"), "{word}");
        assert_eq!(
            error(&with("sockets = 2", "sockets = 0")),
            "line 9: topology.sockets: expected at least 1"
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
    }

    #[test]
    fn no_text_is_a_panic() {
        for text in ["", "name", "= 1", "[topology]", "\u{0}", "name = 1\n[costs]\nhot_ns = []"] {
            assert!(Machine::parse(text).is_err());
        }
    }
}
