//! This machine: its nodes, and the processes that balance memory on them.

use std::fmt;
use std::io;

use serde::Serialize;

use crate::numa::errno;
use crate::numa::figures::mebibytes;
use crate::numa::kernel_counters::{KernelCounters, told};
use crate::numa::nodes::{self, KernelBalancing, Node};
use crate::numa::pages;
use crate::numa::process::Process;
use crate::numa::publication;
use percid_command::exit::Failure;
use percid_command::report;
use percid_command::text_table::{Align, TextTable};
use percid_report::{Axis, Bars, Page};

/// The document of `percid numa report --json`.
#[derive(Debug, Serialize)]
pub(crate) struct MachineDocument {
    nodes: Vec<Node>,
    kernel_balancing: KernelBalancing,
    /// Counters since the machine was started; `null` if this kernel does not have them.
    kernel_counters: KernelCounters,
    moves_pages: bool,
    /// The reason why the kernel does not move pages for this program; `null` if it does.
    moves_pages_error: Option<String>,
    processes: Vec<Publisher>,
    /// Number of processes that this user may not read.
    processes_hidden: u64,
}

/// A process that publishes reports.
#[derive(Debug, Serialize)]
struct Publisher {
    pid: u32,
    name: String,
    balancers: usize,
}

impl MachineDocument {
    pub(crate) fn read() -> Result<MachineDocument, Failure> {
        let moves = pages::try_to_move();
        let (processes, processes_hidden) = publishers()?;
        Ok(MachineDocument {
            nodes: nodes::all(),
            kernel_balancing: KernelBalancing::read(),
            kernel_counters: KernelCounters::read(),
            moves_pages: moves.is_ok(),
            moves_pages_error: moves.err().map(|error| reason(&error)),
            processes,
            processes_hidden,
        })
    }

    pub(super) fn page(&self) -> Page {
        let (nodes, processes) = (self.nodes.len(), self.processes.len());
        let pages = if self.moves_pages { "can" } else { "cannot" };
        let verdict = format!(
            "This user's programs {pages} move pages among {nodes} nodes, and {processes} processes publish a balancer's \
             report."
        );
        let mut page = report::page("percid numa report", verdict, "This machine.", false);
        let gibibytes = |bytes: u64| bytes as f64 / (1_u64 << 30) as f64;
        let memory = Axis::new("memory").unit("GiB");
        let mut bars = Bars::stacked(Axis::new("node"), memory, ["used", "free"]);
        for node in &self.nodes {
            let free = node.memory_free.map(gibibytes);
            let used = node.memory_total.map(gibibytes).zip(free).map(|(all, free)| all - free);
            bars.category(format!("node {}", node.node), [used, free]);
        }
        if nodes > 0 {
            page.chart("Used and free", "", bars);
        }
        page.section("All that was found", "").printed(self.to_string().trim_end());
        page
    }

    fn nodes_table(&self) -> TextTable {
        let right = Align::Right;
        let mut table = TextTable::new([("node", right), ("CPUs", Align::Left)]);
        table.group("MiB".to_owned(), [("memory", right), ("free", right)]);
        let numbers = self.nodes.iter().map(|node| (node.node.to_string(), right));
        table.group("distance to".to_owned(), numbers);
        for node in &self.nodes {
            let amount = |bytes: Option<u64>| bytes.map_or("-".to_owned(), mebibytes);
            let cpus = if node.cpus.is_empty() { "none" } else { &node.cpus };
            let mut row = vec![node.node.to_string(), cpus.to_owned()];
            row.extend([amount(node.memory_total), amount(node.memory_free)]);
            let distance = |place| node.distances.get(place);
            row.extend((0..self.nodes.len()).map(|place| match distance(place) {
                Some(distance) => distance.to_string(),
                None => "-".to_owned(),
            }));
            table.row(row);
        }
        table
    }
}

fn reason(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), errno::name)
}

/// Returns the processes that publish, and the number of those that this user may not read.
fn publishers() -> Result<(Vec<Publisher>, u64), Failure> {
    let all = Process::all().map_err(|cause| Failure::new("cannot read /proc", cause))?;
    let (mut publishers, mut hidden) = (Vec::new(), 0);
    for process in all {
        match publication::list(&process) {
            Ok(found) if !found.is_empty() => publishers.push(Publisher {
                pid: process.number,
                name: process.name(),
                balancers: found.len(),
            }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => hidden += 1,
            // The process publishes nothing, or has ended.
            _ => {}
        }
    }
    Ok((publishers, hidden))
}

impl fmt::Display for MachineDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.nodes.is_empty() {
            true => writeln!(f, "nodes             none: this kernel was built without them")?,
            false => write!(f, "{}", self.nodes_table())?,
        }
        writeln!(f, "kernel balancing  {}", self.kernel_balancing.text())?;
        writeln!(f, "kernel counters   since the machine was started")?;
        for (name, meaning, count) in self.kernel_counters.each() {
            writeln!(f, "  {name:23} {:>12}  {meaning}", told(count))?;
        }
        match &self.moves_pages_error {
            None => writeln!(f, "pages             can be moved by this user's programs")?,
            Some(why) => writeln!(f, "pages             cannot be moved: {why}")?,
        }
        for Publisher { pid, name, balancers } in &self.processes {
            writeln!(f, "process           {pid} ({name}), balancers: {balancers}")?;
        }
        if self.processes.is_empty() {
            writeln!(f, "processes         none publishes a balancer's report")?;
        }
        if self.processes_hidden > 0 {
            let hidden = self.processes_hidden;
            writeln!(f, "hidden            {hidden} processes that this user may not look into")?;
        }
        Ok(())
    }
}
