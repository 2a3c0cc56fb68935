//! Questions about schedules whose answers are known by construction.

use percid_sim::machine::Machine;
use percid_sim::random::Random;
use percid_sim::run_control::RunControl;
use percid_sim::topology::{Place, Topology};
use percid_trace::Trace;
use percid_trace::event::{Cpu, Event, IDLE, Shares, Stage, State, Tid, What};
use percid_trace::questions::{
    Delay, Latency, LatencySettings, Migrations, MigrationsSettings, Preemptions,
    PreemptionsSettings, SliceUsage, ThreadLatency, ThreadMigrations, Usage, UsageSettings, Who,
    latency, migrations, preemptions, usage,
};
use percid_trace::threads::Threads;
use percid_trace::window::Window;

const A: Tid = 11;
const B: Tid = 12;
const C: Tid = 13;

/// Microseconds from the first event on.
const US: u64 = 1000;

/// Happens at so many microseconds, on a CPU.
type Happening = (u64, Cpu, What);

fn switch(prev: Tid, state: State, next: Tid) -> What {
    What::Switch { prev, state, next }
}

fn wakeup(thread: Tid, target: Cpu, stage: Stage) -> What {
    What::Wakeup { thread, target, stage }
}

fn trace(happenings: &[Happening]) -> Trace {
    let begin = 7_000_000_000_000;
    let event = |&(us, cpu, what): &Happening| Event { time: begin + us * US, cpu, what };
    let mut events: Vec<Event> = happenings.iter().map(event).collect();
    events.sort_by_key(|event| (event.time, event.cpu));
    Trace { events, ..Trace::default() }
}

/// A runs on CPU 0 and is preempted by B, which was woken; A then waits until B sleeps. C is woken on
/// CPU 1 from idle.
fn known() -> Vec<Happening> {
    let member = |thread, process| What::Member { thread, process };
    vec![
        (0, 0, member(A, A)),
        (0, 0, member(B, A)),
        (0, 0, member(C, C)),
        (0, 1, switch(C, State::SLEEPING, IDLE)),
        (1, 0, switch(B, State::SLEEPING, A)),
        (100, 1, wakeup(B, 0, Stage::Waking)),
        (103, 1, wakeup(B, 0, Stage::Woken)),
        (150, 0, switch(A, State::PREEMPTED, B)),
        (200, 0, wakeup(C, 1, Stage::Waking)),
        (202, 0, wakeup(C, 1, Stage::Woken)),
        (260, 1, switch(IDLE, State::RUNNABLE, C)),
        (900, 0, switch(B, State::SLEEPING, A)),
        (950, 0, switch(A, State::SLEEPING, IDLE)),
        (990, 1, switch(C, State::SLEEPING, IDLE)),
    ]
}

fn asked(happenings: &[Happening], window: Window) -> Latency {
    let settings = LatencySettings { window, worst: 10, ..LatencySettings::default() };
    latency(&trace(happenings), &settings, &RunControl::default())
}

/// The times of a damaged file.
#[test]
fn waits_that_add_up_to_more_than_a_number_holds_are_the_largest() {
    let late = (u64::MAX - 8_000_000_000_000) / US;
    let taken = |cpu, thread, other| {
        [
            (1, cpu, switch(thread, State::PREEMPTED, other)),
            (late, cpu, switch(other, State::SLEEPING, thread)),
        ]
    };
    let happenings = [taken(0, A, C), taken(1, B, C + 1)].concat();
    let mut all = ThreadLatency::default();
    asked(&happenings, Window::default()).threads.iter().for_each(|(_, waits)| all.add(waits));
    assert_eq!((all.preempted, all.preempted_ns, all.run_queue.sum_ns), (2, u64::MAX, u64::MAX));
    let found =
        preemptions(&trace(&happenings), &PreemptionsSettings::default(), &RunControl::default());
    assert_eq!(found.waited_ns, u64::MAX);
}

fn of(found: &Latency, tid: Tid) -> ThreadLatency {
    let all = found.threads.iter().filter(|(thread, _)| found.known.get(*thread).tid == tid);
    all.map(|(_, waits)| waits.clone()).next().unwrap_or_default()
}

/// Returns count, sum and maximum, in microseconds, for run queue and wake-up.
fn told(waits: &ThreadLatency) -> [(u64, u64, u64); 2] {
    [&waits.run_queue, &waits.wake_up]
        .map(|times| (times.count, times.sum_ns / US, times.max_ns / US))
}

