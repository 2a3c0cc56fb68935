//! Replays of schedules that were made by hand, and of two that real kernels recorded together with
//! their IDs.

use percid_sim::conformance::{Event as Step, Recording};
use percid_sim::cost::{Found, Idle, Prices};
use percid_sim::machine::Machine;
use percid_sim::policies::{ALL, Impossible, Policy, PolicySpec, Process, Work, find};
use percid_sim::random::Random;
use percid_sim::run_control::RunControl;
use percid_sim::topology::{Place, Topology};
use percid_sim::workload::Memory;
use percid_trace::Trace;
use percid_trace::event::{Event, IDLE, Shares, Stage, State, Tid, UNKNOWN, What};
use percid_trace::interner::Interner;
use percid_trace::replay::{Recorded, Replay, Settings, SpaceReplay, advice, replay};

/// Two nodes of two caches of two cores of one thread: CPUs 0 to 7.
fn machine(cpus: u32) -> Machine {
    let place = |cpu| Place { core: cpu, l3: cpu / 2, socket: cpu / 4, node: cpu / 4 };
    let mut machine = Machine::preset("epyc-9654").expect("a preset");
    machine.topology = Topology::new((0..cpus).map(place).collect());
    machine
}

/// Writes schedules down.
#[derive(Default)]
struct Script {
    trace: Trace,
    time: u64,
}

impl Script {
    fn at(&mut self, ms: u64) -> &mut Script {
        self.time = ms * 1_000_000;
        self
    }

    fn event(&mut self, cpu: u32, what: What) -> &mut Script {
        self.trace.events.push(Event { time: 5_000_000_000 + self.time, cpu, what });
        self.time += 1000;
        self
    }

    fn switch(&mut self, cpu: u32, prev: Tid, next: Tid) -> &mut Script {
        self.event(cpu, What::Switch { prev, state: State(1), next })
    }

    fn process(&mut self, threads: impl IntoIterator<Item = Tid>, process: Tid) -> &mut Script {
        for thread in threads {
            self.event(0, What::Member { thread, process });
        }
        self
    }

    fn name(&mut self, thread: Tid, name: &str) -> &mut Script {
        let name = self.trace.texts.intern(name.as_bytes());
        self.event(0, What::Name { thread, name })
    }

    fn play(&self, policy: &str) -> Replay {
        play(&self.trace, policy)
    }
}

fn play(trace: &Trace, policy: &str) -> Replay {
    let settings = Settings { turns_kept: usize::MAX, ..Settings::default() };
    let policy = find(policy).expect("a policy");
    replay(trace, &machine(8), policy, &settings, &RunControl::default()).expect("it fits")
}

/// `taskset -a -cp 0,1 PID` on a process that began under `taskset -c 0`: nothing in the trace tells of
/// it before a thread is moved to CPU 1.
#[test]
fn an_affinity_that_was_widened_from_outside_is_seen_by_where_threads_go() {
    let mut script = Script::default();
    script.process([20], 20);
    let zero = script.trace.texts.intern(b"0");
    script.event(0, What::Affinity { thread: 20, cpus: zero }).switch(0, IDLE, 20);
    script.event(0, What::Exec { thread: 20, old: 20 }).at(1);
    script.event(0, What::Fork { parent: 20, child: 21, shares: Shares::Process });
    script.at(2).switch(0, 20, IDLE);
    script.event(0, What::Migrate { thread: 20, from: 0, to: 1 }).at(3);
    script.switch(0, IDLE, 21).at(4).switch(1, IDLE, 20).at(5);
    // A time at which nothing else happens.
    script.switch(1, 20, IDLE).event(0, What::Migrate { thread: 20, from: 1, to: 5 });
    script.at(6).switch(1, IDLE, 21).at(7).switch(1, 21, IDLE);
    for policy in ALL {
        let replay = script.play(policy.name);
        let [_, space] = &replay.spaces[..] else { panic!("{}: {replay:?}", policy.name) };
        assert_eq!((space.stuck, replay.spaces_stuck), (None, 0), "{}", policy.name);
        assert_eq!(space.summary.allowed_cpus, 6, "{}", policy.name);
    }
}

