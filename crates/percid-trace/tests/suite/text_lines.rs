//! Lines of text, also such as are written only to confuse a reader.

use crate::fixture;

use fixture::{assert_same, bytes, error, events, from_text, path, trace};
use percid_trace::event::{Shares, State, UNKNOWN, What};
use percid_trace::read;

/// The only event of a line.
fn what(line: &str) -> What {
    let trace = from_text(line);
    let mut events = trace.events.iter().map(|event| event.what);
    let what = events.find(|what| !matches!(what, What::Name { .. } | What::Member { .. }));
    what.unwrap_or_else(|| panic!("no event in {line}"))
}

/// The names that a line tells, in its order.
fn names(line: &str) -> Vec<String> {
    let trace = from_text(line);
    let names = trace.events.iter().filter_map(|event| match event.what {
        What::Name { name, .. } => Some(trace.texts.get(name).to_owned()),
        _ => None,
    });
    names.collect()
}

/// A name as all writers align it: by its bytes.
fn aligned(name: &str) -> String {
    " ".repeat(16 - name.len()) + name
}

fn switch_between(prev: &str, next: &str) -> String {
    let head = aligned(prev);
    format!(
        "{head}-71    [003] d..2.  5.000001: sched_switch: prev_comm={prev} prev_pid=71 \
         prev_prio=120 prev_state=S ==> next_comm={next} next_pid=72 next_prio=98\n"
    )
}

/// Names of at most 15 bytes, made of the words that lines are made of.
const NASTY: [&str; 24] = [
    "a",
    "a-1 3",
    "a 1/2",
    " ",
    "[000]",
    "-1",
    "a-1 [0] 1.0: b:",
    "1 [0] 1.0: a:b:",
    " ==> next_comm=",
    "==> next_comm=x",
    " prev_state=S",
    " prev_prio=1",
    " prev_pid=1",
    " next_prio=1",
    " next_pid=1",
    "next_comm=",
    "prev_comm=",
    "comm=",
    "a:1 [1] S ==> b",
    "(  12) [001]",
    "# CPU:0 [LOST 9",
    "PERF_RECORD_LOS",
    "ü\u{301}\u{200b}:",
    "sched_switch: a",
];

#[test]
fn any_two_names_are_told_apart_in_a_switch() {
    for prev in NASTY {
        for next in NASTY {
            let line = switch_between(prev, next);
            let switch = What::Switch { prev: 71, state: State::SLEEPING, next: 72 };
            assert_eq!(what(&line), switch, "{line}");
            assert_eq!(names(&line), [prev, next], "{line}");
        }
    }
}

#[test]
fn any_two_names_are_told_apart_in_a_fork() {
    for parent in NASTY {
        for child in NASTY.into_iter().chain([" child_comm=", "x child_pid=1"]) {
            let head = aligned(parent);
            let line = format!(
                "{head}-71    [003] .....  5.000001: sched_process_fork: comm={parent} pid=71 \
                 child_comm={child} child_pid=72\n"
            );
            let fork = What::Fork { parent: 71, child: 72, shares: Shares::Unknown };
            assert_eq!(what(&line), fork, "{line}");
            assert_eq!(names(&line), [child], "{line}");
        }
    }
}

#[test]
fn any_name_is_told_by_the_other_events() {
    for name in NASTY.into_iter().chain([" pid=1 prio=1", " target_cpu=1", " clone_flags=1"]) {
        let head = aligned(if name.len() > 15 { "sh" } else { name });
        for event in [
            format!("sched_waking: comm={name} pid=72 prio=120 target_cpu=001"),
            format!("sched_wakeup: comm={name} pid=72 prio=120 success=1 target_cpu=001"),
            format!("sched_wakeup_new: comm={name} pid=72 prio=120 target_cpu=001"),
            format!("sched_migrate_task: comm={name} pid=72 prio=120 orig_cpu=0 dest_cpu=1"),
            format!("sched_process_exit: comm={name} pid=72 prio=120"),
            format!("sched_process_exit: comm={name} pid=72 prio=120 group_dead=false"),
            format!("task_newtask: pid=72 comm={name} clone_flags=3d0f00 oom_score_adj=0"),
            format!("task_rename: pid=72 oldcomm={name} newcomm={name} oom_score_adj=-1"),
        ] {
            let line = format!("{head}-71    [003] .....  5.000001: {event}\n");
            assert_eq!(names(&line), [name], "{line}");
        }
        // Nothing here tells a blank at the beginning of a name from padding.
        let line =
            format!("{head}-71    [003]  5.000001: sched_wakeup:  {name}:72 [120] CPU:001\n");
        assert_eq!(names(&line).join(""), name.trim_start(), "{line}");
    }
}

