//! Randomly damaged input files: each one is read or refused with one line, and none causes a
//! panic.

use percid_sim::machine::Machine;
use percid_sim::random::Random;
use percid_sim::workload::Workload;

const MACHINES: [&str; 3] = [
    include_str!("../../machines/epyc-9654.toml"),
    include_str!("../../machines/cascade-lake.toml"),
    "base = \"epyc-9654\"
    name = \"irregular\"
    [topology]
    cpus_of_cores = [\"0,3\", \"1\", \"2\"]
    cpus_of_l3s = [\"0,3\", \"1-2\"]
    cpus_of_nodes = [\"0-3\"]
    cpus_of_sockets = [\"0-3\"]",
];
const WORKLOADS: [&str; 3] = [
    include_str!("../../workloads/intermittent.toml"),
    include_str!("../../workloads/container.toml"),
    include_str!("../../workloads/fork-exec.toml"),
];

/// Replacements for pieces of a file: numbers at the limits of types, and pieces of the syntax.
const PIECES: [&str; 22] = [
    "0",
    "-1",
    "1e308",
    "nan",
    "inf",
    "4294967296",
    "9223372036854775807",
    "0.5",
    "\"\"",
    "\"cpus * cpus\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    "\n",
    "\"",
    "\u{e9}",
    "true",
    "[[threads]]",
    "repeat",
    "\"wait\"",
];

fn damaged(text: &str, random: &mut Random) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(3) {
        let at = random.below(text.len() as u64) as usize;
        let piece = PIECES[random.below(PIECES.len() as u64) as usize];
        // Replaces a whole number or word, so that many files stay valid TOML with another value.
        let is_inside = |c: &&char| c.is_ascii_alphanumeric() || **c == '_' || **c == '.';
        let length = text[at..].iter().take_while(is_inside).count().max(1);
        text.splice(at..at + length, piece.chars());
    }
    text.into_iter().collect()
}

fn must_be_one_line(error: &impl std::fmt::Display, text: &str) {
    let message = error.to_string();
    assert!(!message.is_empty() && !message.contains('\n'), "{message:?}\n{text}");
}

#[test]
fn damaged_files_are_read_or_refused() {
    let seed = 20_261_121;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let machine = Machine::parse(MACHINES[0]).expect("a preset");
    let (mut read, mut refused) = (0, 0);
    for round in 0..6_000 {
        let mut count = |is_good: bool| if is_good { read += 1 } else { refused += 1 };
        let text = damaged(MACHINES[round % MACHINES.len()], &mut random);
        match Machine::parse(&text) {
            Ok(machine) => {
                assert!(machine.topology.cpus() <= 8192);
                count(true);
            }
            Err(error) => {
                must_be_one_line(&error, &text);
                count(false);
            }
        }
        let text = damaged(WORKLOADS[round % WORKLOADS.len()], &mut random);
        match Workload::parse(&text).and_then(|workload| workload.program(&machine)) {
            Ok(_) => count(true),
            Err(error) => {
                must_be_one_line(&error, &text);
                count(false);
            }
        }
    }
    // Some files must pass and some must fail, otherwise the damage tests nothing.
    assert!(read > 500 && refused > 5_000, "{read} read, {refused} refused");
}