/// Finds the second turn of any thread impossible.
#[derive(Default)]
struct OneTurn(u32);

impl Policy for OneTurn {
    fn exec(&mut self, _: &Process<'_>, _: u32, _: u32) -> Result<(), Impossible> {
        Ok(())
    }

    fn switch(
        &mut self,
        _: &Process<'_>,
        _: u32,
        _: Option<u32>,
        next: Option<u32>,
    ) -> Result<(), Impossible> {
        self.0 += u32::from(next.is_some());
        if self.0 > 1 { Err(Impossible("it had its turn")) } else { Ok(()) }
    }

    fn id(&mut self, _: &Process<'_>, _: u32, _: u32) -> Result<u32, Impossible> {
        Ok(0)
    }

    fn work(&self) -> Work {
        Work::default()
    }
}

#[test]
fn a_policy_that_cannot_go_on_with_one_process_goes_on_with_the_others() {
    let entry =
        PolicySpec { name: "one-turn", about: "", create: &|_| Box::new(OneTurn::default()) };
    let mut script = Script::default();
    script.process([30], 30).process([40], 40).at(1).switch(0, IDLE, 30).switch(1, IDLE, 40);
    script.at(2).switch(0, 30, IDLE).at(3).switch(0, IDLE, 30).at(4).switch(1, 40, IDLE);
    let settings = Settings { turns_kept: usize::MAX, ..Settings::default() };
    let replay = replay(&script.trace, &machine(8), &entry, &settings, &RunControl::default());
    let replay = replay.expect("it fits");
    let stuck: Vec<_> = replay.spaces.iter().map(|space| space.stuck.map(|s| s.why.0)).collect();
    assert_eq!(stuck, [Some("it had its turn"), None]);
    assert_eq!(replay.spaces_stuck, 1);
    assert!(replay.is_whole && replay.spaces[0].summary.turns == 2, "{replay:?}");
}

#[test]
fn turns_moves_and_most_running_threads_are_counted() {
    let mut script = Script::default();
    script.process([11, 12, 13], 11).at(1);
    script.switch(0, IDLE, 11).switch(1, IDLE, 12).at(3).switch(0, 11, IDLE);
    script.switch(2, IDLE, 11).at(4).switch(2, 11, IDLE).switch(7, IDLE, 11).at(6);
    script.switch(7, 11, 13).at(7).switch(7, 13, IDLE).switch(1, 12, IDLE);
    let replay = script.play("per-cpu");
    let [space] = &replay.spaces[..] else { panic!("one process: {replay:?}") };
    let summary = &space.summary;
    assert_eq!(
        (summary.process, summary.threads, summary.most_running, summary.turns),
        (11, 3, 2, 5)
    );
    assert_eq!((summary.moves.same_node, summary.moves.other_node), (1, 1), "0 to 2, 2 to 7");
    assert!((9_900_000..10_100_000).contains(&(summary.run_ns - 2_000_000)), "{}", summary.run_ns);
    assert!(!summary.guessed);
    let tally = &space.tally;
    assert_eq!((tally.ids_used, tally.ids_bound), (4, 8), "CPUs 0, 1, 2 and 7");
    assert_eq!((tally.acquisitions.first, tally.acquisitions.same_cpu), (4, 1));
    assert_eq!(tally.memory_bytes, 4 * 16384);
}

#[test]
fn a_process_for_which_there_was_no_room_is_not_begun_in_the_middle() {
    let mut script = Script::default();
    let settings = Settings { policy_bytes: 1000, ..Settings::default() };
    script.process([11], 11).process([12], 12).process([13], 13).at(1);
    script.switch(0, IDLE, 11).switch(1, IDLE, 12).at(2);
    script.event(0, What::Exit { thread: 11 }).switch(0, 11, IDLE).at(3);
    script.switch(1, 12, IDLE).switch(2, IDLE, 12).at(4).switch(3, IDLE, 13).at(5);
    let policy = find("per-cpu").expect("a policy");
    let replay = replay(&script.trace, &machine(8), policy, &settings, &RunControl::default());
    let replay = replay.expect("it fits");
    let processes: Vec<Tid> = replay.spaces.iter().map(|space| space.summary.process).collect();
    assert_eq!(processes, [11, 13], "one at a time");
    assert_eq!((replay.spaces_refused, replay.spaces_left_out), (1, 0));
}