#[test]
fn waits_are_those_that_were_made() {
    let found = asked(&known(), Window::default());
    assert_eq!(told(&of(&found, A)), [(1, 750, 750), (0, 0, 0)], "preempted from 150 to 900");
    assert_eq!(told(&of(&found, B)), [(1, 47, 47), (1, 50, 50)], "woken at 100, ready at 103");
    assert_eq!(told(&of(&found, C)), [(1, 58, 58), (1, 60, 60)], "woken at 200 from idle");
    assert_eq!((of(&found, A).preempted, of(&found, A).preempted_ns), (1, 750 * US));
    assert_eq!(of(&found, B).preempted, 0);
}

fn numbers(known: &Threads, ran: &[(Who, u64)]) -> Vec<(Tid, u64)> {
    let number = |who| match who {
        Who::Thread(thread) => known.get(thread).tid,
        Who::Idle => IDLE,
        Who::Unknown => Tid::MAX,
    };
    ran.iter().map(|&(who, ns)| (number(who), ns / US)).collect()
}

#[test]
fn the_longest_waits_tell_what_ran_instead() {
    let found = asked(&known(), Window::default());
    let worst: Vec<(Tid, u64, u64, bool)> = found
        .worst
        .iter()
        .map(|wait| {
            (found.known.get(wait.thread).tid, wait.since / US, wait.ns / US, wait.preempted)
        })
        .collect();
    assert_eq!(worst, [(A, 150, 750, true), (C, 200, 60, false), (B, 100, 50, false)]);
    let instead = [0, 1, 2].map(|nth| numbers(&found.known, &found.worst[nth].instead));
    assert_eq!(instead, [vec![(B, 750)], vec![(IDLE, 60)], vec![(A, 50)]]);
}

/// The control: without the event that begins a wait, it is not made up.
#[test]
fn a_wait_without_its_beginning_does_not_count() {
    let is_of_b = |what: &What| matches!(what, What::Wakeup { thread: B, .. });
    let mut lacking = known();
    lacking.retain(|(_, _, what)| !is_of_b(what));
    let found = asked(&lacking, Window::default());
    assert_eq!(told(&of(&found, B)), [(0, 0, 0); 2]);
    assert_eq!(told(&of(&found, A)), [(1, 750, 750), (0, 0, 0)]);
    // The switch away from A is missing: it has left CPU 0 at some time.
    let mut lacking = known();
    lacking.retain(|(us, ..)| *us != 150);
    let found = asked(&lacking, Window::default());
    assert_eq!(told(&of(&found, A)), [(0, 0, 0); 2]);
}

/// The events of C between two wake-ups were not recorded.
#[test]
fn a_thread_that_is_woken_again_has_not_waited_since_it_was_woken_first() {
    let mut unseen = known();
    unseen.retain(|(us, cpu, _)| *cpu == 0 || *us < 260);
    unseen.push((6000, 1, switch(IDLE, State::RUNNABLE, C)));
    let control = asked(&unseen, Window::default());
    assert_eq!(told(&of(&control, C)), [(1, 5798, 5798), (1, 5800, 5800)], "the control");
    unseen.push((5950, 0, wakeup(C, 1, Stage::Waking)));
    unseen.push((5952, 0, wakeup(C, 1, Stage::Woken)));
    let found = asked(&unseen, Window::default());
    assert_eq!(told(&of(&found, C)), [(1, 48, 48), (1, 50, 50)]);
}

/// CPU 1 was seen to run C only when C got an ID; whoever recorded that has added the switch.
#[test]
fn a_wait_that_ends_with_a_switch_that_was_inferred_does_not_count() {
    let mut inferred = known();
    inferred.retain(|(us, cpu, _)| (*us, *cpu) != (260, 1));
    inferred.push((300, 1, switch(IDLE, State::RUNNABLE, C)));
    inferred.push((300, 1, What::Id { thread: C, node: 0, id: 0 }));
    let mut trace = trace(&inferred);
    let settings = LatencySettings::default();
    let control = latency(&trace, &settings, &RunControl::default());
    assert_eq!(told(&of(&control, C)), [(1, 98, 98), (1, 100, 100)], "the control");
    trace.origin.coverage.inferred = 1;
    let found = latency(&trace, &settings, &RunControl::default());
    assert_eq!(told(&of(&found, C)), [(0, 0, 0); 2]);
    assert_eq!(told(&of(&found, A)), told(&of(&control, A)), "the others do");
}

