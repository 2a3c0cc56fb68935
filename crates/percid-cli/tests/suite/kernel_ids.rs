//! The reported behaviour of the running kernel's IDs. Their generation depends on the kernel, and
//! the load of the CPUs decides whether it can be determined; `PERCID_KERNEL_IDS=cache-local` and
//! the like require it.

use crate::percid;

use std::env;

use percid::{bounded, command, json, list};
use percid_sim::conformance::Recording;
use percid_sim::explanation::Behaviour;

#[test]
fn the_answer_is_a_behaviour_or_why_it_is_undecided() {
    let answer = json("kernel-ids --json");
    println!("{answer}");
    let observed = answer["observed"].as_str();
    assert_eq!(observed.is_some(), answer["undecided"].is_null());
    let known = Behaviour::all().map(|behaviour| behaviour.to_string());
    assert!(observed.is_none_or(|observed| known.into_iter().any(|known| known == observed)));
    assert_eq!(
        answer["differs"] == true,
        observed.is_some() && observed != answer["hinted"].as_str()
    );
    for row in list(&answer, "evidence") {
        assert!(row["different"].as_u64() <= row["compared"].as_u64(), "{row}");
    }
    if let Ok(demanded) = env::var("PERCID_KERNEL_IDS") {
        assert_eq!(observed, Some(demanded.as_str()), "{answer}");
    }
}

#[test]
fn the_experiment_prints_a_recording_or_why_there_is_none() {
    let output = bounded(&mut command("kernel-ids --experiment"));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success());
    if let Err(malformed) = Recording::read(&text) {
        assert!(text.starts_with("not possible: "), "{malformed}:\n{text}");
    }
}