#[test]
fn a_thread_that_wanders_takes_its_table_id_along_and_leaves_cpu_numbers_behind() {
    let mut script = Script::default();
    script.process([20, 21], 20);
    for turn in 0..40_u64 {
        let cpu = (turn * 3 % 8) as u32;
        script.at(10 * turn + 1).switch(cpu, IDLE, 20).at(10 * turn + 2).switch(cpu, 20, IDLE);
    }
    let (table, numbers) = (script.play("percid-table"), script.play("per-cpu"));
    let stolen = table.turns.iter().filter(|turn| turn.stolen).count() as u64;
    let (table, numbers) = (&table.spaces[0].tally, &numbers.spaces[0].tally);
    assert_eq!(stolen, table.work.steals, "each steal is that of a turn");
    assert_eq!(numbers.ids_used, 8);
    assert!(table.ids_used <= 2, "{table:?}");
    assert!(table.work.steals > 0);
    assert_eq!(numbers.acquisitions.shares(), [1.0; 4]);
    assert!(table.acquisitions.shares()[0] < 0.2);
}

/// A turn on CPU 0 after 1 ms, then one of the same ID on the other node, whose core and cache have idled
/// for 10 ms by then.
#[test]
fn a_turn_costs_what_its_memory_costs_by_the_prices_of_the_machine() {
    let mut script = Script::default();
    script.process([70], 70).at(1).switch(0, IDLE, 70).at(2).switch(0, 70, IDLE);
    script.at(10).switch(4, IDLE, 70).at(11).switch(4, 70, IDLE);
    let machine = machine(8);
    let prices = Prices::new(&machine, Memory::ZeroPage);
    let ms = 1_000_000;
    let idle = |time| Idle { cpu: time, core: time, l3: time };
    let (_, first) = prices.burst(&Found::new(&machine.topology, 0, None, idle(ms)));
    let (_, moved) = prices.burst(&Found::new(&machine.topology, 4, Some(0), idle(10 * ms)));
    let replay = script.play("per-thread");
    assert_eq!(replay.spaces[0].tally.burst_ns, first + moved);
}

#[test]
fn a_process_bears_its_own_name_and_not_that_of_the_program_which_follows() {
    let mut script = Script::default();
    script.process([30], 30).name(30, "shell").at(1).switch(0, IDLE, 30).at(2);
    script
        .event(0, What::Fork { parent: 30, child: 31, shares: Shares::Nothing })
        .name(31, "shell");
    script.at(3).switch(1, IDLE, 31).at(400).name(31, "compiler").at(401);
    script.event(1, What::Exec { thread: 31, old: 31 }).at(500).name(31, "compiler 2").at(900);
    script.event(1, What::Exec { thread: 31, old: 31 }).at(901).switch(1, 31, IDLE);
    let replay = script.play("per-cpu");
    let names: Vec<&str> = replay.spaces.iter().map(|space| space.summary.name.as_str()).collect();
    assert_eq!(names, ["shell", "shell", "compiler 2", "compiler 2"], "its own, long before exec");
}

#[test]
fn each_exec_begins_another_address_space_and_vfork_does_not() {
    let mut script = Script::default();
    script.process([30], 30).at(1).switch(0, IDLE, 30).at(2);
    script.event(0, What::Fork { parent: 30, child: 31, shares: Shares::Memory }).at(3);
    script.switch(1, IDLE, 31).at(4);
    script.event(1, What::Exec { thread: 31, old: 31 }).at(5);
    script.event(1, What::Fork { parent: 31, child: 32, shares: Shares::Process }).at(6);
    script.switch(2, IDLE, 32).at(7);
    script.event(2, What::Exec { thread: 31, old: 32 }).at(9);
    script.switch(2, 31, IDLE).switch(0, 30, IDLE);
    let replay = script.play("linux-6.14");
    let of = |at: usize| {
        let summary = &replay.spaces[at].summary;
        (summary.process, summary.threads, summary.most_running)
    };
    assert_eq!(replay.spaces.len(), 3, "{replay:?}");
    assert_eq!(of(0), (30, 2, 2), "the child ran in it until it replaced its program");
    assert_eq!(of(1), (31, 2, 2));
    assert_eq!(of(2), (31, 1, 1), "a thread replaced the program of all");
}

