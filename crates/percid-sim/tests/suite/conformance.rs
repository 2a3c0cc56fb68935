//! Replays of recordings from real kernels: the policies follow those kernels' state machines step
//! by step.
//!
//! `recordings/` has the output of `percid-programs id-steps`. On Linux 6.12 (4 emulated CPUs) and
//! 6.18 (2 CPUs), threads are pinned to a CPU each. First all run at once, then with the
//! intermittent pattern, then with a random schedule; then both again with half of the threads. On
//! 6.19 and 7.1, threads begin, move and end, so that IDs change their kind of owner. 6.19 has 8
//! emulated CPUs, 4 of them allowed (`id-steps --owners --cpus 4`). 7.1 has 8 CPUs, 4 of them
//! plugged in (`id-steps --owners`).

use percid_rules::Generation;
use percid_sim::conformance::{Conformance, Event, Recording, Step, generation};
use percid_sim::explanation::Explanation;
use percid_sim::policies::{find, of_generation};

const RECORDINGS: [(&str, &str); 4] = [
    ("linux-6.4", include_str!("../recordings/linux-6.12.txt")),
    ("linux-6.14", include_str!("../recordings/linux-6.18.txt")),
    ("linux-6.19", include_str!("../recordings/linux-6.19.txt")),
    ("linux-6.19", include_str!("../recordings/linux-7.1.txt")),
];

/// Returns `true` if a kernel with this policy takes IDs back when time passes.
fn scans(policy: &str) -> bool {
    policy != "linux-6.19"
}

fn compare(recording: &Recording, policy: &str) -> Conformance {
    recording.compare(find(policy).expect("a policy"))
}

#[test]
fn every_id_of_a_real_kernel_is_that_of_its_policy() {
    for (policy, text) in RECORDINGS {
        let recording = Recording::read(text).unwrap_or_else(|error| panic!("{policy}: {error}"));
        assert_eq!(generation(&recording.release).map(|entry| entry.name), Some(policy));
        let comparison = compare(&recording, policy);
        println!("{} {policy}: {comparison}", recording.release);
        assert!(comparison.agrees() && comparison.border.is_none(), "{comparison}");
        let expired = comparison.expired > 0;
        assert_eq!(expired, scans(policy), "without a scan there is little to see: {comparison}");
    }
}

/// The control: a policy that is nearly right is detected.
#[test]
fn a_recording_disagrees_with_every_other_generation() {
    for (policy, text) in RECORDINGS {
        let recording = Recording::read(text).expect("as above");
        let all = ["linux-6.3", "linux-6.4", "linux-6.13", "linux-6.14", "linux-6.19"];
        for other in all.into_iter().filter(|&other| other != policy) {
            let comparison = compare(&recording, other);
            assert!(!comparison.differences.is_empty(), "{other} explains {policy}: {comparison}");
        }
    }
}

/// The control: one ID is changed.
#[test]
fn one_wrong_id_is_named() {
    for (policy, text) in RECORDINGS {
        let mut recording = Recording::read(text).expect("as above");
        let is_id = |event| matches!(event, Event::Id(..));
        let count = recording.steps.iter().filter(|step| is_id(step.event)).count();
        let mut ids = recording.steps.iter_mut().filter(|step| is_id(step.event));
        let step = ids.nth(count / 2).expect("the middle of them");
        let Event::Id(thread, right) = step.event else { unreachable!("an ID") };
        step.event = Event::Id(thread, right + 1);
        let time = step.time;
        let differences = compare(&recording, policy).differences;
        let [wrong] = differences[..] else { panic!("{differences:?}") };
        assert_eq!((wrong.time, wrong.thread, wrong.expected), (time, thread, right));
        let said = format!("thread {thread}: expected ID {right}, found {}", right + 1);
        assert!(wrong.to_string().ends_with(&said), "{wrong}");
    }
}

/// The control: without ticks, there are no scans.
#[test]
fn ticks_matter() {
    for (policy, text) in RECORDINGS.into_iter().filter(|(policy, _)| scans(policy)) {
        let mut recording = Recording::read(text).expect("as above");
        recording.steps.retain(|step| !matches!(step.event, Event::Tick(..)));
        assert!(!compare(&recording, policy).differences.is_empty(), "{policy}");
    }
}

/// The control: a different number of CPUs changes the bounds and thresholds of 6.19.
#[test]
fn the_numbers_of_cpus_matter_where_ids_have_owners() {
    for (policy, text) in RECORDINGS.into_iter().filter(|(policy, _)| !scans(policy)) {
        let right = Recording::read(text).expect("as above");
        for (possible, allowed) in [(8, 5), (16, 8), (16, 16), (9, 9)] {
            if (possible, allowed) != (right.possible, right.allowed) {
                let wrong = Recording { possible, allowed, ..right.clone() };
                let comparison = compare(&wrong, policy);
                let different = comparison.differences.len();
                assert!(different > 0, "{possible} CPUs, {allowed} allowed: {comparison}");
            }
        }
    }
}