#[test]
fn every_writer_puts_the_same_event_into_its_own_line() {
    const BODY: &str = "prev_comm=my app prev_pid=7 prev_prio=120 prev_state=R+ ==> \
                        next_comm=swapper/12 next_pid=0 next_prio=120";
    let expected = "1413242796041 12 Switch { prev: 7, state: State(256), next: 0 }";
    for line in [
        format!("          my app-7       [012] d..2.  1413.242796041: sched_switch: {BODY}"),
        format!(
            "          my app-7       (-------) [012] d..2.  1413.242796041: sched_switch: {BODY}"
        ),
        format!("          my app-7     [012]  1413.242796041: sched_switch:         {BODY}"),
        format!("  my app-7      12d..2.  1413.242796041: sched_switch:         {BODY}"),
        format!("          my app     7 [012]  1413.242796041:       sched:sched_switch: {BODY}"),
        format!("my app 7 [012] 1413.242796041: sched:sched_switch: {BODY}\r"),
        "          my app-7     [012]  1413.242796041: sched_switch:         \
         my app:7 [120] R+ ==> swapper/12:0 [120]"
            .to_owned(),
    ] {
        let events = events(&from_text(&line));
        assert_eq!(events.last().map(String::as_str), Some(expected), "{line}");
        assert_eq!(names(&line), ["my app"], "{line}");
    }
}

#[test]
fn any_name_may_stand_before_the_thread() {
    const BODY: &str = "rseq_update: cpu_id=3 node_id=0 mm_cid=5";
    let expected = ["5000001000 3 Id { thread: 71, node: 0, id: 5 }"];
    for name in NASTY {
        let head = aligned(name);
        for line in [
            format!("{head}-71    [003] d..2.  5.000001: {BODY}"),
            format!("{head}-71    (-------) [003] d..2.  5.000001: {BODY}"),
            format!("{head}-71    [003]  5.000001: {BODY}"),
            format!("{head}-71    3d..2.  5.000001: {BODY}"),
            format!("{head}    71 [003]  5.000001:       rseq:{BODY}"),
        ] {
            assert_eq!(events(&from_text(&line)), expected, "{line}");
        }
    }
}

#[test]
fn processes_are_told_where_lines_tell_them() {
    for line in [
        "          my app-7       (      5) [012] d..2.  1.000002: rseq_update: cpu_id=12 node_id=1 mm_cid=3",
        "          my app     5/7     [012]  1.000002: rseq:rseq_update: cpu_id=12 node_id=1 mm_cid=3",
    ] {
        let events = events(&from_text(line));
        let member = "1000002000 12 Member { thread: 7, process: 5 }";
        let id = "1000002000 12 Id { thread: 7, node: 1, id: 3 }";
        assert_eq!(events, [member, id], "{line}");
    }
}

#[test]
fn states_are_the_kernels_bits() {
    let state = |text: &str| {
        let line = switch_between("a", "b").replace("prev_state=S", &format!("prev_state={text}"));
        match what(&line) {
            What::Switch { state, .. } => state.0,
            other => panic!("{other:?}"),
        }
    };
    for (text, bits) in [
        ("R", 0),
        ("R+", 0x100),
        ("S", 1),
        ("D", 2),
        ("T", 4),
        ("t", 8),
        ("X", 0x10),
        ("Z", 0x20),
        ("P", 0x40),
        ("I", 0x80),
        ("S|D", 3),
        ("D|I", 0x82),
        ("0x82", 0x82),
        // The kernel has no more letters, and what it has none for is no part of a state.
        ("D|0x400", 2),
    ] {
        assert_eq!(state(text), bits, "{text}");
    }
    assert_eq!(State::from_kernel(0x402), State(2));
}