#[test]
fn kernel_threads_have_no_ids_and_unlisted_threads_are_guessed_at() {
    let mut script = Script::default();
    let mut texts = Interner::default();
    let name = texts.intern(b"kworker/0:1");
    script.trace.texts = texts;
    script.event(0, What::Name { thread: 40, name }).at(1);
    script.event(0, What::Fork { parent: 2, child: 42, shares: Shares::Memory });
    for thread in [40, 41, 42] {
        script.switch(0, IDLE, thread).switch(0, thread, IDLE);
    }
    let replay = script.play("per-thread");
    let [space] = &replay.spaces[..] else { panic!("{replay:?}") };
    assert!(space.summary.guessed && space.summary.process == 41);
    let mut listed = Script::default();
    listed.process([50], 50).at(1);
    listed.switch(0, IDLE, 51).switch(0, 51, 50).switch(0, 50, IDLE);
    let replay = listed.play("per-thread");
    assert_eq!(replay.spaces.len(), 1, "where members are listed, whoever is not is the kernel's");
}

#[test]
fn what_a_trace_leaves_out_is_made_up_for() {
    let mut script = Script::default();
    script.process([60, 61], 60).at(1);
    script.switch(0, 60, IDLE).at(2).switch(1, UNKNOWN, 61).at(3);
    // The switch from 61 to 60 on CPU 1 is lost, and 61 appears elsewhere.
    script.switch(1, 60, IDLE).at(4).switch(2, IDLE, 61).at(5).switch(3, IDLE, 61).at(6);
    let replay = script.play("per-cpu");
    let summary = &replay.spaces[0].summary;
    assert_eq!(summary.most_running, 1, "never both at once");
    assert_eq!(summary.turns, 5, "60 from the beginning, 61, 60 when it stops, 61 twice");
    assert!(replay.turns.iter().all(|turn| turn.from <= turn.to));
    for (at, turn) in replay.turns.iter().enumerate() {
        let overlap = |other: &&percid_trace::replay::Turn| {
            other.thread == turn.thread && other.from < turn.to && turn.from < other.to
        };
        assert!(!replay.turns[at + 1..].iter().any(|other| overlap(&other)), "{turn:?}");
    }
}

/// A recording on these CPUs, of as many as there were, that is replayed on a large machine.
fn recorded(cpus: &str, online: u32) -> Recorded<'_> {
    Recorded { cpus, online, machine: 384 }
}

/// Returns the conclusions about the last process of a schedule, under two policies.
fn said(script: &Script, recorded: Recorded<'_>) -> Vec<String> {
    let replays = ["per-cpu", "percid-table"].map(|policy| (policy, script.play(policy)));
    let spaces = replays
        .each_ref()
        .map(|(policy, replay)| (*policy, replay.spaces.last().expect("a process")));
    let said = advice(&spaces, recorded, 16384);
    let begins = if recorded.cpus.contains('-') { "On CPUs " } else { "On CPU " };
    assert!(said.iter().all(|sentence| sentence.starts_with(begins)), "{said:?}");
    said
}

#[test]
fn advice_tells_of_the_cpus_that_were_recorded_and_not_of_those_of_the_machine() {
    let mut busy = Script::default();
    busy.process([11, 12, 13], 11).at(1).switch(0, IDLE, 11).switch(1, IDLE, 12).at(2);
    busy.switch(0, 11, 13).at(3).switch(0, 13, IDLE).switch(1, 12, IDLE);
    let all = &said(&busy, recorded("0-1", 2))[0];
    assert!(all.contains("all 2 CPUs") && all.contains("a recording there says how many"), "{all}");
    assert!(!all.contains("384"), "{all}");
    busy.trace.origin.online_cpus = Some(8);
    let some = &said(&busy, recorded("0-1", 8))[0];
    assert!(some.starts_with("On CPUs 0-1 of 8 it never ran more than 2 threads"), "{some}");
    assert!(some.contains("2 shards sufficed instead of 8 (32 KiB instead of 128 KiB)"), "{some}");
    let mut alone = Script::default();
    alone.process([11, 12], 11).at(1).switch(0, IDLE, 11).at(2).switch(0, 11, 12);
    alone.at(3).switch(0, 12, IDLE);
    let only = &said(&alone, recorded("0", 1))[0];
    assert!(only.contains("the only CPU") && only.contains("2 threads"), "{only}");
}