/// The recordings determine the generation that explains them, without the release.
#[test]
fn a_recording_is_explained_by_the_generation_of_its_kernel() {
    for (policy, text) in RECORDINGS {
        let mut recording = Recording::read(text).expect("as above");
        recording.release = "6.6.30-backported".to_owned();
        let explanation = Explanation::from_recordings([&recording]);
        println!("{policy}: {explanation}");
        let decided = explanation.decided().map(|behaviour| behaviour.policy().name);
        assert_eq!(decided, Some(policy), "{explanation}");
    }
}

/// The control: a process with one thread that never moves has ID 0 under all generations.
#[test]
fn what_every_generation_explains_is_undecided() {
    let ids: String = (1..40).map(|time| format!("{time} id 0 0\n")).collect();
    let text = format!("percid-steps 6.18.0 2 2\n0 exec 0 0\n{ids}end\n");
    let explanation = Explanation::from_recordings([&Recording::read(&text).expect("a recording")]);
    assert_eq!(explanation.decided(), None);
    assert_eq!(explanation.candidates().len(), explanation.evidence.len(), "{explanation}");
    let wrong = text.replace("id 0 0", "id 0 1");
    let explanation =
        Explanation::from_recordings([&Recording::read(&wrong).expect("a recording")]);
    assert!(explanation.candidates().is_empty(), "{explanation}");
    assert_eq!(Explanation::default().decided(), None);
}

#[test]
fn a_recording_is_written_as_it_was_read() {
    for (_, text) in RECORDINGS {
        let recording = Recording::read(text).expect("as above");
        assert_eq!(Recording::read(&recording.to_string()).as_ref(), Ok(&recording));
    }
}

#[test]
fn generations_are_told_by_the_release() {
    let name = |release| generation(release).map(|entry| entry.name);
    assert_eq!(name("6.12.117+deb12-cloud-amd64"), Some("linux-6.4"));
    assert_eq!(name("6.3.0"), Some("linux-6.3"));
    assert_eq!(name("6.13-rc1"), Some("linux-6.13"));
    assert_eq!(name("6.18.44"), Some("linux-6.14"));
    assert_eq!(name("7.0.1"), Some("linux-6.19"));
    assert_eq!((name("6.1.0-56-cloud-amd64"), name("5.10.0"), name("")), (None, None, None));
}

#[test]
fn every_generation_has_a_policy_of_its_own() {
    let names = Generation::ALL.map(|generation| of_generation(generation).name);
    assert_eq!(names, ["linux-6.3", "linux-6.4", "linux-6.13", "linux-6.14", "linux-6.19"]);
}

#[test]
fn what_cannot_have_happened_is_refused() {
    for (steps, line, expected) in [
        ("", 1, "`end`"),
        ("0 exec 0 0\n", 2, "`end`"),
        ("0 exec 0\nend", 2, "TIME EVENT"),
        ("0 exec 2 0\nend", 2, "one of 2 CPUs"),
        ("0 exec 0 0\n1 exec 0 0\nend", 3, "one exec"),
        ("0 exec 0 0\n9 switch 0 0 -\n8 switch 0 - 0\nend", 4, "from 9 us on"),
        ("0 exec 0 0\n1 switch 0 - 0\nend", 3, "away from thread 0"),
        ("0 exec 0 0\n1 switch 1 - 0\nend", 3, "does not run elsewhere"),
        ("0 exec 0 0\n1 switch 1 - 4000000000\nend", 3, "one of the 1 threads"),
        ("0 exec 0 0\n1 switch 0 0 -\n2 id 0 0\nend", 4, "running thread"),
        ("0 exec 0 0\n1 tick 1 0\nend", 3, "runs on CPU 1"),
        ("0 exec 0 0\n1 spawn 7 0\nend", 3, "thread 1"),
        ("0 exec 0 0\n1 spawn 1 0\n2 switch 1 - 1\nend", 4, "at most 1"),
        ("99999999999999999999 exec 0 0\nend", 2, "TIME EVENT"),
        // This time is too large for a replay with lengthened durations.
        ("18446744073709551 exec 0 0\nend", 2, "TIME EVENT"),
    ] {
        let text = format!("percid-steps 6.12.0 2 1\n{steps}");
        let error = Recording::read(&text).expect_err(steps);
        assert_eq!(error.line, line, "{steps:?}: {error}");
        assert!(error.expected.contains(expected), "{steps:?}: {error}");
    }
    for head in ["percid-steps 6.12.0 1 2", "percid-steps 6.12.0 4000000000 1", "percid-steps 6"] {
        assert!(Recording::read(&format!("{head}\nend")).is_err(), "{head}");
    }
}

