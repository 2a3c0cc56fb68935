//! Records are decoded as their descriptions say, whatever kernel wrote them.

use percid_trace::collector::Tracepoint;
use percid_trace::formats::{ByteOrder, Formats};

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
";

/// The description of an event with these fields: type and name, offset, size, whether signed.
fn description(event: &str, id: u32, fields: &[(&str, usize, usize, u8)]) -> String {
    let mut text = format!("name: {event}\nID: {id}\nformat:\n{COMMON}\n");
    for (field, offset, size, signed) in fields {
        text += &format!("\tfield:{field};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    text + "\nprint fmt: \"%d\", REC->pid\n"
}

/// A record with these bytes at these offsets.
fn record(id: u16, pid: i32, order: ByteOrder, parts: &[(usize, &[u8])]) -> Vec<u8> {
    let mut record = vec![0xaa; 8];
    record[..2].copy_from_slice(&number(id.into(), 2, order));
    record[4..].copy_from_slice(&number(pid as u64, 4, order));
    for &(offset, bytes) in parts {
        record.resize(record.len().max(offset + bytes.len()), 0xaa);
        record[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    record
}

fn number(number: u64, size: usize, order: ByteOrder) -> Vec<u8> {
    match order {
        ByteOrder::Little => number.to_le_bytes()[..size].to_vec(),
        ByteOrder::Big => number.to_be_bytes()[8 - size..].to_vec(),
    }
}

#[test]
fn fields_are_found_where_the_description_says() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        // The layout of Linux 6.12, and one that no kernel has: the same fields at other offsets
        // and with other sizes.
        for (offsets, state_size) in [([8, 24, 32, 40, 56], 8), ([50, 10, 26, 30, 46], 4)] {
            let [prev_comm, prev_pid, prev_state, next_comm, next_pid] = offsets;
            let mut formats = Formats::new(order, true);
            let fields = [
                ("char prev_comm[16]", prev_comm, 16, 0),
                ("pid_t prev_pid", prev_pid, 4, 1),
                ("long prev_state", prev_state, state_size, 1),
                ("char next_comm[16]", next_comm, 16, 0),
                ("pid_t next_pid", next_pid, 4, 1),
            ];
            formats
                .add("sched", &description("sched_switch", 372, &fields))
                .expect("a description");
            let bytes = record(
                372,
                71,
                order,
                &[
                    (prev_comm, b"make\0xxxxxxxxxxx"),
                    (prev_pid, &number(71, 4, order)),
                    (prev_state, &number(0x102, state_size, order)),
                    (next_comm, b"fifteen bytes..\0"),
                    (next_pid, &number(72, 4, order)),
                ],
            );
            let Ok(Some((
                71,
                Tracepoint::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid },
            ))) = formats.decode(&bytes)
            else {
                panic!("{:?}", formats.decode(&bytes));
            };
            assert!(prev_comm.starts_with(b"make\0") && next_comm == b"fifteen bytes..\0");
            assert_eq!((prev_pid, prev_state, next_pid), (71, 0x102, 72));
        }
    }
}

#[test]
fn texts_of_any_length_are_found() {
    let order = ByteOrder::NATIVE;
    for (kind, base) in [("__data_loc", 0), ("__rel_loc", 12)] {
        let mut formats = Formats::default();
        let comm = format!("{kind} char[] child_comm");
        let fields = [
            (comm.as_str(), 8, 4, 0),
            ("pid_t parent_pid", 12, 4, 1),
            ("pid_t child_pid", 16, 4, 1),
        ];
        formats
            .add("sched", &description("sched_process_fork", 5, &fields))
            .expect("a description");
        let place = |offset: u64, len: u64| number(len << 16 | (offset - base), 4, order);
        let bytes = |place: Vec<u8>| {
            let parts: [(usize, &[u8]); 4] = [
                (8, &place),
                (12, &number(1, 4, order)),
                (16, &number(2, 4, order)),
                (20, b"sh\0"),
            ];
            record(5, 1, order, &parts)
        };
        let fork =
            Tracepoint::SchedProcessFork { parent_pid: 1, child_comm: b"sh\0", child_pid: 2 };
        assert_eq!(formats.decode(&bytes(place(20, 3))), Ok(Some((1, fork))));
        for (offset, len) in [(20, 4), (21, 3), (24, 0), (20, 0xffff)] {
            let bytes = bytes(place(offset, len));
            let decoded = formats.decode(&bytes);
            assert!(decoded.is_err(), "{kind}: {len} bytes at {offset}: {decoded:?}");
        }
    }
}

#[test]
fn numbers_may_have_any_size() {
    // clone_flags is unsigned long before Linux 6.17: four bytes on machines of 32 bits.
    for (kind, size) in [("u64 clone_flags", 8), ("unsigned long clone_flags", 4)] {
        let mut formats = Formats::new(ByteOrder::Little, size == 8);
        let fields = [("pid_t pid", 8, 4, 1), ("char comm[16]", 12, 16, 0), (kind, 32, size, 0)];
        formats.add("task", &description("task_newtask", 9, &fields)).expect("a description");
        let parts: [(usize, &[u8]); 3] =
            [(8, &[7, 0, 0, 0]), (12, &[0; 16]), (32, &number(0x3d_0f00, size, ByteOrder::Little))];
        let bytes = record(9, -1, ByteOrder::Little, &parts);
        let newtask = Tracepoint::TaskNewtask { comm: &[0; 16], pid: 7, clone_flags: 0x3d_0f00 };
        assert_eq!(formats.decode(&bytes), Ok(Some((u32::MAX, newtask))));
        let message = formats.decode(&bytes[..bytes.len() - 1]).expect_err("it is too short");
        assert_eq!(
            message,
            format!(
                "task_newtask has {} bytes where its description needs {}",
                31 + size,
                32 + size
            )
        );
    }
}

#[test]
fn a_missing_field_is_named() {
    let mut formats = Formats::default();
    let fields = [("char comm[16]", 8, 16, 0), ("pid_t pid", 24, 4, 1)];
    let message = formats.add("sched", &description("sched_waking", 1, &fields));
    let expected = "the description of sched:sched_waking has no field target_cpu";
    assert_eq!(message, Err(expected.to_owned()));
    let fields =
        [("struct name comm", 8, 15, 0), ("pid_t pid", 24, 4, 1), ("int target_cpu", 28, 4, 1)];
    let message =
        formats.add("sched", &description("sched_waking", 1, &fields)).expect_err("no text");
    assert!(
        message.contains("as its field comm, where an array of char was expected"),
        "{message}"
    );
}

#[test]
fn what_no_trace_needs_is_passed_over() {
    let mut formats = Formats::default();
    assert_eq!(formats.decode(&[1, 2, 3]), Ok(None), "nothing is described");
    for (system, event) in [("sched", "sched_stat_wait"), ("mine", "sched_switch")] {
        formats.add(system, &description(event, 3, &[])).expect("it is not needed");
    }
    // Before Linux 6.3 it had no concurrency ID.
    formats
        .add("rseq", &description("rseq_update", 4, &[("s32 cpu_id", 8, 4, 1)]))
        .expect("as of old");
    assert!(!formats.has("rseq_update") && !formats.has("sched_switch"));
    assert_eq!(formats.decode(&record(4, 1, ByteOrder::NATIVE, &[(8, &[0; 4])])), Ok(None));
}

#[test]
fn the_tick_is_told_by_the_kernels_symbols() {
    let mut formats = Formats::default();
    let description = description("hrtimer_expire_entry", 6, &[("void * function", 8, 8, 0)]);
    formats.add("timer", &description).expect("a description");
    let bytes = record(6, 4, ByteOrder::NATIVE, &[(8, &0xffff_8000_1234_5678u64.to_ne_bytes())]);
    assert_eq!(formats.decode(&bytes), Ok(None), "no symbols are known");
    formats.add_symbols(
        b"0000000000000000 t tick_sched_timer\nffff800012345600 T hrtimer_wakeup\n\
          ffff800012345678 t tick_nohz_handler\nffff800012345679 t tick_nohz_handler_of_mine\t[m]\nx\n",
    );
    assert_eq!(formats.decode(&bytes), Ok(Some((4, Tracepoint::Tick))));
    let hidden = record(6, 4, ByteOrder::NATIVE, &[(8, &[0; 8])]);
    assert_eq!(formats.decode(&hidden), Ok(None), "a hidden address is none");
}

#[test]
fn hostile_descriptions_are_errors() {
    let good = description(
        "sched_process_exec",
        4,
        &[("pid_t pid", 8, 4, 1), ("pid_t old_pid", 12, 4, 1)],
    );
    Formats::default().add("sched", &good).expect("a description");
    for bad in [
        good.replace("ID: 4", "ID: 70000"),
        good.replace("ID: 4", "ID: x"),
        good.replace("ID: 4", "ID: é"),
        good.replace("pid_t old_pid", "pié_t old_pid"),
        good.replace("pid_t old_pid", "struct x old_pid"),
        good.replace("offset:12", "offset:x"),
        good.replace("size:4;", "size:3;"),
        good.replace("size:4;", "size:99999999999999999999;"),
        good.replace("common_pid", "common_dip"),
        good.replace("common_type", "common_epyt"),
        format!("{good}{}", "x".repeat(2 << 20)),
        good.replace("print fmt", "format:\n\nprint fmt").replace("old_pid", "pid"),
    ] {
        let mut formats = Formats::default();
        let added = formats.add("sched", &bad);
        let record = [&4u16.to_ne_bytes()[..], &[0; 6]].concat();
        // The rest of a description may still be valid, but no record fits it.
        assert!(added.is_err() || formats.decode(&record).is_err(), "{bad}");
    }
}