/// One thread that goes round: its memory stays where numbers of CPUs are the IDs.
#[test]
fn advice_does_not_contradict_itself() {
    let mut script = Script::default();
    script.process([20], 20);
    for turn in 0..120_u64 {
        let cpu = (turn * 3 % 8) as u32;
        script.at(10 * turn + 1).switch(cpu, IDLE, 20).at(10 * turn + 2).switch(cpu, 20, IDLE);
    }
    let said = said(&script, recorded("0-7", 8)).join("\n");
    assert!(said.contains("one shard of the data served it"), "{said}");
    assert!(said.contains("times as dear") && !said.contains("nothing nearer"), "{said}");
}

#[test]
fn one_id_is_no_ids() {
    let mut script = Script::default();
    script.process([20, 21], 20);
    for turn in 0..120_u64 {
        let cpu = (turn % 2) as u32;
        script.at(10 * turn + 1).switch(cpu, IDLE, 20).at(10 * turn + 2).switch(cpu, 20, IDLE);
    }
    let spaces = [script.play("per-cpu"), script.play("percid-table")]
        .map(|mut replay| replay.spaces.pop().expect("a process"));
    let mut dear = spaces[0].clone();
    dear.tally.burst_ns *= 3;
    let cheap = replay_of_one_id(&spaces[1]);
    let said = advice(&[("dear", &dear), ("cheap", &cheap)], recorded("0-1", 2), 16384).join("\n");
    assert!(said.contains("under cheap, with 1 ID;") && !said.contains("1 IDs"), "{said}");
}

/// The same with a single ID.
fn replay_of_one_id(space: &SpaceReplay) -> SpaceReplay {
    let mut space = space.clone();
    space.tally.ids_used = 1;
    space.tally.burst_ns = 1000;
    space
}

/// Text of ftrace with the option record-tgid, of a process whose first thread does not run.
#[test]
fn a_process_that_is_known_by_another_thread_has_that_ones_name() {
    let line = |time, prev: &str, next: &str| {
        format!(
            "{prev:>16}-{} ({}) [000] d..2.     1.{time:06}: sched_switch: prev_comm={prev} prev_pid={} \
             prev_prio=120 prev_state=S ==> next_comm={next} next_pid={} next_prio=120\n",
            if prev == "worker" { 71 } else { 0 },
            if prev == "worker" { "     70" } else { "-------" },
            if prev == "worker" { 71 } else { 0 },
            if next == "worker" { 71 } else { 0 },
        )
    };
    let text = line(20, "swapper", "worker") + &line(30, "worker", "swapper");
    let trace = percid_trace::read::read_bytes(text.as_bytes()).expect("a trace");
    let summaries = percid_trace::replay::summaries(&trace);
    let names: Vec<_> =
        summaries.iter().map(|space| (space.process, space.name.as_str())).collect();
    assert_eq!(names, [(70, "worker")]);
}

/// Found by fuzzing: the times of a damaged file.
#[test]
fn running_times_that_add_up_to_more_than_a_number_holds_are_the_largest() {
    let mut script = Script::default();
    script.process([20, 21], 20).switch(0, IDLE, 20).switch(1, IDLE, 21);
    script.time = u64::MAX - 6_000_000_000;
    script.switch(0, 20, IDLE).switch(1, 21, IDLE);
    let [ref space] = percid_trace::replay::summaries(&script.trace)[..] else { panic!("one") };
    assert_eq!(space.run_ns, u64::MAX);
}

