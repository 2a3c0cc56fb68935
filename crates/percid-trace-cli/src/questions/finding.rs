//! One finding of `percid trace advise`: its cost, evidence and recommended change, as text.

use std::fmt;
use std::path::Path;

use percid_command::table::Table;
use percid_report::Page;
use percid_trace::event::{Cpu, Tid};
use percid_trace::questions::{Loss, LossKind, LostMoment, ThreadMigrations};
use serde::Serialize;

use super::names::{Named, Names};
use super::programs::Programs;
use crate::printable::{labelled, printable};
use crate::times::{ms, percent, seconds};

/// Time to wake up, on average, from which on a CPU is slow. In nanoseconds.
pub(super) const SLOW_NS: u64 = 50_000;

/// The circumstances of the recording, with which its moments can be found again.
pub(super) struct Circumstances<'a> {
    /// The beginning of sentences.
    pub(super) on: String,
    pub(super) cpus: &'a str,
    /// `true` if the recording contains the CPUs on which threads may run.
    pub(super) has_affinities: bool,
    /// Length of the time that the findings are about, in nanoseconds.
    pub(super) length_ns: u64,
    /// Time of the first event on the recording's clock.
    pub(super) begin: u64,
    pub(super) file: &'a Path,
    pub(super) programs: &'a Programs,
}

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Bound,
    NotMigrated,
    Throttled,
    SlowWakeUp,
    OtherProcess,
    SameProcess,
    Moves,
    Ids,
}

/// A finding: a cause of lost time.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) kind: Kind,
    pub(super) process: Tid,
    name: String,
    /// Number of processes of this name that it covers. `process` is the first of them.
    processes: u64,
    /// The process that ran instead. If there are several, the one that delayed most.
    by: Option<Other>,
    /// All processes that ran instead, the one that delayed most first.
    others: Vec<Other>,
    pub(super) lost_ns: u64,
    pub(super) at_least_ns: Option<u64>,
    pub(super) at_most_ns: Option<u64>,
    /// Lost time, in percent of the time that the findings are about.
    pub(super) share_percent: f64,
    /// The method by which the lost time was computed.
    computed: &'static str,
    /// Number of stays in queues, moves, or turns.
    stays: u64,
    threads: u64,
    /// The CPUs on which the recording was made.
    recorded_cpus: String,
    /// The CPUs that its threads may use, if not all.
    allowed_cpus: Option<String>,
    evidence: String,
    change: String,
    /// An observation that would show that the finding is wrong.
    refuted_by: &'static str,
    moments: Vec<LossFigures>,
}

#[derive(Debug, Clone, Serialize)]
struct Other {
    process: Tid,
    name: String,
    processes: u64,
    lost_ns: u64,
}

/// Maximum number of processes that ran instead whose names are in a text.
const NAMED: usize = 3;

#[derive(Debug, Serialize)]
struct LossFigures {
    #[serde(flatten)]
    who: Named,
    /// The CPU in whose queue it was.
    queue_cpu: Cpu,
    /// The CPU that idled.
    idle_cpu: Option<Cpu>,
    lost_ns: u64,
    /// Start, in nanoseconds since the first event.
    since_ns: u64,
    until_ns: u64,
    /// Start of the moment on the recording's clock, in nanoseconds.
    clock_from_ns: u64,
    clock_to_ns: u64,
    /// The command that makes a file of the moment for Perfetto.
    open: String,
}

/// The IDs of one process under the kernel's policy and under percid's table, in this order.
pub(super) struct Ids {
    pub(super) process: Tid,
    pub(super) policy: &'static str,
    pub(super) lost_ns: u64,
    pub(super) copies: [u32; 2],
    pub(super) most_running: u32,
    /// The share of acquisitions whose ID was last used on another core.
    pub(super) elsewhere: [f64; 2],
    pub(super) turns: u64,
    pub(super) threads: u32,
}

impl Ids {
    /// Adds the IDs of another process of the same program.
    pub(super) fn add(&mut self, other: &Ids) {
        let [mine, theirs] = [self.turns, other.turns].map(|turns| turns as f64);
        for (share, more) in self.elsewhere.iter_mut().zip(other.elsewhere) {
            *share = (*share * mine + more * theirs) / (mine + theirs).max(1.0);
        }
        for (copies, more) in self.copies.iter_mut().zip(other.copies) {
            *copies = more.max(*copies);
        }
        self.most_running = self.most_running.max(other.most_running);
        self.lost_ns += other.lost_ns;
        self.turns += other.turns;
        self.threads += other.threads;
    }
}

