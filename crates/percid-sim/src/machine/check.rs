//! Checks of a machine's numbers, both from files and set by hand.

use super::{Machine, Sourced};
use crate::file::Error;

impl Machine {
    /// Returns `true` if a cost or a kernel number has this name.
    pub fn has(&self, name: &str) -> bool {
        self.names().contains(&name)
    }

    /// Returns the names of the kernel numbers and the costs.
    pub fn names(&self) -> Vec<&'static str> {
        let numbers = self.kernel.all().into_iter().chain(self.costs.all());
        numbers.map(|(name, _)| name).collect()
    }

    /// Sets a cost or a kernel number.
    ///
    /// # Errors
    ///
    /// Returns the known names if `name` is unknown, or the expected values if the value is not
    /// allowed.
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

/// Maximum number of simulated CPUs: the most that a Linux kernel of today can be built for.
pub(super) const MAX_CPUS: u64 = 8192;

/// The largest cost, in the unit of its field; one second, if the unit is nanoseconds.
const MAX_COST: f64 = 1e9;

/// Returns the expected values of a number, if this value is not allowed.
pub(super) fn fault_of_number(field: &str, value: f64) -> Option<String> {
    let (least, most) = match field {
        "hz" | "slice_ms" => (0.001, 1e6),
        "hot_ns" | "overlap" | "core_cache_kb" | "l3_cache_kb" | "sibling_factor" => {
            (1.0, MAX_COST)
        }
        _ => (0.0, MAX_COST),
    };
    let fits = (least..=most).contains(&value);
    (!fits).then(|| format!("expected a number from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset_with(from: &str, to: &str) -> String {
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
        let unknown = error(&preset_with("sockets = 2", "sokets = 2"));
        assert!(unknown.contains(&line) && unknown.contains("sokets"), "{unknown}");
        let word = error(&preset_with("sockets = 2", "sockets = \"two\""));
        assert!(word.contains(&line) && word.contains("expected u32"), "{word}");
        assert_eq!(
            error(&preset_with("sockets = 2", "sockets = 0")),
            format!("{line}: topology.sockets: expected at least 1")
        );
        let many = error(&preset_with("cores_per_l3 = 8", "cores_per_l3 = 4000000000"));
        assert!(many.contains("at most 8192 CPUs"), "{many}");
        let uneven = error(&preset_with("nodes_per_socket = 1", "nodes_per_socket = 5"));
        assert!(uneven.contains("nodes_per_socket: expected a divisor"), "{uneven}");
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let text =
            error(&preset_with("[costs.hot_ns]\nvalue = 300", "[costs.hot_ns]\nvalue = nan"));
        assert!(text.contains("costs.hot_ns: expected"), "{text}");
        let text = error(&preset_with("[kernel.hz]\nvalue = 250", "[kernel.hz]\nvalue = 0"));
        assert!(text.contains("kernel.hz: expected"), "{text}");
        for value in ["1e300", "1e-300", "-1"] {
            let text = error(&preset_with(
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