#[test]
fn advice_on_a_process_whose_threads_are_not_told_says_so() {
    let hints = |script: &Script| {
        let replay = script.play("per-cpu");
        let advice = advice(&[("per-cpu", &replay.spaces[0])], recorded("0", 8), 16384);
        advice.iter().filter(|sentence| sentence.contains("task:task_newtask")).count()
    };
    let (mut unknown, mut known) = (Script::default(), Script::default());
    known.process([41], 41);
    for script in [&mut unknown, &mut known] {
        script.at(1).switch(0, IDLE, 41).at(2).switch(0, 41, IDLE);
    }
    assert_eq!((hints(&unknown), hints(&known)), (1, 0));
}

/// Texts round times, and events of one moment are in the order of their CPUs.
#[test]
fn a_thread_that_goes_to_another_cpu_within_a_moment_is_there_and_not_back() {
    let moved = |moment: u64| {
        let mut script = Script::default();
        script.process([11], 11).at(1).switch(4, IDLE, 11);
        let away = What::Switch { prev: 11, state: State::RUNNABLE, next: IDLE };
        let here = What::Switch { prev: IDLE, state: State::RUNNABLE, next: 11 };
        let mut both = [(4, away), (0, here)];
        both[..].sort_by_key(|&(cpu, _)| if moment == 0 { cpu } else { 4 - cpu });
        for (cpu, what) in both {
            script.at(2).time += moment * u64::from(cpu == 0);
            script.event(cpu, what);
        }
        script.at(7).switch(0, 11, IDLE);
        let replay = script.play("percid-table");
        let space = &replay.spaces[0];
        let summary = &space.summary;
        (
            summary.turns,
            summary.moves,
            summary.run_ns,
            space.tally.acquisitions,
            space.tally.work.steals,
        )
    };
    let (turns, moves, run_ns, acquisitions, steals) = moved(0);
    assert_eq!((turns, moves.other_node, run_ns, steals), (2, 1, 6_000_000, 1));
    assert_eq!(moved(1), (turns, moves, run_ns - 1, acquisitions, steals), "one nanosecond later");
}

#[test]
fn a_machine_with_too_few_cpus_is_refused() {
    let mut script = Script::default();
    script.switch(8, IDLE, 5);
    let policy = find("per-cpu").expect("a policy");
    let refused =
        replay(&script.trace, &machine(8), policy, &Settings::default(), &RunControl::default());
    let said = refused.expect_err("CPU 8 of 8").to_string();
    assert!(said.contains("CPU 8") && said.contains("8 CPUs"), "{said}");
}

/// A recording as a trace, and the IDs that the kernel gave: when, to which thread.
fn as_trace(recording: &Recording) -> (Trace, Vec<(u64, u32, u32)>) {
    let tid = |thread: u32| 1000 + thread;
    let of = |thread: Option<u32>| thread.map_or(IDLE, tid);
    let (mut trace, mut ids) = (Trace::default(), Vec::new());
    trace.events.push(Event {
        time: 0,
        cpu: 0,
        what: What::Member { thread: tid(0), process: tid(0) },
    });
    let everywhere = trace.texts.intern(format!("0-{}", recording.allowed - 1).as_bytes());
    for step in &recording.steps {
        let time = step.time;
        let (cpu, what) = match step.event {
            Step::Exec(cpu, thread) => {
                let enter = What::Switch { prev: IDLE, state: State(0), next: tid(thread) };
                trace.events.push(Event { time, cpu, what: enter });
                let all = What::Affinity { thread: tid(thread), cpus: everywhere };
                trace.events.push(Event { time, cpu, what: all });
                (cpu, What::Exec { thread: tid(thread), old: tid(thread) })
            }
            Step::Spawn(thread, parent) => {
                let shares = Shares::Process;
                (0, What::Fork { parent: tid(parent), child: tid(thread), shares })
            }
            Step::Affinity(thread, cpus) => {
                let list = if cpus == 1 { "0".to_owned() } else { format!("0-{}", cpus - 1) };
                let cpus = trace.texts.intern(list.as_bytes());
                (0, What::Affinity { thread: tid(thread), cpus })
            }
            Step::Migrate(thread, from, to) => (0, What::Migrate { thread: tid(thread), from, to }),
            Step::Switch(cpu, prev, next) => {
                (cpu, What::Switch { prev: of(prev), state: State(1), next: of(next) })
            }
            Step::Tick(cpu, thread, _) => (cpu, What::Tick { thread: tid(thread) }),
            Step::Exit(cpu, thread) => (cpu, What::Exit { thread: tid(thread) }),
            Step::Leave(..) | Step::Gone(_) => unreachable!("nobody leaves by vfork there"),
            Step::Id(thread, id) => {
                ids.push((time, thread, id));
                continue;
            }
        };
        trace.events.push(Event { time, cpu, what });
    }
    (trace, ids)
}

