//! Translation of Rust's assembly on x86-64 (Intel syntax) to that of C (AT&T syntax).

/// Translates an instruction whose constants are numbers. `register` returns the name of a register
/// at a width of 64, 32 or 8 bits.
pub(super) fn instruction(line: &str, register: &impl Fn(&str, u32) -> String) -> String {
    let (mnemonic, operands) = line.split_once(' ').unwrap_or((line, ""));
    let operands: Vec<&str> = operands.split(", ").filter(|one| !one.is_empty()).collect();
    if mnemonic.starts_with('j') {
        return format!("{mnemonic} {}", operands[0]);
    }
    let mnemonic = match mnemonic {
        "movsxd" => "movslq".to_owned(),
        "movzx" => "movzbl".to_owned(),
        plain if operands.iter().any(|one| is_byte(one)) => format!("{plain}b"),
        plain if operands.iter().any(|one| is_narrow(one)) => format!("{plain}l"),
        plain => format!("{plain}q"),
    };
    let operands: Vec<_> = operands.iter().rev().map(|one| operand(one, register)).collect();
    format!("{mnemonic} {}", operands.join(", "))
}

/// Returns `true` if an operand has 32 bits.
fn is_narrow(operand: &str) -> bool {
    operand.ends_with(":e}") || operand.starts_with("dword ptr")
}

/// Returns `true` if an operand has 8 bits.
fn is_byte(operand: &str) -> bool {
    operand.ends_with(":l}") || operand.starts_with("byte ptr")
}

fn operand(text: &str, register: &impl Fn(&str, u32) -> String) -> String {
    if let Some(name) = name(text) {
        let (name, bits) = match (name.strip_suffix(":e"), name.strip_suffix(":l")) {
            (Some(name), _) => (name, 32),
            (_, Some(name)) => (name, 8),
            _ => (name, 64),
        };
        return register(name, bits);
    }
    match text.split_once('[') {
        Some((size, place)) => {
            let segment = if size.ends_with("fs:") { "%%fs:" } else { "" };
            segment.to_owned() + &memory(place.trim_end_matches(']'), register)
        }
        None => format!("${text}"),
    }
}

/// Translates a memory operand: registers, one of them possibly scaled, and numbers.
fn memory(place: &str, register: &impl Fn(&str, u32) -> String) -> String {
    if let Some(label) = place.strip_prefix("rip + ") {
        return format!("{label}(%%rip)");
    }
    let (mut base, mut index, mut displacement) = (String::new(), String::new(), 0);
    for term in place.replace(" - ", " + -").split(" + ") {
        match term.split_once(" * ") {
            Some((scaled, scale)) => {
                index = format!(", {}, {scale}", operand(scaled, register));
            }
            None if name(term).is_none() => {
                displacement += term.parse::<i64>().unwrap_or_else(|_| panic!("{place}"));
            }
            None if base.is_empty() => base = operand(term, register),
            None => index = format!(", {}", operand(term, register)),
        }
    }
    let displacement = if displacement == 0 { String::new() } else { displacement.to_string() };
    format!("{displacement}({base}{index})")
}

fn name(text: &str) -> Option<&str> {
    text.strip_prefix('{')?.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_translated() {
        let register = |name: &str, bits: u32| format!("{name}{bits}");
        for (intel, att) in [
            ("mov {a}, qword ptr [{b} + -2]", "movq -2(b64), a64"),
            ("mov qword ptr [{b} + {c} * 8 + -1], {a}", "movq a64, -1(b64, c64, 8)"),
            ("mov {a:e}, dword ptr fs:[{b} + 24]", "movl %%fs:24(b64), a32"),
            ("movsxd {a}, dword ptr fs:[{b} + 4]", "movslq %%fs:4(b64), a64"),
            ("lea {a}, [rip + 9b]", "leaq 9b(%%rip), a64"),
            ("lea {a}, [{b} - 1]", "leaq -1(b64), a64"),
            ("cmp qword ptr [{a} + 0], 0", "cmpq $0, (a64)"),
            ("mov qword ptr [{a} + {b} + 190], {c}", "movq c64, 190(a64, b64)"),
            ("xor {a:e}, {a:e}", "xorl a32, a32"),
            ("jae 6f", "jae 6f"),
            ("inc {a:e}", "incl a32"),
            ("movzx {a:e}, byte ptr [{b} + {c}]", "movzbl (b64, c64), a32"),
            ("mov byte ptr [{b} + {c} + -1], {a:l}", "movb a8, -1(b64, c64)"),
        ] {
            assert_eq!(instruction(intel, &register), att);
        }
    }
}
