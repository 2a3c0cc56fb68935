//! This machine's features in the form that every subcommand prints: the library's facts plus
//! percid's source selection.

use std::collections::BTreeSet;
use std::fmt;

use percid::Source;
use percid::id::SourceError;
use percid::machine::{Machine, Registration, Rseq, RseqMode};
use percid_command::table::Table;
use percid_report::{Axis, Page, Strips};
use serde::Serialize;

/// The `machine` object of every JSON document; its text is the output of `percid info`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MachineReport {
    kernel_release: String,
    arch: &'static str,
    cpu_model: Option<String>,
    rseq: RseqReport,
    membarrier: MembarrierReport,
    /// CPU lists in the kernel's format: `0-3,8`.
    possible_cpus: String,
    possible_count: usize,
    allowed_cpus: String,
    pub(crate) allowed_count: usize,
    cores: usize,
    l3s: usize,
    nodes: usize,
    cpus: Vec<CpuReport>,
    sources: Vec<SourceReport>,
    chosen: ChosenReport,
}

/// The restartable-sequences area. Sizes and alignment in bytes.
#[derive(Clone, Debug, Serialize)]
struct RseqReport {
    registration: String,
    registered_size: u32,
    feature_size: u32,
    align: u32,
    fields: Vec<&'static str>,
    /// `single`, `compatible` or `fast`; `null` if nothing is registered.
    mode: Option<&'static str>,
    /// The meaning of the mode, and the remedy for a slow one.
    mode_means: String,
}

#[derive(Clone, Debug, Serialize)]
struct MembarrierReport {
    commands: u32,
    refused: Option<String>,
    rseq: bool,
    per_cpu: bool,
}

#[derive(Clone, Debug, Serialize)]
struct CpuReport {
    cpu: u32,
    core: Option<u32>,
    l3: Option<u32>,
    node: Option<u32>,
    allowed: bool,
}

#[derive(Clone, Debug, Serialize)]
struct SourceReport {
    source: String,
    available: bool,
    /// The reason why not; `null` if the source is available.
    reason: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct ChosenReport {
    source: String,
    reason: String,
}

impl MachineReport {
    /// Selects percid's source, tries every source and reads the machine.
    pub(crate) fn read() -> Self {
        let choice = percid::init();
        let machine = percid::machine::read();
        MachineReport {
            rseq: rseq(&machine),
            membarrier: membarrier(&machine),
            possible_cpus: machine.possible.to_string(),
            possible_count: machine.possible.len(),
            allowed_cpus: machine.allowed.to_string(),
            allowed_count: machine.allowed.len(),
            cores: distinct(machine.cpus.iter().map(|cpu| cpu.core)),
            l3s: distinct(machine.cpus.iter().map(|cpu| cpu.l3)),
            nodes: distinct(machine.cpus.iter().map(|cpu| cpu.node)),
            cpus: machine.cpus.iter().map(cpu).collect(),
            sources: Source::ALL.iter().copied().map(source).collect(),
            chosen: ChosenReport {
                source: choice.source.to_string(),
                reason: choice.reason.to_string(),
            },
            kernel_release: machine.kernel_release,
            arch: machine.arch,
            cpu_model: machine.cpu_model,
        }
    }

    /// Returns two or three lines about the machine, and the ID source with its reason.
    pub(crate) fn summary(&self) -> String {
        let machine = format!(
            "{}: {} of {} CPUs, cores: {}, L3 caches: {}, NUMA nodes: {}",
            self.name(),
            self.allowed_count,
            self.possible_count,
            self.cores,
            self.l3s,
            self.nodes,
        );
        let ids = match self.source() {
            "table" => "Each CPU has its own shard of the data, found by an ID from percid's table",
            "kernel" => "Each CPU has its own shard of the data, found by an ID from the kernel",
            _ => "There are no IDs here, so every update is an atomic instruction",
        };
        let ids = format!("{ids}, because {}.", self.chosen.reason);
        format!("{}\n{}\n", wrapped(&machine), wrapped(&ids))
    }

    /// Returns the processor, the architecture and the kernel.
    pub(crate) fn name(&self) -> String {
        format!("{}, {}, {}", self.model(), self.arch, self.system())
    }

    fn system(&self) -> String {
        let name = if cfg!(target_os = "linux") { "Linux" } else { std::env::consts::OS };
        format!("{name} {}", self.kernel_release).trim_end().to_owned()
    }

    /// Returns the name of the ID source.
    pub(crate) fn source(&self) -> &str {
        &self.chosen.source
    }

    /// Returns the names of the sources that this machine lacks.
    pub(crate) fn unavailable(&self) -> impl Iterator<Item = &str> {
        let lacking = self.sources.iter().filter(|source| !source.available);
        lacking.map(|source| source.source.as_str())
    }