impl Kind {
    fn from_loss(kind: LossKind) -> Kind {
        match kind {
            LossKind::Bound => Kind::Bound,
            LossKind::NotMigrated => Kind::NotMigrated,
            LossKind::Throttled => Kind::Throttled,
            LossKind::SlowWakeUp => Kind::SlowWakeUp,
            LossKind::OtherProcess => Kind::OtherProcess,
            LossKind::SameProcess => Kind::SameProcess,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Bound => "bound",
            Kind::NotMigrated => "not-migrated",
            Kind::Throttled => "throttled",
            Kind::SlowWakeUp => "slow-wake-up",
            Kind::OtherProcess => "other-process",
            Kind::SameProcess => "same-process",
            Kind::Moves => "moves",
            Kind::Ids => "ids",
        }
    }

    /// Returns what would show that a finding is wrong, after "if".
    fn refuted_by(self) -> &'static str {
        match self {
            Kind::Bound => {
                "the threads wait as long with a wider affinity, or other threads take the CPUs that idled."
            }
            Kind::NotMigrated => {
                "the threads may not run on the CPU that idled (taskset -p), or wait as long when each has its CPU."
            }
            Kind::Throttled => "nr_throttled in cpu.stat of its cgroups does not grow meanwhile.",
            Kind::SlowWakeUp => {
                "the waits stay as long while /dev/cpu_dma_latency is held at 0, and of a guest while its host is idle."
            }
            Kind::OtherProcess => {
                "the process is not finished sooner when the other one does not run."
            }
            Kind::SameProcess => {
                "nobody waits for an answer of a single thread: then nothing is lost."
            }
            Kind::Moves => {
                "the program is not faster when its threads are bound, or perf stat counts as many cache misses then."
            }
            Kind::Ids => {
                "the program keeps nothing for each concurrency ID, or perf c2c shows no lines shared between CPUs."
            }
        }
    }

    fn computed(self) -> &'static str {
        match self {
            Kind::Bound | Kind::NotMigrated => {
                "At each moment one for each thread that waited, and no more than CPUs idled. At least: one thread at \
                 a time. At most: all that waited while one idled."
            }
            Kind::Throttled => {
                "The time that the CPUs in whose queues they were idled. At most: all of these waits."
            }
            Kind::SlowWakeUp => "The time that the CPUs in whose queues they were went on idling.",
            Kind::OtherProcess => {
                "On each CPU one of the threads that waited while it ran the other process and no CPU idled; what one \
                 of the two gains the other loses. At most: all that waited."
            }
            Kind::SameProcess => {
                "Nothing, because CPUs worked for the process meanwhile. At most: all waits for its own threads while \
                 no CPU idled, if what counts is how soon each thread answers."
            }
            Kind::Moves => {
                "By the machine's prices, what it costs more to touch 16 kB after each move than without it. What \
                 threads touch is not in a recording, so there is no bound."
            }
            Kind::Ids => {
                "By the machine's prices, what it costs more to touch the 16 kB behind each ID after each acquisition. \
                 What programs keep there is not in a recording, so there is no bound."
            }
        }
    }
}

impl Finding {
    pub(super) fn of_loss(loss: &Loss, names: &Names<'_>, place: &Circumstances<'_>) -> Finding {
        let by = loss.by.map(|by| Other {
            process: by,
            name: names.process(by),
            processes: place.programs.size(by),
            lost_ns: loss.lost_ns,
        });
        let finding = Finding {
            others: by.iter().cloned().collect(),
            by,
            at_least_ns: Some(loss.at_least_ns),
            at_most_ns: Some(loss.at_most_ns),
            stays: loss.stays,
            threads: loss.threads,
            allowed_cpus: loss.allowed.clone(),
            moments: loss
                .moments
                .iter()
                .map(|moment| LossFigures::new(moment, names, place))
                .collect(),
            ..Finding::new(Kind::from_loss(loss.kind), loss.process, loss.lost_ns, names, place)
        };
        let (evidence, change) = (finding.seen(place), finding.advised(place));
        Finding { evidence, change, ..finding }
    }