#[test]
fn without_wake_ups_there_are_waits_after_preemption_only() {
    let mut lacking = known();
    lacking.retain(|(_, _, what)| !matches!(what, What::Wakeup { .. }));
    let found = asked(&lacking, Window::default());
    assert!(!found.wakeups.waking && !found.wakeups.woken);
    assert_eq!(found.threads.len(), 1);
    assert_eq!(told(&of(&found, A)), [(1, 750, 750), (0, 0, 0)]);
    // Only the waking: the run-queue time begins with it.
    let mut waking = known();
    waking.retain(|(_, _, what)| !matches!(what, What::Wakeup { stage: Stage::Woken, .. }));
    let found = asked(&waking, Window::default());
    assert_eq!(told(&of(&found, B)), [(1, 50, 50); 2]);
}

#[test]
fn a_window_has_the_waits_that_end_in_it_at_their_whole_length() {
    let found = asked(&known(), Window { from: 890 * US, to: 910 * US });
    assert_eq!(found.threads.len(), 1);
    assert_eq!(told(&of(&found, A)), [(1, 750, 750), (0, 0, 0)]);
    let before = asked(&known(), Window { from: 0, to: 900 * US });
    assert_eq!(told(&of(&before, A)), [(0, 0, 0); 2], "it has not ended yet");
}

#[test]
fn only_the_processes_that_were_asked_for_count() {
    let settings = LatencySettings { processes: vec![C], worst: 10, ..LatencySettings::default() };
    let found = latency(&trace(&known()), &settings, &RunControl::default());
    assert_eq!(found.threads.len(), 1);
    assert_eq!(told(&of(&found, C)), [(1, 58, 58), (1, 60, 60)]);
    assert_eq!(found.worst.len(), 1);
}

#[test]
fn a_thread_whose_number_is_used_again_has_not_waited_since() {
    let again = [
        (0, 0, switch(IDLE, State::RUNNABLE, A)),
        (10, 0, switch(A, State::PREEMPTED, B)),
        (500, 0, What::Fork { parent: B, child: A, shares: Shares::Nothing }),
        (505, 0, wakeup(A, 0, Stage::New)),
        (600, 0, switch(B, State::SLEEPING, A)),
    ];
    let found = asked(&again, Window::default());
    let waits: Vec<_> = found.threads.iter().map(|(_, waits)| told(waits)).collect();
    assert_eq!(waits, [[(1, 95, 95), (1, 95, 95)]]);
}

fn delays(happenings: &[Happening], settings: &PreemptionsSettings) -> Preemptions {
    preemptions(&trace(happenings), settings, &RunControl::default())
}

/// Returns victim, delaying thread, microseconds, number of stays and number of preemptions.
fn pairs(found: &Preemptions) -> Vec<(Tid, Tid, u64, u64, u64)> {
    let pair = |delay: &Delay| {
        let by = numbers(&found.known, &[(delay.by, delay.ns)])[0];
        let victim = found.known.get(delay.victim).tid;
        (victim, by.0, by.1, delay.waits, delay.preempted)
    };
    let mut pairs: Vec<_> = found.delays.iter().map(pair).collect();
    pairs.sort_unstable();
    pairs
}

#[test]
fn delays_are_those_that_were_made() {
    let found = delays(&known(), &PreemptionsSettings::default());
    let expected = [(A, B, 750, 1, 1), (B, A, 47, 1, 0), (C, IDLE, 58, 1, 0)];
    assert_eq!(pairs(&found), expected);
    assert_eq!((found.waited_ns, found.unattributed_ns), (855 * US, 0));
    let window = Window { from: 140 * US, to: 500 * US };
    let part = delays(&known(), &PreemptionsSettings { window, processes: vec![A] });
    assert_eq!(pairs(&part), [(A, B, 350, 1, 1), (B, A, 10, 1, 0)], "what is in the window");
}

/// The control.
#[test]
fn what_ran_at_a_time_that_is_not_known_delays_nobody() {
    let mut lacking = known();
    // B's beginning is missing, so also that it took the CPU from A.
    lacking.retain(|(us, ..)| *us != 150);
    let found = delays(&lacking, &PreemptionsSettings::default());
    assert!(!pairs(&found).iter().any(|pair| (pair.0, pair.1) == (A, B)));
    assert!(found.unattributed_ns <= found.waited_ns);
}

/// A waits while others take `turns` turns of 10 us.
fn long_wait(turns: u64) -> Vec<Happening> {
    let mut all =
        vec![(0, 0, switch(IDLE, State::RUNNABLE, A)), (10, 0, switch(A, State::PREEMPTED, B))];
    for turn in 1..turns {
        let (prev, next) = if turn.is_multiple_of(2) { (C, B) } else { (B, C) };
        all.push((10 + 10 * turn, 0, switch(prev, State::SLEEPING, next)));
    }
    let last = if turns.is_multiple_of(2) { C } else { B };
    all.push((10 + 10 * turns, 0, switch(last, State::SLEEPING, A)));
    all
}

