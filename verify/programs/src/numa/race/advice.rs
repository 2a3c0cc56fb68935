//! The advice of `percid numa check-kernel` about the kernel's balancing, compared with the effect of the
//! balancing.
//!
//! Each scene is played with the kernel's balancing and without. The balancing was useful if it
//! increased the share of memory that is on the node that uses it; the advice must agree. Emulated
//! memory has the same latency everywhere, so no run becomes faster: only the placement is measured
//! here, from outside.

use std::env;
use std::process::Command;

use serde::Serialize;

use super::contender::Contender;
use super::figures::Figures;
use super::scene::Scene;
use super::{MARK, environment::nodes};
use crate::options::Options;
use crate::verdict::Verdict;

/// Minimum increase of the share for useful balancing.
const GAIN: f64 = 0.1;
/// Number of runs in which one may be judged wrongly.
const RUNS: usize = 10;

/// The advice about a scene.
#[derive(Debug, Serialize)]
struct Judged {
    scene: &'static str,
    /// The share of memory that was on the node that uses it, without balancing and with it, as a
    /// mean of all stages; `None` if all threads use the memory.
    without: Option<f64>,
    with: Vec<Option<f64>>,
    advice: Vec<String>,
    /// Number of runs in which the advice agrees with the shares.
    right: usize,
}

pub(crate) fn run(options: &Options) -> Verdict {
    if nodes().len() < 2 {
        return Ok("skipped: one node".to_owned());
    }
    if !options.percid.as_ref().is_some_and(|percid| percid.exists()) {
        return Ok("skipped: no command percid at --percid PATH".to_owned());
    }
    let blind = play(options, Scene::Shared, Contender::Nobody, true)?.1;
    if blind != "cannot_tell" {
        return Err(format!("the kernel's balancing is off, and the advice is {blind}"));
    }
    let mut scenes = Vec::new();
    for &scene in &options.scenes {
        scenes.push(judge(options, scene)?);
    }
    if options.json {
        println!("{}", serde_json::to_string(&scenes).map_err(|error| error.to_string())?);
    }
    let runs = options.runs.get();
    let told =
        |one: &Judged| format!("{}={} ({} of {runs})", one.scene, one.advice.join("+"), one.right);
    let text = scenes.iter().map(told).collect::<Vec<_>>().join(" ");
    let is_right = |one: &Judged| (runs - one.right) * RUNS <= runs;
    if scenes.iter().all(is_right) { Ok(text) } else { Err(text) }
}

fn judge(options: &Options, scene: Scene) -> Result<Judged, String> {
    let without = placed(&play(options, scene, Contender::Nobody, false)?.0);
    let mut judged =
        Judged { scene: scene.name(), without, with: Vec::new(), advice: Vec::new(), right: 0 };
    for _ in 0..options.runs.get() {
        let (figures, advice) = play(options, scene, Contender::Kernel, true)?;
        let with = placed(&figures);
        let gain = with.zip(without).map_or(0.0, |(with, without)| with - without);
        let right = if gain >= GAIN { "on" } else { "off" };
        judged.right += usize::from(advice == right);
        judged.with.push(with);
        judged.advice.push(advice);
    }
    Ok(judged)
}

/// Returns the mean share of memory that was on the node that uses it, at the end of each stage.
fn placed(figures: &[Figures]) -> Option<f64> {
    let shares: Vec<f64> = figures.iter().filter_map(|stage| stage.share).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// Plays a scene in a process of its own, which `percid numa check-kernel` may look at.
fn play(
    options: &Options,
    scene: Scene,
    contender: Contender,
    is_judged: bool,
) -> Result<(Vec<Figures>, String), String> {
    let own = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = match options.percid.as_ref().filter(|_| is_judged) {
        Some(percid) => {
            let mut command = Command::new(percid);
            command.args(["numa", "cost", "--json", "--"]).arg(own);
            command
        }
        None => Command::new(own),
    };
    command.args(["numa-race", "--lasting", "--scenes", scene.name()]);
    command.args(["--seconds", &options.seconds.to_string(), "--contender", contender.name()]);
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let wrong = || format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    let line = text.lines().find_map(|line| line.strip_prefix(MARK)).ok_or_else(wrong)?;
    let figures = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if !is_judged {
        return Ok((figures, String::new()));
    }
    // The document begins a line; nothing else does so with a brace.
    let document = text.find("\n{").map(|place| &text[place..]).ok_or_else(wrong)?;
    let document: serde_json::Value =
        serde_json::from_str(document).map_err(|error| error.to_string())?;
    let advice = document["verdict"]["advice"].as_str().ok_or_else(wrong)?;
    eprintln!("{scene:?} {contender}: {}", document);
    Ok((figures, advice.to_owned()))
}