    pub(super) fn of_moves(
        process: Tid,
        moves: &ThreadMigrations,
        names: &Names<'_>,
        place: &Circumstances<'_>,
        machine: &str,
    ) -> Finding {
        let mut far = moves.at_wake_up;
        far.add(&moves.while_waiting);
        let finding = Finding::new(Kind::Moves, process, moves.cost_ns, names, place);
        let evidence = format!(
            "{} threads of {} began {} of {} turns ({} %) on another CPU than the one before, {} of these behind \
             another last-level cache and {} on another node; prices are those of {machine}.",
            place.on,
            finding.label(),
            moves.moves(),
            moves.turns,
            percent(moves.moves(), moves.turns),
            far.across_l3s(),
            far.other_node
        );
        let change = format!(
            "{} let its threads stay: bind each to a CPU, or to the CPUs of one last-level cache (sched_setaffinity, \
             taskset, a cpuset), where they have time to wait for it.",
            place.on
        );
        Finding { stays: moves.moves(), evidence, change, ..finding }
    }

    pub(super) fn of_ids(
        ids: &Ids,
        names: &Names<'_>,
        place: &Circumstances<'_>,
        machine: &str,
    ) -> Finding {
        let finding = Finding::new(Kind::Ids, ids.process, ids.lost_ns, names, place);
        let [elsewhere, by_table] = ids.elsewhere.map(|share| format!("{:.1}", 100.0 * share));
        let evidence = format!(
            "{} {} ran at most {} threads at once. Under {} its {} turns would have used {} IDs and found {elsewhere} % of \
             them last used on another core; under percid-table {} IDs and {by_table} %. Replayed on {machine}.",
            place.on,
            finding.label(),
            ids.most_running,
            ids.policy,
            ids.turns,
            ids.copies[0],
            ids.copies[1]
        );
        let change = format!(
            "{} take IDs of percid's table for what it keeps per CPU, with {} copies; if it keeps nothing so, there is \
             nothing to change.",
            place.on, ids.copies[1]
        );
        Finding { stays: ids.turns, threads: ids.threads.into(), evidence, change, ..finding }
    }

    fn new(
        kind: Kind,
        process: Tid,
        lost_ns: u64,
        names: &Names<'_>,
        place: &Circumstances<'_>,
    ) -> Finding {
        Finding {
            kind,
            process,
            name: names.process(process),
            processes: place.programs.size(process),
            by: None,
            others: Vec::new(),
            lost_ns,
            at_least_ns: None,
            at_most_ns: None,
            share_percent: percent_of(lost_ns, place.length_ns),
            computed: kind.computed(),
            stays: 0,
            threads: 0,
            recorded_cpus: place.cpus.to_owned(),
            allowed_cpus: None,
            evidence: String::new(),
            change: String::new(),
            refuted_by: kind.refuted_by(),
            moments: Vec::new(),
        }
    }

    fn label(&self) -> String {
        label(&self.name, self.process, self.processes)
    }

    /// Returns one finding for each process that others delayed. On an overloaded machine, every
    /// pair of processes would be one. `findings` are in descending order of cost.
    pub(super) fn joined(findings: Vec<Finding>, place: &Circumstances<'_>) -> Vec<Finding> {
        let mut joined: Vec<Finding> = Vec::new();
        for finding in findings {
            let same = |other: &&mut Finding| {
                (other.kind, other.process) == (Kind::OtherProcess, finding.process)
            };
            match joined.iter_mut().find(same).filter(|_| finding.kind == Kind::OtherProcess) {
                Some(first) => first.add(finding, place),
                None => joined.push(finding),
            }
        }
        joined
    }

    /// Adds the delays by another process. The times of the two do not overlap, because a CPU runs
    /// one thread.
    fn add(&mut self, other: Finding, place: &Circumstances<'_>) {
        let sum = |one: Option<u64>, more: Option<u64>| Some(one? + more?);
        self.lost_ns += other.lost_ns;
        self.at_least_ns = sum(self.at_least_ns, other.at_least_ns);
        self.at_most_ns = sum(self.at_most_ns, other.at_most_ns);
        self.share_percent = percent_of(self.lost_ns, place.length_ns);
        self.stays += other.stays;
        // The same threads may have waited for both.
        self.threads = self.threads.max(other.threads);
        self.others.extend(other.others);
        (self.evidence, self.change) = (self.seen(place), self.advised(place));
    }

    fn other(&self) -> String {
        let label = |other: &Other| label(&other.name, other.process, other.processes);
        let mut text = self.others.iter().take(NAMED).map(label).collect::<Vec<_>>().join(", ");
        if self.others.len() > NAMED {
            text += &format!(" and {} other processes", self.others.len() - NAMED);
        }
        text
    }