#[test]
fn of_a_long_wait_the_last_turns_are_told_and_the_rest_is_counted() {
    let short = delays(&long_wait(60), &PreemptionsSettings::default());
    assert_eq!(pairs(&short), [(A, B, 300, 1, 1), (A, C, 300, 1, 0)]);
    assert_eq!(short.unattributed_ns, 0);
    let long = delays(&long_wait(1000), &PreemptionsSettings::default());
    assert_eq!(pairs(&long), [(A, B, 320, 1, 1), (A, C, 320, 1, 0)]);
    assert_eq!(long.unattributed_ns, (10_000 - 640) * US);
}

/// Four CPUs: two cores behind one cache, one behind another, one on another node.
fn machine() -> Machine {
    let at = |core, l3, node| Place { core, l3, socket: node, node };
    let mut machine = Machine::preset("epyc-9654").expect("a preset");
    machine.topology = Topology::new(vec![at(0, 0, 0), at(1, 0, 0), at(2, 1, 0), at(3, 2, 1)]);
    machine
}

fn travelled(happenings: &[Happening]) -> Migrations {
    let settings = MigrationsSettings::default();
    let found = migrations(&trace(happenings), &machine(), &settings, &RunControl::default());
    found.expect("as many CPUs as the machine has")
}

/// A turn on each of these CPUs, after each of which the thread is in this state.
fn turns(turns: &[(Cpu, State)]) -> Vec<Happening> {
    let turn = |(nth, &(cpu, state)): (usize, &(Cpu, State))| {
        let at = 100 * nth as u64;
        [(at, cpu, switch(IDLE, State::RUNNABLE, A)), (at + 50, cpu, switch(A, state, IDLE))]
    };
    turns.iter().enumerate().flat_map(turn).collect()
}

#[test]
fn moves_are_told_with_their_reach_and_why_the_thread_had_stopped() {
    let (sleeps, stops) = (State::SLEEPING, State::PREEMPTED);
    let found = travelled(&turns(&[(0, sleeps), (1, stops), (2, stops), (2, sleeps), (3, sleeps)]));
    let [(_, travels)] = found.threads[..] else { panic!("one thread: {found:?}") };
    assert_eq!((travels.turns, travels.moves()), (5, 3));
    let ThreadMigrations { at_wake_up, while_waiting, cost_ns, .. } = travels;
    assert_eq!((at_wake_up.same_l3, at_wake_up.other_node, at_wake_up.all()), (1, 1, 2));
    assert_eq!((while_waiting.same_node, while_waiting.all()), (1, 1));
    assert!(cost_ns > 0);
}

#[test]
fn far_moves_cost_more_than_near_ones_and_staying_costs_nothing() {
    let cost = |cpu| {
        let found = travelled(&turns(&[(0, State::SLEEPING), (cpu, State::SLEEPING)]));
        found.threads[0].1.cost_ns
    };
    let costs = [0, 1, 2, 3].map(cost);
    assert_eq!(costs[0], 0, "the control");
    assert!(costs.is_sorted_by(|near, far| near < far), "{costs:?}");
}

#[test]
fn a_machine_with_too_few_cpus_is_refused() {
    let trace = trace(&turns(&[(4, State::SLEEPING)]));
    let settings = MigrationsSettings::default();
    let found = migrations(&trace, &machine(), &settings, &RunControl::default());
    assert_eq!(found.expect_err("it has four").cpu, 4);
}

fn used(happenings: &[Happening], slices: u32, window: Window) -> Usage {
    let settings = UsageSettings { window, slices, ..UsageSettings::default() };
    usage(&trace(happenings), &settings, &RunControl::default())
}

/// Busy, idle, and idle while a thread waits elsewhere, in microseconds.
fn did(usage: &SliceUsage) -> (u64, u64, u64) {
    (usage.busy_ns / US, usage.idle_ns / US, usage.idle_while_waiting_ns / US)
}

#[test]
fn cpus_do_what_was_made_and_idle_while_threads_wait_elsewhere() {
    let found = used(&known(), 1, Window::default());
    let all: Vec<_> = found.cpus.iter().map(|cpu| did(&cpu.slices[0])).collect();
    // B waits from 103 to 150 on CPU 0, A from 150 to 900; CPU 1 idles until 260.
    assert_eq!(all, [(950, 40, 0), (730, 260, 157)]);
    assert_eq!(found.cpus[1].worst, Some((0, 157 * US)));
    let ran: u64 = found.cells.iter().map(|cell| cell.ns).sum();
    assert_eq!(ran, (950 + 730) * US);
}