#[test]
fn only_the_tick_is_a_tick() {
    let line = |function: &str| {
        format!(
            "<idle>-0 [001] d.h1. 1.0000001: hrtimer_expire_entry: hrtimer=0x1 now=12 function={function}\n\
             <idle>-0 [001] d.h1. 1.000001: sched_process_exit: comm=a pid=1 prio=1\n"
        )
    };
    let ticks = |function| {
        let trace = from_text(&line(function).replace("1.0000001", "1.000000"));
        trace.events.iter().filter(|event| event.what == What::Tick { thread: 0 }).count()
    };
    assert_eq!(ticks("tick_nohz_handler"), 1);
    assert_eq!(ticks("tick_sched_timer"), 1);
    assert_eq!(ticks("tick_nohz_handler/0x0"), 1);
    assert_eq!(ticks("hrtimer_wakeup"), 0);
    assert_eq!(ticks("tick_sched_timer_dying"), 0);
}

#[test]
fn losses_and_cpus_are_told() {
    let event = switch_between("a", "b");
    let origin = |text: &str| from_text(&format!("{text}\n{event}")).origin;
    assert_eq!(origin("# tracer: nop").lost, 0);
    assert_eq!(origin("CPU:1 [LOST 123 EVENTS]").lost, 123);
    assert_eq!(origin("CPU:1 [LOST 123 EVENTS]\nCPU:0 [LOST 7 EVENTS]").lost, 130);
    assert_eq!(origin("CPU:1 [17 EVENTS DROPPED]").lost, 17);
    assert_eq!(origin("CPU:1 [EVENTS DROPPED]").lost, 1);
    assert_eq!(origin("CPU 1 is empty").lost, 0);
    assert_eq!(origin("  a 1 [000] 1.000001: PERF_RECORD_LOST lost 12").lost, 12);
    let head = origin("# entries-in-buffer/entries-written: 1200/1500   #P:4");
    assert_eq!((head.lost, head.online_cpus), (300, Some(4)));
    assert_eq!(origin("cpus=6").possible_cpus, Some(6));
}

#[test]
fn other_lines_and_events_are_passed_over() {
    let text = format!(
        "# tracer: nop\nversion = 6\n\n\tffffffff810 do_syscall ([kernel])\n\
         a-1 [000] 1.000000: sched_stat_runtime: comm=a pid=1 runtime=5 [ns]\n\
         a-1 [000] 1.000000: rseq_update: cpu_id=3\n\
         a-1 [000] 1.000000: bprint: sched_switch: hello\n{}",
        switch_between("a", "b")
    );
    let trace = from_text(&text);
    assert_eq!(
        trace.events.iter().filter(|event| !matches!(event.what, What::Name { .. })).count(),
        1
    );
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    let good = switch_between("a", "b");
    for (bad, expected) in [
        (good.replace("next_pid=72", "next_pid=x"), "line 2: sched_switch should say prev_comm="),
        (good.replace(" prev_state=S", ""), "line 2: sched_switch should say prev_comm="),
        (
            good.replace("prev_state=S", "prev_state=Q"),
            "line 2: sched_switch should say prev_comm=",
        ),
        (good.replace("=72", "=99999999999"), "line 2: sched_switch should say prev_comm="),
        (good[..good.len() - 20].to_owned(), "line 2: sched_switch should say prev_comm="),
        ("a-1 [0] 1.000000: sched_waking: comm=a".into(), "line 2: sched_waking should say comm="),
        ("a-1 [0] 1.000000: sched_waking:".into(), "line 2: sched_waking should say comm="),
        ("a-1 [0] 1.000000: task_newtask: pid=1".into(), "line 2: task_newtask should say pid="),
        ("x".repeat(20_000), "line 2: the line is longer than 16384 bytes"),
    ] {
        let message = error(&format!("{good}{bad}"));
        assert!(message.starts_with(expected), "{message:?} does not begin with {expected:?}");
    }
}

#[test]
fn a_text_without_events_is_refused() {
    for text in ["", "\n", "hello\nworld\n", "-", "cpus=2\n", "a-1 [000] 1.5: sched_wakings: x\n"] {
        let message = error(text);
        assert!(message.starts_with("line 1: no line is that of an event"), "{text:?}: {message}");
        assert!(message.contains("perf.data"), "{message}");
    }
}