    /// Returns the evidence for a wait, as a sentence.
    fn seen(&self, place: &Circumstances<'_>) -> String {
        let (on, label) = (&place.on, self.label());
        let allowed = self.allowed_cpus.as_deref().unwrap_or(place.cpus);
        let what = match self.kind {
            Kind::Bound => format!(
                "waited, ready to run, for CPUs {allowed}, which ran something else and are all that it may use, while a \
                 CPU beside these idled"
            ),
            Kind::NotMigrated if place.has_affinities => {
                "waited, ready to run, for a CPU that ran something else, while one idled on which it may run".to_owned()
            }
            Kind::NotMigrated => {
                "waited, ready to run, for a CPU that ran something else, while one idled; whether it may run there is \
                 not in the recording"
                    .to_owned()
            }
            Kind::Throttled => "had to stop, though able to go on, and the CPU idled then".to_owned(),
            Kind::SlowWakeUp => "had been woken, and the CPU went on idling for a while".to_owned(),
            Kind::OtherProcess => {
                format!("waited, ready to run, while the CPU ran {}, and no CPU idled", self.other())
            }
            _ if self.processes > 1 => {
                "waited, ready to run, while the CPU ran another one of them, and no CPU idled".to_owned()
            }
            _ => "waited, ready to run, while the CPU ran another thread of the same process, and no CPU idled"
                .to_owned(),
        };
        let threads = match self.threads {
            1 => "one thread".to_owned(),
            threads => format!("{threads} different threads"),
        };
        let times = match self.stays {
            1 => "once".to_owned(),
            stays => format!("{stays} times"),
        };
        format!("{on} {threads} of {label} {what}: {times}.")
    }

    /// Returns the change that could avoid a wait, as a sentence.
    fn advised(&self, place: &Circumstances<'_>) -> String {
        let (label, on) = (self.label(), &place.on);
        let allowed = self.allowed_cpus.as_deref().unwrap_or(place.cpus);
        let what = match self.kind {
            Kind::Bound => format!(
                "widen the affinity of {label}, which is CPUs {allowed} (taskset, a cpuset, or the program's own setting), or \
                 bind its threads to different CPUs."
            ),
            Kind::NotMigrated if self.threads == 1 => format!(
                "if it is always the same that runs instead of {label}, bind the two to different CPUs \
                 (sched_setaffinity, taskset): the kernel did not move it in time."
            ),
            Kind::NotMigrated => format!(
                "bind the threads of {label} that are busy at once to different CPUs (sched_setaffinity, taskset): the \
                 kernel did not move them in time."
            ),
            Kind::Throttled => format!(
                "look for a CPU quota of {label} (cpu.max; nr_throttled in cpu.stat of its cgroup says whether it is one): \
                 raise it, or use fewer threads, which use it up less early in each period."
            ),
            Kind::SlowWakeUp => format!(
                "limit how deep CPUs sleep (/dev/cpu_dma_latency; of a guest, how soon the host halts it), or let {label} \
                 poll for a moment before it sleeps."
            ),
            Kind::OtherProcess => format!(
                "if {label} matters more than {0}, give it precedence: a higher weight (nice, cpu.weight), SCHED_BATCH or \
                 SCHED_IDLE for {0}, a quota (cpu.max) for {0}, or CPUs of its own (a cpuset).",
                self.other()
            ),
            _ if self.processes > 1 => format!(
                "run fewer of {label} at once, as many as there are CPUs (make -j): waits of {} ms go away, and nothing is \
                 finished sooner.",
                ms(self.at_most_ns.unwrap_or(0))
            ),
            _ => format!(
                "use fewer threads in {label}, as many as it has CPUs: waits of {} ms go away, and nothing is finished \
                 sooner.",
                ms(self.at_most_ns.unwrap_or(0))
            ),
        };
        format!("{on} {what}")
    }

    /// Returns the cost that decides whether the finding is left out.
    pub(super) fn weight(&self) -> u64 {
        match self.kind {
            Kind::SameProcess => self.at_most_ns.unwrap_or(0),
            _ => self.lost_ns,
        }
    }

    /// Returns the key by which findings are sorted.
    pub(super) fn order(&self) -> (u64, u64) {
        (self.lost_ns, self.at_most_ns.unwrap_or(0))
    }

    /// Returns the process and the kind of the finding, for headings.
    pub(super) fn short(&self) -> String {
        format!("{}, {}", self.label(), self.kind.name())
    }