/// The child of `vfork` leaves on CPU 1, and counts until it is gone. Only then are the IDs dense
/// again.
#[test]
fn a_thread_that_leaves_is_counted_until_it_is_gone() {
    let text = |gone: &str, id: u32| {
        format!(
            "percid-steps 6.18.0 2 2\n0 exec 0 0\n1 spawn 1 0\n2 switch 1 - 1\n3 leave 1 1\n\
             4 switch 1 1 -\n{gone}6 switch 0 0 -\n7 migrate 0 0 1\n8 switch 1 - 0\n9 id 0 {id}\nend\n"
        )
    };
    for (gone, id) in [("", 1), ("5 gone 1\n", 0)] {
        let recording = Recording::read(&text(gone, id)).expect("a good recording");
        assert_eq!(recording.to_string(), text(gone, id));
        let comparison = compare(&recording, "linux-6.14");
        assert!(comparison.agrees(), "{gone:?}: {comparison}");
    }
    let error =
        Recording::read(&text("5 gone 0\n5 gone 1\n5 gone 1\n", 0)).expect_err("two threads");
    assert!(error.expected.contains("not ended"), "{error}");
}

/// An ending thread no longer counts when it releases the memory, while it still runs. The other
/// thread is switched in before that CPU has switched, and the IDs are dense again.
#[test]
fn a_thread_that_ends_is_not_counted_before_it_is_switched_away_from() {
    // A scan takes back the ID of CPU 1, which remembers it.
    let text = |steps: &str, id: u32| {
        format!(
            "percid-steps 6.18.0 2 2\n0 exec 0 0\n1 spawn 1 0\n2 switch 1 - 1\n3 id 1 1\n\
             4 switch 1 1 -\n5 tick 0 0\n130000 tick 0 0\n260000 tick 0 0\n{steps}\
             270007 id 1 {id}\nend\n"
        )
    };
    let again = "270005 switch 1 - 1\n";
    let last = "270006 switch 0 0 -\n";
    for (steps, id) in [
        (format!("270003 exit 0 0\n{again}{last}"), 0),
        (format!("270003 leave 0 0\n{again}{last}270006 gone 0\n"), 1),
        (again.to_owned(), 1),
    ] {
        let recording = Recording::read(&text(&steps, id)).expect("a good recording");
        let comparison = compare(&recording, "linux-6.14");
        assert!(comparison.agrees(), "{steps:?}: {comparison}");
    }
}

/// Returns the recording with each ending thread counted until its last switch.
fn counted_until_the_last_switch(recording: &Recording) -> Recording {
    let mut ending = Vec::new();
    let mut steps = Vec::new();
    for &step in &recording.steps {
        let mut gone = None;
        let event = match step.event {
            Event::Exit(cpu, thread) => {
                ending.push(thread);
                Event::Leave(cpu, thread)
            }
            Event::Switch(_, Some(previous), _) if ending.contains(&previous) => {
                ending.retain(|&thread| thread != previous);
                gone = Some(Step { event: Event::Gone(previous), ..step });
                step.event
            }
            event => event,
        };
        steps.push(Step { event, ..step });
        steps.extend(gone);
    }
    Recording { steps, ..recording.clone() }
}

/// Recorded kernels show the time at which the number of threads decreases. On 6.12 and 6.18, no ID
/// of the recordings depends on it.
#[test]
fn recorded_kernels_do_not_count_a_thread_until_its_last_switch() {
    for (policy, text) in RECORDINGS.into_iter().filter(|(policy, _)| *policy == "linux-6.19") {
        let recording = Recording::read(text).expect("as above");
        let later = compare(&counted_until_the_last_switch(&recording), policy);
        assert!(!later.differences.is_empty(), "{} {policy}: {later}", recording.release);
    }
}

/// Two CPUs switch at nearly the same time, and either may have been first.
#[test]
fn a_difference_that_another_order_explains_ends_the_comparison() {
    let recording = |first: &str, second: &str| {
        let text = format!(
            "percid-steps 6.12.0 4 4\n0 exec 0 0\n5 id 0 0\n10 spawn 1 0\n11 spawn 2 0\n\
             20 switch {first}\n21 switch {second}\n30 id 1 2\n31 id 2 1\nend\n"
        );
        Recording::read(&text).expect("a recording")
    };
    let (one, two) = ("1 - 1", "2 - 2");
    let (told, other) = (recording(one, two), recording(two, one));
    let policy = find("linux-6.4").expect("a policy");
    assert_eq!(told.compare(policy).differences.len(), 2, "in the order that is told");
    let same = told.compare_with(policy, [told.clone()]);
    assert_eq!(same.differences.len(), 2, "no other order is possible");
    let either = told.compare_with(policy, [told.clone(), other]);
    assert!(either.agrees(), "{either}");
    assert_eq!((either.compared, either.border), (1, Some(30_000)));
}