/// Returns how many of the kernel's IDs are those of a policy, and how many are not.
fn agreement(text: &str, policy: &str) -> (usize, usize) {
    let recording = Recording::read(text).expect("a recording");
    let (trace, ids) = as_trace(&recording);
    let replay = play(&trace, policy);
    let space = replay.spaces.last().expect("the program").number;
    let agrees = |&&(time, thread, id): &&(u64, u32, u32)| {
        let mut turns = replay.turns.iter().rev();
        let turn = turns.find(|turn| {
            turn.space == space && turn.thread == thread && (turn.from..=turn.to).contains(&time)
        });
        turn.is_some_and(|turn| turn.id == id)
    };
    let right = ids.iter().filter(agrees).count();
    (right, ids.len() - right)
}

#[test]
fn the_ids_are_those_that_real_kernels_gave() {
    let recordings = [
        ("linux-6.4", include_str!("../../../percid-sim/tests/recordings/linux-6.12.txt")),
        ("linux-6.14", include_str!("../../../percid-sim/tests/recordings/linux-6.18.txt")),
    ];
    for (policy, text) in recordings {
        let (right, wrong) = agreement(text, policy);
        println!("{policy}: {right} IDs right, {wrong} wrong");
        assert!(right > 100 && wrong == 0, "{policy}: {right} right, {wrong} wrong");
        for other in ["linux-6.3", "linux-6.19", "per-thread"] {
            let (_, wrong) = agreement(text, other);
            assert!(wrong > 0, "{other} passes for {policy}");
        }
    }
}

/// Events as no kernel would write them: nothing follows from anything.
fn nonsense(random: &mut Random, events: usize) -> Trace {
    let mut trace = Trace::default();
    let lists = ["0", "2-5", "7", "", "nonsense", "0-400", "9-12"];
    let lists = lists.map(|list| trace.texts.intern(list.as_bytes()));
    let mut time = 0;
    for _ in 0..events {
        let mut thread = || [IDLE, UNKNOWN, 2, 5, 6, 7, 8, 9][random.below(8) as usize];
        let (a, b) = (thread(), thread());
        let (kind, cpu) = (random.below(24), random.below(8) as u32);
        let (from, to) = (random.below(9) as u32, random.below(9) as u32);
        time += random.below(3_000_000) * random.below(2);
        let what = match kind {
            0 => What::Fork { parent: a, child: b, shares: Shares::Process },
            1 => What::Fork { parent: a, child: b, shares: Shares::Memory },
            2 => What::Fork { parent: a, child: b, shares: Shares::Nothing },
            3 => What::Fork { parent: a, child: b, shares: Shares::Unknown },
            4 => What::Exec { thread: a, old: b },
            5 | 6 => What::Exit { thread: a },
            7 => What::Affinity { thread: a, cpus: lists[random.below(7) as usize] },
            8 => What::Tick { thread: a },
            9 => What::Member { thread: a, process: b },
            10 => What::Name { thread: a, name: lists[random.below(7) as usize] },
            11 => What::Id { thread: a, node: 0, id: from },
            12 => What::Wakeup { thread: a, target: to, stage: Stage::Waking },
            13..16 => What::Migrate { thread: a, from, to },
            _ => What::Switch { prev: a, state: State(0), next: b },
        };
        trace.events.push(Event { time, cpu, what });
    }
    trace
}