#[test]
fn slices_and_windows_have_their_part() {
    let found = used(&known(), 9, Window { from: 90 * US, to: 990 * US });
    assert_eq!((found.slice_ns, found.from), (100 * US, 90 * US));
    let idle: Vec<_> = found.cpus[1].slices.iter().map(did).collect();
    assert_eq!(idle[..3], [(0, 100, 87), (30, 70, 70), (100, 0, 0)]);
    let sums = |usage: &Usage| {
        let all = usage.cpus.iter().flat_map(|cpu| &cpu.slices).map(did);
        all.fold((0, 0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2))
    };
    let whole = used(&known(), 1, Window { from: 90 * US, to: 990 * US });
    assert_eq!(sums(&found), sums(&whole));
    assert_eq!(sums(&whole).0 + sums(&whole).1, 2 * 900);
}

/// The controls: a thread that may not run elsewhere, and one that waits for its own CPU to wake up.
#[test]
fn nothing_is_lost_where_no_other_cpu_could_help() {
    let mut bound = trace(&known());
    let cpus = bound.texts.intern(b"0");
    let time = bound.events[0].time;
    for thread in [A, B] {
        let what = What::Affinity { thread, cpus };
        bound.events.insert(0, Event { time, cpu: 0, what });
    }
    let settings = UsageSettings { slices: 1, ..UsageSettings::default() };
    let found = usage(&bound, &settings, &RunControl::default());
    assert_eq!(did(&found.cpus[1].slices[0]), (730, 260, 0));
    let mut waking = known();
    waking.retain(|(us, ..)| ![100, 103, 150, 900].contains(us));
    let found = used(&waking, 1, Window::default());
    assert!(found.cpus.iter().all(|cpu| cpu.slices[0].idle_while_waiting_ns == 0));
}

/// Events that no kernel makes: threads that run on several CPUs, are woken while they run, end twice.
fn nonsense(seed: u64) -> Trace {
    let mut random = Random::new(seed);
    let mut time = 0;
    let mut events: Vec<Event> = Vec::new();
    for _ in 0..60 {
        time += random.below(3) * random.below(1000);
        let mut thread = || [IDLE, Tid::MAX, A, B, C][random.below(5) as usize];
        let (one, other) = (thread(), thread());
        let (state, cpu) = (State([0, 1, 0x10, 0x100][random.below(4) as usize]), random.below(4));
        let (cpu, to) = (cpu as Cpu, [0, 3, 7, Cpu::MAX][random.below(4) as usize]);
        let stage = [Stage::Waking, Stage::Woken, Stage::New][random.below(3) as usize];
        let what = match random.below(10) {
            0..=4 => switch(one, state, other),
            5..=6 => wakeup(one, to, stage),
            7 => What::Migrate { thread: one, from: cpu, to },
            8 => What::Fork { parent: one, child: other, shares: Shares::Process },
            _ => What::Exec { thread: one, old: other },
        };
        events.push(Event { time, cpu, what });
    }
    events.sort_by_key(|event| (event.time, event.cpu));
    Trace { events, ..Trace::default() }
}

#[test]
fn nonsense_gets_answers_that_are_possible() {
    let control = RunControl::default();
    for seed in 0..3000 {
        let trace = nonsense(seed);
        let first = trace.events[0].time;
        let span = trace.events.iter().map(|event| event.time - first).max().unwrap_or(0);
        let waits = latency(&trace, &LatencySettings { worst: 3, ..Default::default() }, &control);
        assert!(waits.worst.iter().all(|wait| wait.since + wait.ns <= span), "{seed}");
        let told = |wait: &percid_trace::questions::LongWait| {
            wait.instead.iter().map(|&(_, ns)| ns).sum::<u64>() <= wait.ns
        };
        assert!(waits.worst.iter().all(told), "{seed}");
        let delays = preemptions(&trace, &PreemptionsSettings::default(), &control);
        let attributed: u64 = delays.delays.iter().map(|delay| delay.ns).sum();
        assert_eq!(attributed + delays.unattributed_ns, delays.waited_ns, "{seed}");
        let found = migrations(&trace, &machine(), &MigrationsSettings::default(), &control);
        assert!(found.is_ok(), "{seed}");
        let settings = UsageSettings { slices: 7, ..UsageSettings::default() };
        for cpu in usage(&trace, &settings, &control).cpus {
            let did = cpu.slices.iter().map(|slice| slice.busy_ns + slice.idle_ns);
            assert!(did.sum::<u64>() <= span, "{seed}");
            let lost = |slice: &SliceUsage| slice.idle_while_waiting_ns <= slice.idle_ns;
            assert!(cpu.slices.iter().all(lost), "{seed}");
        }
    }
}
