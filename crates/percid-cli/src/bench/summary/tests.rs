//! The summary of fixed measurements, and checks that it stays short and plain.

use super::*;
use crate::bench::intermittent::Row;
use crate::busy::Noise;

/// Returns the document of a machine with 2 CPUs on which everything was measured.
fn document() -> Document {
    let machine = MachineReport::fixed("table", "the kernel fences critical sections");
    let ns = [
        ("counter_add", "table", 0.754),
        ("counter_add", "atomic", 6.1),
        ("atomic_private", "none", 4.322),
        ("atomic_shared", "none", 30.448),
        ("stack_push_pop", "table", 1.9),
        ("thread_local_vec", "none", 1.7),
        ("array_queue", "none", 1234.5),
        ("pool_get_put", "table", 2.0),
        ("malloc_free", "none", 6.5),
        ("local_with", "table", 1.7),
        ("std_mutex_private", "none", 10.5),
        ("std_mutex_shared", "none", 60.7),
        ("histogram_record", "table", 1.4),
        ("hdrhistogram", "none", 71.8),
        ("ring_append", "table", 6.26),
    ];
    // Values of other teams must not be shown.
    let teams = [(1, false, 100.0), (2, true, 1.0), (8, false, 100.0)];
    let figures = teams.into_iter().flat_map(|(threads, pinned, factor)| {
        let team = TeamName { threads, pinned };
        ns.map(|(op, source, ns)| Figure::fixed(op, source, team, ns * factor))
    });
    let memory = MemoryReport {
        source: "table".to_owned(),
        counters: 10_000,
        ids: 2,
        handles: 80_000,
        copies: 160_000,
        per_counter_and_id: 12.0,
    };
    let rows = vec![
        Row::fixed("table", 10, 2000.0, 1),
        Row::fixed("table", 200, 2616.0, 1),
        Row::fixed("forced-remote", 200, 2755.0, 2),
    ];
    Document {
        machine,
        interrupted: false,
        noise: Vec::new(),
        partial: Vec::new(),
        memory: Some(memory),
        ops: Some(OpsReport::fixed(figures.collect(), 2_591_607_703).into()),
        increments: None,
        mask: None,
        #[cfg(feature = "metrics-peers")]
        metrics: None,
        wander: None,
        intermittent: Some(IntermittentReport::fixed(rows).into()),
        sync: None,
        alloc: None,
        published: None,
    }
}

fn text(document: &Document) -> String {
    let costs = document.ops.as_ref().and_then(|ops| Costs::of(&ops.report, &document.machine));
    let costs = costs.map(|costs| costs.to_string()).unwrap_or_default();
    let text = format!("{}\n{costs}{}", document.machine.summary(), Facts(document));
    anstream::adapter::strip_str(&text).to_string()
}

/// Returns `true` if the text has at most 25 lines of at most 100 columns, and words instead of
/// names.
fn is_plain(text: &str) -> bool {
    let joins =
        |of: &[u8]| of[0].is_ascii_lowercase() && of[1] == b'_' && of[2].is_ascii_lowercase();
    text.lines().count() <= 25
        && text.lines().all(|line| line.chars().count() <= 100)
        && !text.as_bytes().windows(3).any(joins)
}

#[test]
fn the_summary_of_fixed_measurements() {
    let text = text(&document());
    assert!(is_plain(&text), "{text}");
    assert_eq!(text, include_str!("golden.txt"));
}

#[test]
fn what_is_not_plain_is_noticed() {
    let text = text(&document());
    for spoiled in ["a\n".repeat(26), "a".repeat(101), "counter_add".to_owned()] {
        assert!(!is_plain(&format!("{text}{spoiled}")), "{spoiled}");
    }
}

#[test]
fn the_longest_reasons_and_names_fit() {
    let mut document = document();
    let figures = &mut document.ops.as_mut().expect("measured").report.results;
    figures.iter_mut().for_each(|figure| figure.ns_min *= 1e5);
    let reason = "percid's table cannot be used: it could not be determined in time if this kernel aborts \
                  critical sections; the next use tries again";
    for source in ["table", "kernel", "atomic"] {
        document.machine = MachineReport::fixed_at_length(source, reason);
        let whole = text(&document);
        assert!(is_plain(&whole), "{whole}");
        document.intermittent = None;
        let cut = text(&document);
        assert!(is_plain(&cut) && cut.contains("whether IDs stay"), "{cut}");
    }
}

#[test]
fn ids_that_do_not_stay_and_counts_that_are_wrong_are_said() {
    let mut document = document();
    let rows = vec![Row::fixed("table", 10, 2700.0, 3), Row::fixed("forced-remote", 10, 2600.0, 2)];
    document.intermittent = Some(IntermittentReport::fixed(rows).into());
    let said = text(&document);
    assert!(said.contains("No: a CPU came to 3 different shards"), "{said}");
    assert!(said.contains("nothing saved"), "{said}");
    assert!(!said.contains("WRONG"), "{said}");
    document.ops.as_mut().expect("measured").report.sums_exact = false;
    assert!(text(&document).contains("WRONG"));
}

#[test]
fn noise_stands_in_place_of_what_was_saved() {
    let mut document = document();
    let intermittent = &mut document.intermittent.as_mut().expect("measured").circumstances;
    intermittent.noise = Some(Noise { runnable_threads: 4, cpus: 2 });
    let said = text(&document);
    let busy = "the machine was busy: 4 runnable threads on 2 CPUs";
    assert!(said.contains("Yes: each CPU came back to one shard. No times:\n"), "{said}");
    assert!(said.contains(busy) && !said.contains("% saved"), "{said}");
}

#[test]
fn what_was_interrupted_says_what_is_missing() {
    let mut document = document();
    (document.ops, document.memory, document.intermittent) = (None, None, None);
    let said = text(&document);
    let missing = "Not measured: whether IDs stay with their CPU; memory; single operations.";
    assert!(said.contains(missing), "{said}");
}

#[test]
fn one_cpu_shares_nothing() {
    let mut document = document();
    let ops = &mut document.ops.as_mut().expect("measured").report;
    ops.results.retain(|figure| figure.team.pinned);
    ops.results.iter_mut().for_each(|figure| figure.team.threads = 1);
    let said = text(&document);
    assert!(said.contains("by one thread") && !said.contains("share"), "{said}");
}
