//! Which machines can be.

use super::{Description, Machine, Shape, Sourced};
use crate::file::{self, Error};

impl Machine {
    /// Reads a machine from the text of a file.
    ///
    /// # Errors
    ///
    /// What is no TOML, lacks a field, has one that is unknown, or describes a machine that cannot
    /// be: the line, the field, and what was expected.
    pub fn parse(text: &str) -> Result<Machine, Error> {
        let description: Description = file::parse(text)?;
        check(text, &description)?;
        let Description { name, topology, kernel, costs } = description;
        Ok(Machine { name, topology: topology.places(), kernel, costs })
    }

    /// Whether a cost or a clock has this name.
    pub fn has(&self, name: &str) -> bool {
        let numbers = self.costs.all().into_iter().chain(self.kernel.all());
        numbers.map(|(known, _)| known).any(|known| known == name)
    }

    /// Sets a cost or a clock.
    ///
    /// # Errors
    ///
    /// The names of these, if there is none of this name; what was expected, if the value cannot
    /// be.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), Error> {
        if let Some(expected) = fault_of_number(name, value) {
            return Err(Error::of_file(format!("{expected}, found {value}")));
        }
        let (costs, clocks) = (self.costs.all_mut(), self.kernel.all_mut());
        let found = costs.into_iter().chain(clocks).find(|(known, _)| *known == name);
        if let Some((_, number)) = found {
            *number = Sourced { value, origin: "set by hand".to_owned(), fitted: false };
            return Ok(());
        }
        let known: Vec<&str> = self.costs.all().iter().map(|(name, _)| *name).collect();
        let known = known.join(", ");
        let expected = format!("expected a number of the machine: hz, slice_ms, {known}");
        Err(Error::of_file(format!("{expected}; found {name}")))
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
    let costs = machine.costs.all().into_iter().map(|number| ("costs", number));
    let clocks = machine.kernel.all().into_iter().map(|number| ("kernel", number));
    for (section, (field, number)) in costs.chain(clocks) {
        if let Some(expected) = fault_of_number(field, number.value) {
            return fault(section, field, expected);
        }
    }
    Ok(())
}

/// What was expected of a cost or a clock, if it cannot be.
fn fault_of_number(field: &str, value: f64) -> Option<String> {
    // The laws of cooling may start anywhere; their slopes and all else cost something.
    let (least, most) = match field {
        "hz" | "slice_ms" => (0.001, 1e6),
        "own_ns" | "first_touch_us" => (-MAX_COST, MAX_COST),
        "hot_ns" | "overlap" => (1.0, MAX_COST),
        _ => (0.0, MAX_COST),
    };
    let fits = (least..=most).contains(&value);
    (!fits).then(|| format!("expected a number from {least} to {most}"))
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
    fn numbers_are_set_within_their_bounds() {
        let mut machine = Machine::preset("epyc-9654").expect("a preset");
        machine.set("fence_running_ns", 1234.0).expect("a cost");
        machine.set("hz", 1000.0).expect("a clock");
        assert_eq!((machine.costs.fence_running_ns.value, machine.kernel.hz.value), (1234.0, 1e3));
        assert_eq!(machine.costs.fence_running_ns.origin, "set by hand");
        let before = machine.clone();
        let fault = machine.set("overlap", 0.0).expect_err("lines in flight").to_string();
        assert!(fault.contains("expected a number from 1 to"), "{fault}");
        let unknown = machine.set("colour", 1.0).expect_err("no such number").to_string();
        assert!(unknown.contains("hz") && unknown.contains("interrupt_ns"), "{unknown}");
        assert_eq!(machine, before);
    }

    #[test]
    fn no_text_is_a_panic() {
        for text in ["", "name", "= 1", "[topology]", "\u{0}", "name = 1\n[costs]\nhot_ns = []"] {
            assert!(Machine::parse(text).is_err());
        }
    }
}