#[test]
fn what_trace_cmd_and_perf_write_otherwise_is_named() {
    let message = error("{\n\t\"linux-perf-json-version\": 1,\n");
    assert!(message.contains("expected was the perf.data that it is made of"), "{message}");
    let message = read::read(&path("perfetto")).expect_err("it is a directory").to_string();
    assert!(message.contains("what perf record --threads makes"), "{message}");
}

#[test]
fn times_that_no_clock_reaches_are_refused() {
    let line = |seconds: &str| {
        format!("a-7 [000] d..2. {seconds}: sched_process_exit: comm=a pid=7 prio=120\n")
    };
    assert_eq!(from_text(&line("9223372036.854775")).events.len(), 2);
    let refused = error(&line("9223372036.854776"));
    assert!(refused.contains("expected at most 9223372036854775807"), "{refused}");
}

/// Options of the writers and clocks of the kernel that make other lines than these are read.
#[test]
fn a_switch_in_a_line_of_another_kind_is_an_error_and_not_left_out() {
    let says = "sched_switch: prev_comm=a prev_pid=71 prev_prio=120 prev_state=S ==> next_comm=b next_pid=72 next_prio=98";
    let readable = switch_between("a", "b");
    let others = [
        // perf script without the CPU or the time
        format!("               a    71 12665.778112:       sched:{says}"),
        format!("               a    71 [001]       sched:{says}"),
        // the clocks counter, uptime and x86-tsc
        format!("               a-71    [001] d..2. 33081077598584: {says}"),
        format!("               a-71    [001]33081077598584: {says}"),
        // the options latency-format, verbose and nocontext-info
        format!("       a-71      0d..2. 15581us : {says}"),
        format!(
            "               a   71   1 0 00000000 00000001 [2f6b617aa] 21.000ms (+0.009ms): {says}"
        ),
        says.to_owned(),
    ];
    for other in others {
        let expected = error(&format!("{readable}{other}\n"));
        assert!(
            expected.starts_with("line 2: a sched_switch should begin with NAME-"),
            "{expected}"
        );
        let names_clocks = expected.contains("uptime, counter and x86-tsc");
        assert_eq!(names_clocks, other.contains("33081077598584"), "{expected}");
    }
}

#[test]
fn what_only_looks_like_a_switch_is_left_out() {
    let readable = switch_between("a", "b");
    for other in [
        "sched_switch: a    71 [001]     5.000000000: PERF_RECORD_COMM: sched_switch: a:71/71",
        "#                              sched_switch: what a comment says",
        "\tffffffff813cc94a trace_event_raw_event_sched_switch+0x6a ([kernel.kallsyms])",
    ] {
        assert_eq!(
            events(&from_text(&format!("{readable}{other}\n"))),
            events(&from_text(&readable))
        );
    }
}

/// Variants of the same line by `perf script -F` and options of `trace-cmd report`.
#[test]
fn lines_with_more_or_less_in_front_of_the_event_are_read() {
    let says = "sched_switch: prev_comm=a prev_pid=71 prev_prio=120 prev_state=S ==> next_comm=b next_pid=72 next_prio=98";
    let usual =
        from_text(&format!("               a    71 [001] 12665.778112:       sched:{says}\n"));
    assert_eq!(usual.events.len(), 3, "two names and the switch");
    for other in [
        format!("               a    70/71  [001] 12665.778112:       sched:{says}"),
        format!("               a    71 [001] 12665.778112:          1 sched:{says}"),
        format!("    70/71  [001] 12665.778112:       sched:{says}"),
        format!("11489 [001] 12665.778112:       sched:{says}"),
        format!("               a [001] 12665.778112:       sched:{says}"),
        format!("[001] 12665.778112:          1       sched:{says}"),
        format!("               a-71    [001] 12665.778112: (+106)   {says}"),
        format!("               a-71    (-----) [001] d..2 12665.778112: {says}\r"),
        // trace-cmd report -R
        format!("               a-71    [001] 12665.778112: {says}")
            .replace("prev_state=S ==>", "prev_state=1"),
    ] {
        let mut read = from_text(&format!("{other}\n"));
        read.events.retain(|event| !matches!(event.what, What::Member { .. }));
        assert_eq!(events(&read), events(&usual), "{other}");
    }
}

