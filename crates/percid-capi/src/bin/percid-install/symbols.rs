//! The symbols that the libraries export: those of the version script.

/// The version script.
pub(crate) const MAP: &str = include_str!("../../../percid.map");

/// Returns all names in the `global:` parts of a version script.
pub(crate) fn exported(map: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut global = false;
    for line in map.lines().map(str::trim) {
        match line {
            "global:" => global = true,
            "local:" => global = false,
            _ if line.starts_with('}') => global = false,
            _ => names.extend(line.strip_suffix(';').filter(|_| global)),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_global_counts() {
        let map = "A_1 {\n  global:\n    f;\n    g;\n  local:\n    *;\n};\nA_2 {\n  global:\n  h;\n} A_1;";
        assert_eq!(exported(map), ["f", "g", "h"]);
        assert!(exported(MAP).contains(&"percid_counter_add_slow"));
        assert!(exported(MAP).iter().all(|name| name.starts_with("percid_")));
    }
}