/// Checks the properties of every schedule, however absurd.
fn check(replay: &Replay, policy: &str) {
    assert_eq!(replay.spaces_stuck, 0, "{policy} is told what a kernel would have told it");
    for space in &replay.spaces {
        let (summary, tally) = (&space.summary, &space.tally);
        assert!(
            summary.most_running <= 8 && summary.most_running <= summary.most_threads,
            "{policy}: {summary:?}"
        );
        // A thread that lost the table's ID while it ran gets another one at the next tick only.
        let robbed = policy == "percid-table" && tally.work.steals > 0;
        assert!(robbed || tally.ids_used >= summary.most_running, "{policy}: {space:?}");
        assert!(tally.acquisitions.all() >= summary.turns.min(1), "{policy}: {space:?}");
        assert!(summary.run_ns <= 8 * replay.duration_ns, "{policy}: {summary:?}");
    }
    let mut turns: Vec<_> = replay.turns.iter().collect();
    turns.sort_by_key(|turn| (turn.space, turn.id, turn.from, turn.to));
    for pair in turns.windows(2) {
        let same = (pair[0].space, pair[0].id) == (pair[1].space, pair[1].id);
        assert!(!same || pair[0].to <= pair[1].from, "{policy}: two hold an ID at once: {pair:?}");
    }
}

#[test]
fn no_schedule_is_too_absurd_for_any_policy() {
    let seed = std::env::var("PERCID_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("PERCID_SEED={seed}");
    let mut random = Random::new(seed);
    for _ in 0..300 {
        let trace = nonsense(&mut random, 300);
        for policy in ALL {
            check(&play(&trace, policy.name), policy.name);
        }
    }
}

#[test]
fn a_thread_that_ends_may_sleep_and_run_again_before_it_is_gone() {
    let mut script = Script::default();
    script.process([50, 51], 50).at(1).switch(0, IDLE, 50).switch(1, IDLE, 51).at(2);
    script.event(1, What::Exit { thread: 51 }).at(3).switch(1, 51, IDLE);
    script.at(4).switch(0, 50, 51).at(5).switch(0, 51, 50).at(6);
    script.event(0, What::Fork { parent: 50, child: 51, shares: Shares::Nothing }).at(7);
    script.switch(1, IDLE, 51).at(8).switch(1, 51, IDLE);
    let replay = script.play("linux-6.14");
    let summaries: Vec<_> = replay.spaces.iter().map(|space| &space.summary).collect();
    assert_eq!(summaries.len(), 2, "{summaries:?}");
    assert_eq!(
        (summaries[0].threads, summaries[0].most_threads, summaries[0].turns),
        (2, 2, 3),
        "{summaries:?}"
    );
    assert_eq!(
        (summaries[1].process, summaries[1].threads, summaries[1].turns),
        (51, 1, 1),
        "the number is used again"
    );
}

#[test]
fn a_thread_whose_end_shows_by_its_last_switch_only_is_gone() {
    let mut script = Script::default();
    script.process([60], 60).at(1).switch(0, IDLE, 60);
    for child in 61..71 {
        script.at(u64::from(child) * 10);
        script.event(0, What::Fork { parent: 60, child, shares: Shares::Process });
        script.switch(1, IDLE, child).at(u64::from(child) * 10 + 5);
        script.event(1, What::Switch { prev: child, state: State::DEAD, next: IDLE });
    }
    let replay = script.play("linux-6.14");
    let summary = &replay.spaces[0].summary;
    assert_eq!((summary.threads, summary.most_threads), (11, 2), "one at a time beside the first");
}

#[test]
fn who_was_created_in_the_trace_has_not_run_since_its_beginning() {
    let mut script = Script::default();
    script.at(1).switch(0, IDLE, 70).at(100);
    script.event(0, What::Fork { parent: 70, child: 71, shares: Shares::Process });
    // The switch to it is missing.
    script.at(110).switch(1, 71, IDLE).at(120).switch(0, 70, IDLE);
    let replay = script.play("per-cpu");
    let [space] = &replay.spaces[..] else { panic!("one process: {replay:?}") };
    let summary = &space.summary;
    assert!(summary.run_ns < 120_000_000, "{} ns", summary.run_ns);
}

#[test]
fn a_pause_of_years_is_not_ticked_through() {
    let mut script = Script::default();
    script
        .process([80], 80)
        .at(1)
        .switch(0, IDLE, 80)
        .at(200 * 365 * 86_400_000)
        .switch(0, 80, IDLE);
    assert_eq!(script.play("linux-6.14").spaces[0].summary.turns, 1);
}