    fn model(&self) -> &str {
        self.cpu_model.as_deref().unwrap_or("unnamed processor")
    }
}

/// Maximum number of caches, and of nodes, that are drawn.
const PLACES: usize = 32;

impl MachineReport {
    /// Returns the selected source with its reason, in one sentence.
    pub(crate) fn verdict(&self) -> String {
        let cpus = format!("{} of {} CPUs", self.allowed_count, self.possible_count);
        let from = match self.source() {
            "table" => "percid's table",
            "kernel" => "the kernel",
            _ => return format!("Updates on {cpus} are atomic: {}.", self.chosen.reason),
        };
        format!("IDs on {cpus} come from {from}: {}.", self.chosen.reason)
    }

    /// Returns a row of CPUs for each L3 cache and node.
    fn places(&self) -> Strips {
        let mut strips = Strips::new(Axis::new("place"), Axis::new("CPU"), "belongs to it");
        let row = |has: &dyn Fn(&CpuReport) -> bool| {
            let last = self.cpus.iter().map(|cpu| cpu.cpu).max().unwrap_or(0);
            let has: BTreeSet<u32> =
                self.cpus.iter().filter(|cpu| has(cpu)).map(|cpu| cpu.cpu).collect();
            (0..=last).map(|cpu| u32::from(has.contains(&cpu))).collect::<Vec<u32>>()
        };
        strips.row("may be used", row(&|cpu| cpu.allowed));
        type Place = fn(&CpuReport) -> Option<u32>;
        let places: [Place; 2] = [|cpu| cpu.l3, |cpu| cpu.node];
        for (kind, of) in ["L3 cache", "NUMA node"].into_iter().zip(places) {
            let numbers: BTreeSet<u32> = self.cpus.iter().filter_map(of).collect();
            for number in numbers.into_iter().take(PLACES) {
                strips.row(format!("{kind} {number}"), row(&|cpu| of(cpu) == Some(number)));
            }
        }
        strips
    }

    /// Adds the selected source with its reason, and the alternatives.
    pub(crate) fn show_on(&self, page: &mut Page) {
        page.chart("CPUs that may be used, and their places", "", self.places());
        let available = self.sources.iter().filter(|source| source.available).count();
        let text = format!("{available} of {} sources are available.", self.sources.len());
        page.section("Source of IDs", text);
        let mut sources = Table::new(["source of IDs", "state"], 2);
        for source in &self.sources {
            let state = source.reason.as_ref().map(|why| format!("not available: {why}"));
            sources.row([source.source.clone(), state.unwrap_or_else(|| "available".to_owned())]);
        }
        sources.show_on(page);
        let topology = format!(
            "{} of {} CPUs may be used: {} cores, {} L3 caches, {} NUMA nodes.",
            self.allowed_count, self.possible_count, self.cores, self.l3s, self.nodes
        );
        page.section("CPUs", topology);
        let mut cpus = Table::new(["CPU", "core", "L3 cache", "NUMA node", "may be used"], 0);
        for cpu in &self.cpus {
            let number = |of: Option<u32>| of.map_or("-".to_owned(), |of| of.to_string());
            let allowed = if cpu.allowed { "yes" } else { "no" };
            cpus.row([
                cpu.cpu.to_string(),
                number(cpu.core),
                number(cpu.l3),
                number(cpu.node),
                allowed.to_owned(),
            ]);
        }
        cpus.show_on(page);
        page.section("All that was found", "").printed(self.to_string().trim());
    }
}

#[cfg(test)]
impl MachineReport {
    /// Returns a machine with two CPUs whose IDs come from `source`.
    pub(crate) fn fixed(source: &str, reason: &str) -> Self {
        let mut machine = MachineReport::read();
        machine.kernel_release = "6.18.44".to_owned();
        machine.arch = "x86_64";
        machine.cpu_model = Some("Example 9000".to_owned());
        (machine.allowed_count, machine.possible_count) = (2, 4);
        (machine.cores, machine.l3s, machine.nodes) = (2, 1, 1);
        machine.sources.iter_mut().for_each(|source| source.available = true);
        machine.chosen = ChosenReport { source: source.to_owned(), reason: reason.to_owned() };
        machine
    }

    /// Returns a machine with a long name, and without all sources except atomics.
    pub(crate) fn fixed_at_length(source: &str, reason: &str) -> Self {
        let mut machine = MachineReport::fixed(source, reason);
        let model = "Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz, stepping 8";
        machine.cpu_model = Some(model.to_owned());
        machine.kernel_release = "6.8.0-1021-aws-fips-lowlatency-64k".to_owned();
        (machine.allowed_count, machine.possible_count) = (1024, 8192);
        let sources = machine.sources.iter_mut();
        sources.for_each(|source| source.available = source.source == "atomic");
        machine
    }
}

/// Wraps text in lines of at most 100 columns.
pub(crate) fn wrapped(text: &str) -> String {
    textwrap::fill(text, textwrap::Options::new(100).subsequent_indent("  "))
}

fn rseq(machine: &Machine) -> RseqReport {
    let rseq = &machine.rseq;
    RseqReport {
        registration: rseq.registration.to_string(),
        registered_size: rseq.registered_size,
        feature_size: rseq.feature_size,
        align: rseq.align,
        fields: rseq.fields.clone(),
        mode: rseq.mode.map(mode_name),
        mode_means: mode_means(rseq),
    }
}

fn mode_name(mode: RseqMode) -> &'static str {
    match mode {
        RseqMode::Fast => "fast",
        RseqMode::Compatible => "compatible",
        _ => "single",
    }
}