    pub(super) fn row(&self, number: usize) -> [String; 8] {
        let bound = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), ms);
        let threads = if self.threads == 0 { "-".to_owned() } else { self.threads.to_string() };
        [
            number.to_string(),
            self.label(),
            self.kind.name().to_owned(),
            ms(self.lost_ns),
            bound(self.at_least_ns),
            bound(self.at_most_ns),
            self.stays.to_string(),
            threads,
        ]
    }

    fn lost(&self) -> String {
        let bounds = match (self.at_least_ns, self.at_most_ns) {
            (Some(least), Some(most)) if least == most => ", exactly".to_owned(),
            (Some(least), Some(most)) => format!(", between {} and {} ms", ms(least), ms(most)),
            _ => " by a model".to_owned(),
        };
        format!(
            "{} ms lost{bounds}, {:.1} % of the recording",
            ms(self.lost_ns),
            self.share_percent
        )
    }

    pub(super) fn show(&self, number: usize, page: &mut Page) {
        let Finding { evidence, change, refuted_by, computed, .. } = self;
        let heading = format!("{number}. {}: {}", self.short(), self.lost());
        page.section(
            heading,
            format!("{change}\n\n{evidence}\n\nRefuted if {refuted_by}\n\n{computed}"),
        );
        if self.moments.is_empty() {
            return;
        }
        let columns = ["thread", "CPU", "idle", "from s", "to s", "lost ms", "from ts", "to ts"];
        let mut table = Table::new(columns, 1);
        self.moments.iter().for_each(|moment| table.row(moment.row()));
        table.show_on(page);
        page.printed(self.moments[0].open.as_str());
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { evidence, change, refuted_by, computed, moments, .. } = self;
        writeln!(f, "{}: {}", self.short(), self.lost())?;
        writeln!(f, "   change: {change}")?;
        writeln!(f, "   evidence: {evidence}")?;
        writeln!(f, "   refuted if: {refuted_by}")?;
        writeln!(f, "   computed: {computed}")?;
        moments.iter().try_for_each(|moment| writeln!(f, "   {moment}"))?;
        match moments.first() {
            Some(first) => writeln!(f, "   to open the first: {}", first.open),
            None => Ok(()),
        }
    }
}

impl LossFigures {
    fn new(moment: &LostMoment, names: &Names<'_>, place: &Circumstances<'_>) -> LossFigures {
        let LostMoment { thread, cpu, since, until, lost_ns, idle_cpu } = *moment;
        // The file includes events just before and after the moment.
        let around = (until - since).max(1_000_000) / 2;
        let (from, to) = (since.saturating_sub(around), until + around);
        let file = quoted(&printable(&place.file.to_string_lossy()));
        let open = format!(
            "percid trace convert {file} moment.pftrace --from {} --to {}",
            from as f64 / 1e9,
            to as f64 / 1e9
        );
        LossFigures {
            who: names.thread(thread),
            queue_cpu: cpu,
            idle_cpu,
            lost_ns,
            since_ns: since,
            until_ns: until,
            clock_from_ns: place.begin + since,
            clock_to_ns: place.begin + until,
            open,
        }
    }

    fn idle(&self) -> String {
        self.idle_cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string())
    }

    fn row(&self) -> [String; 8] {
        [
            self.who.label(),
            self.queue_cpu.to_string(),
            self.idle(),
            seconds(self.since_ns),
            seconds(self.until_ns),
            ms(self.lost_ns),
            self.clock_from_ns.to_string(),
            self.clock_to_ns.to_string(),
        ]
    }
}

fn percent_of(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

/// Returns the label of a process, or of all processes of its name with their number.
fn label(name: &str, process: Tid, processes: u64) -> String {
    match processes {
        1 => labelled(name, process),
        more => format!("{} ({more} processes)", printable(name)),
    }
}

/// Returns a word of a command line, quoted for a shell if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+=:@%".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

impl fmt::Display for LossFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at {} to {} s (ts {} to {}): {} in the queue of CPU {}, {} ms lost",
            seconds(self.since_ns),
            seconds(self.until_ns),
            self.clock_from_ns,
            self.clock_to_ns,
            self.who.label(),
            self.queue_cpu,
            ms(self.lost_ns)
        )?;
        match self.idle_cpu {
            Some(cpu) => write!(f, "; CPU {cpu} idled"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_commands_are_quoted_where_shells_would_not_read_them_as_they_are() {
        let words = ["a/b-1.parquet", "my trace", "it's", ""].map(quoted);
        assert_eq!(words, ["a/b-1.parquet", "'my trace'", r"'it'\''s'", "''"]);
    }
}