#[test]
fn what_happens_to_a_thread_is_not_read_from_lines_without_it() {
    let message = error("[001] 1.000000:  rseq:rseq_update: cpu_id=1 node_id=0 mm_cid=3\n");
    assert!(message.contains("rseq_update happens to a thread"), "{message}");
}

/// A number of lines with switches, and some that cannot be read.
fn with_unread(read: usize, unread: usize) -> String {
    let good = switch_between("a", "b").repeat(read);
    let bad = "               a-71 [001] 5.000000: sched_waking: comm=\n".repeat(unread);
    format!("{good}{bad}")
}

#[test]
fn a_line_that_cannot_be_read_is_counted_and_many_are_refused() {
    let unread = |read, unread| from_text(&with_unread(read, unread)).origin.coverage.unread;
    assert_eq!([unread(20, 0), unread(20, 1), unread(20, 2)], [0, 1, 2]);
    let refused = error(&with_unread(20, 3));
    assert!(refused.starts_with("line 21: sched_waking should say comm="), "{refused}");
    let long = format!("{}{}\n", with_unread(20, 0), "x".repeat(20_000));
    assert_eq!(from_text(&long).origin.coverage.unread, 1);
}

#[test]
fn lines_that_could_not_be_read_lower_what_may_be_concluded() {
    use percid_trace::quality::{Quality, QualityLevel, Reason};
    let reasons = |text: &str| -> Vec<(QualityLevel, Reason)> {
        let judged = Quality::from_trace(&from_text(text));
        judged.limitations.iter().map(|found| (found.at_most, found.reason)).collect()
    };
    assert!(reasons(&with_unread(200, 1)).contains(&(QualityLevel::Limited, Reason::Unread(1))));
    assert!(!reasons(&with_unread(200, 0)).contains(&(QualityLevel::Limited, Reason::Unread(1))));
}

/// Pages in the formats of Android's systrace since 2014, and before.
#[test]
fn pages_of_systrace_have_the_lines_of_a_trace() {
    let text = String::from_utf8(bytes("tracefs.txt")).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    let script = format!("var x = 'sched_switch: of the script';{}", "x".repeat(40_000));
    let page = format!(
        "<!DOCTYPE html>\n<html>\n<head><script>{script}</script>\n\
         <script class=\"trace-data\" type=\"application/json\">\n{{\"traceEvents\":[]}}\n</script>\n\
         <script class=\"trace-data\" type=\"application/text\">\n{text}</script>\n{script}\n</html>\n"
    );
    assert_same(&from_text(&page), &from_text(&text));
    assert_eq!(from_text(&page).origin, from_text(&text).origin);
    let old: String = lines.iter().map(|line| format!("{line}\\n\\\n")).collect();
    let old = format!(
        "<html>\n<script>{script}\n  var linuxPerfData = \"\\\n{old}\\n\";\n</script>\n{script}\n"
    );
    assert_same(&from_text(&old), &from_text(&text));
    let odd = page.replacen("sched_switch: prev_comm", "sched_switch: prev_com", 1);
    assert_eq!(from_text(&odd).origin.coverage.unread, 1);
    let without = error(&format!("<html>\n<script>{script}</script>\n"));
    assert!(without.contains("no line is that of an event"), "{without}");
}

/// The lines of a thread's turns, from the same recording as `sched.data`.
#[test]
fn turns_of_perf_sched_timehist_are_those_of_the_recording() {
    let turns = |name: &str| {
        let trace = trace(name);
        let mut turns = Vec::new();
        let mut running = std::collections::HashMap::new();
        for event in &trace.events {
            let What::Switch { prev, next, state } = event.what else { continue };
            // Microseconds, which perf cuts off; the first turn of a CPU has no beginning.
            let since = running.insert(event.cpu, (event.time / 1000, next));
            let since = since.filter(|&(_, thread)| thread == prev).map(|(since, _)| since);
            if prev != 0 {
                turns.push((event.time / 1000, event.cpu, prev, state.is_runnable(), since));
            }
        }
        turns
    };
    let (told, recorded) = (turns("timehist.txt"), turns("sched.data"));
    assert!(told.len() > 100, "{}", told.len());
    assert_eq!(told.len(), recorded.len());
    let unknown = told.iter().filter(|turn| turn.2 == UNKNOWN).count();
    assert!(unknown < told.len() / 5, "{unknown} of {}", told.len());
    for (told, recorded) in told.iter().zip(&recorded) {
        // perf does not know the thread that leaves a CPU for the last time.
        let thread = if told.2 == UNKNOWN { recorded.2 } else { told.2 };
        assert_eq!(
            (told.0, told.1, thread, told.3),
            (recorded.0, recorded.1, recorded.2, recorded.3)
        );
        if let (Some(told), Some(recorded)) = (told.4, recorded.4) {
            assert!(told.abs_diff(recorded) <= 1, "{told} and {recorded}");
        }
    }
}