/// Returns the meaning of the registration's mode, and the remedy for a slow one.
fn mode_means(rseq: &Rseq) -> String {
    let Some(mode) = rseq.mode else { return "nothing is registered".to_owned() };
    match mode {
        RseqMode::Fast => "IDs are written when they change; nothing is to be done".to_owned(),
        RseqMode::Compatible => {
            format!("the kernel rewrites the IDs at every switch; {}", way_to_fast_mode(rseq))
        }
        _ => "this kernel has one mode; nothing is to be done".to_owned(),
    }
}

/// Returns the way to give a thread the fast mode if the kernel has it: more than 32 bytes.
fn way_to_fast_mode(rseq: &Rseq) -> String {
    let (size, align, room) = (rseq.feature_size, rseq.align, rseq.max_own_size);
    match rseq.registration {
        Registration::Libc if size <= room && align <= room => format!(
            "for its fast mode {size} bytes must be registered: glibc 2.41 and later does, or percid if \
             the C library does not (GLIBC_TUNABLES=glibc.pthread.rseq=0)"
        ),
        Registration::Libc => {
            format!("for its fast mode {size} bytes must be registered: glibc 2.41 and later does")
        }
        Registration::Percid if size <= room && align <= room => {
            format!("it refused the {size} bytes of its fast mode")
        }
        Registration::Percid => format!(
            "its fast mode wants {size} bytes aligned to {align}, and percid has room for {room}: a later \
             percid may have more"
        ),
        _ => "the library that shares its area with percid may need that".to_owned(),
    }
}

fn membarrier(machine: &Machine) -> MembarrierReport {
    let membarrier = &machine.membarrier;
    MembarrierReport {
        commands: membarrier.commands,
        refused: membarrier.refused.map(|errno| SourceError::MembarrierRefused(errno).to_string()),
        rseq: membarrier.rseq,
        per_cpu: membarrier.per_cpu,
    }
}

fn cpu(cpu: &percid::machine::Cpu) -> CpuReport {
    CpuReport { cpu: cpu.number, core: cpu.core, l3: cpu.l3, node: cpu.node, allowed: cpu.allowed }
}

/// Tries a source, repeatedly if the probe is inconclusive: a report may take that time.
fn found_out(source: Source) -> Result<(), SourceError> {
    const TRIES: usize = 20;
    let mut tries = (0..TRIES).map(|_| source.prepare());
    let answer = tries.find(|answer| *answer != Err(SourceError::SectionsNotProbed));
    answer.unwrap_or(Err(SourceError::SectionsNotProbed))
}

fn source(source: Source) -> SourceReport {
    let missing = found_out(source).err();
    SourceReport {
        source: source.to_string(),
        available: missing.is_none(),
        reason: missing.map(|why| why.to_string()),
    }
}

fn distinct(numbers: impl Iterator<Item = Option<u32>>) -> usize {
    numbers.flatten().collect::<BTreeSet<_>>().len()
}

impl fmt::Display for MachineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "machine     {}, {}", self.model(), self.arch)?;
        writeln!(f, "kernel      {}", self.system())?;
        self.fmt_kernel_interfaces(f)?;
        self.fmt_cpus(f)?;
        for source in &self.sources {
            let state = source
                .reason
                .as_deref()
                .map_or("available".to_owned(), |why| format!("not available: {why}"));
            writeln!(f, "{:<11} {:<7} {state}", "source", source.source)?;
        }
        writeln!(f, "chosen      {}: {}", self.chosen.source, self.chosen.reason)
    }
}

impl MachineReport {
    fn fmt_kernel_interfaces(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rseq = &self.rseq;
        writeln!(
            f,
            "rseq        {}; {} bytes registered, {} bytes of features, alignment {}",
            rseq.registration, rseq.registered_size, rseq.feature_size, rseq.align
        )?;
        let mode = rseq.mode.unwrap_or("none");
        writeln!(f, "rseq mode   {mode}: {}", rseq.mode_means)?;
        writeln!(
            f,
            "rseq fields {}",
            if rseq.fields.is_empty() { "none".to_owned() } else { rseq.fields.join(" ") }
        )?;
        if let Some(why) = &self.membarrier.refused {
            return writeln!(f, "membarrier  {why}");
        }
        let yes_no = |answer| if answer { "yes" } else { "no" };
        writeln!(
            f,
            "membarrier  commands {:#x}; rseq flavour: {}; of a single CPU: {}",
            self.membarrier.commands,
            yes_no(self.membarrier.rseq),
            yes_no(self.membarrier.per_cpu)
        )
    }

    fn fmt_cpus(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "possible    {} CPUs: {}", self.possible_count, self.possible_cpus)?;
        writeln!(f, "allowed     {} CPUs: {}", self.allowed_count, self.allowed_cpus)?;
        writeln!(
            f,
            "topology    {} cores, {} L3 caches, {} nodes",
            self.cores, self.l3s, self.nodes
        )
    }
}
