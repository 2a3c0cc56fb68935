//! The kernel's NUMA balancing and percid's beside each other, on the same work.
//!
//! Each contender (the kernel, percid, both, none) is a separate process that runs the same scenes:
//! the kernel stores much state of a process, and a second balancer must find the state that the
//! first one found. The values are the seconds until memory is on the node that uses it, and the
//! cost.

mod advice;
mod contender;
mod course;
mod figures;
mod scene;
mod threads;

use std::env;
use std::process::Command;

pub(crate) use advice::run as advice;
pub(crate) use contender::Contender;
pub(crate) use scene::Scene;

use figures::{Comparison, Figures};

use super::environment::{self, blind, nodes};
use crate::options::Options;
use crate::verdict::Verdict;

/// In front of the figures of a contender, on a line of their own.
const MARK: &str = "figures ";

pub(crate) fn run(options: &Options) -> Verdict {
    let nodes = nodes();
    if nodes.len() < 2 {
        return Ok("skipped: one node".to_owned());
    }
    if let Some(skipped) = blind(options.access) {
        return Ok(skipped);
    }
    if let Some(contender) = options.contender {
        let figures = course::run(options, contender, &nodes)?;
        println!("{MARK}{}", serde_json::to_string(&figures).map_err(|error| error.to_string())?);
        return Ok(format!("contender={contender}"));
    }
    let mut comparison = Comparison::new(options, nodes.len());
    for run in 0..options.runs.get() {
        for contender in [Contender::Kernel, Contender::Percid, Contender::Both] {
            comparison.add(contender, run, &of_a_process(options, contender)?);
        }
    }
    if options.json {
        println!("{}", serde_json::to_string(&comparison).map_err(|error| error.to_string())?);
    }
    comparison.verdict()
}

/// Runs one contender in a process of its own.
fn of_a_process(options: &Options, contender: Contender) -> Result<Vec<Figures>, String> {
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(own);
    command.args(&options.given).args(["--contender", contender.name()]);
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix(MARK));
    let figures = line.and_then(|line| serde_json::from_str(line).ok());
    figures.ok_or_else(|| format!("{contender}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}