#[test]
fn perf_sched_timehist_may_have_names_like_its_columns() {
    let heading = "           time    cpu  task name                       wait time  sch delay   run time  state\n";
    let turn = |name: &str| {
        format!(
            "{heading}       7.165973 [0001]  {name:30}      0.000      0.008      0.017      R \n"
        )
    };
    let read = from_text(&turn("a] 1.000[3/2]"));
    assert_eq!(
        events(&read),
        [
            "7165956000 1 Switch { prev: 4294967295, state: State(0), next: 3 }",
            "7165973000 1 Member { thread: 3, process: 2 }",
            "7165973000 1 3 \"a] 1.000\"",
            "7165973000 1 Switch { prev: 3, state: State(0), next: 4294967295 }",
        ]
    );
    let refused = error(&turn("a"));
    assert!(refused.starts_with("line 2: expected was SECONDS [CPU] NAME["), "{refused}");
    assert!(error(heading).contains("tells of no turn"));
}

/// `trace-cmd report -i names.dat -i wakes.dat` writes names of files where else those of buffers stand.
#[test]
fn text_of_several_files_is_refused_and_that_of_several_buffers_is_not() {
    let text = |name: &str| String::from_utf8(bytes(name)).expect("text");
    let files = text("several-files.txt");
    let refused = error(&files);
    assert!(
        refused.starts_with("line 1: ") && refused.contains("(names.dat, wakes.dat)"),
        "{refused}"
    );
    assert!(refused.contains("let it write each file by itself"), "{refused}");
    let one = text("instances.7.txt");
    assert!(from_text(&one).events.len() > 30, "the control");
    let as_other_systems = one.replace('\n', "\r\n");
    assert_eq!(from_text(&as_other_systems).events.len(), from_text(&one).events.len());
    // Without the line that tells them apart, what buffers of one machine have: lines without a name.
    let without_head = |text: &str| -> String {
        text.lines()
            .filter(|line| !line.contains("cpus="))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    assert_eq!(from_text(&without_head(&one)).events.len(), from_text(&one).events.len());
    let files = without_head(&files);
    assert!(from_text(&files).events.len() > 10, "all lines of one buffer, or of one file");
    let mixed = files.replacen("names.dat:", "wakes.dat:", 1);
    let refused = error(&mixed);
    assert!(refused.contains("(wakes.dat, names.dat), and no line `cpus=NUMBER`"), "{refused}");
    let with_head = format!("cpus=2\n{mixed}");
    assert!(from_text(&with_head).events.len() > 10, "two buffers, and none of the whole system");
    let many: String = (0..9).map(|nr| format!("file-{nr}.d: cpus=2\n")).collect();
    assert!(error(&many).contains("file-3.d, ...)"), "{}", error(&many));
}

/// The output of `docs/how-to/schedule.bt`.
#[test]
fn lines_of_bpftrace_are_read() {
    let trace = trace("bpftrace.txt.gz");
    let count = |kind: &str| trace.events.iter().filter(|event| event.what.name() == kind).count();
    for kind in ["switch", "waking", "wakeup", "wakeup_new", "migrate", "fork", "exec", "exit"] {
        assert!(count(kind) > 0, "no {kind}");
    }
    assert_eq!((trace.origin.coverage.unread, trace.origin.lost), (0, 0));
    let judged = percid_trace::quality::Quality::from_trace(&trace);
    assert!(judged.permits_advice(), "{judged}");
    let line = switch_between("a", "b");
    assert_eq!(from_text(&format!("{line}Lost 12 events\n{line}Lost 3 events\n")).origin.lost, 15);
}
