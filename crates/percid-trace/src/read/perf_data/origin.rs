//! The origin of a recording and its coverage, from the sections and events of the file.

use super::container::{Container, feature};
use crate::error::Error;
use crate::formats::Formats;
use crate::read::bytes::Bytes;
use crate::trace::{Coverage, Origin};

/// Returns the origin of the recording, without its losses and its coverage.
pub(super) fn origin(container: &Container<'_>) -> Result<Origin, Error> {
    let mut origin = Origin { clock: Some(clock(container).into()), ..Origin::default() };
    if let Some(mut data) = container.feature(feature::OS_RELEASE) {
        origin.release = Some(string(&mut data)?);
    }
    if let Some(mut data) = container.feature(feature::NR_CPUS) {
        origin.possible_cpus = Some(data.u32("the number of CPUs")?);
        origin.online_cpus = Some(data.u32("the number of CPUs that are there")?);
    }
    if let Some(mut data) = container.feature(feature::CMDLINE) {
        origin.command = Some(command(&mut data)?);
    }
    Ok(origin)
}

/// Returns which parts of the schedule were recorded, by the options of perf.
pub(super) fn coverage(container: &Container<'_>, formats: &Formats) -> Result<Coverage, Error> {
    let all = || container.events.iter().map(|event| &event.attributes);
    let is_switch = |id: u64| formats.is(id, "sched_switch");
    let switches = || all().filter(|event| event.tracepoint().is_some_and(is_switch));
    let asked = match container.feature(feature::CMDLINE) {
        Some(mut data) => words(&mut data)?,
        None => Vec::new(),
    };
    let asked: Vec<String> = asked.into_iter().take_while(|word| word != "--").collect();
    let has = |options: &[&str]| asked.iter().any(|word| is_option(word, options));
    let of_threads = has(&["-p", "--pid", "-t", "--tid"]) && !has(&["-a", "--all-cpus"]);
    let of_group = has(&["-G", "--cgroup"]);
    let of_some = of_threads || of_group || all().any(|event| event.begins_with_command());
    Ok(Coverage {
        sampling: switches().find_map(|event| event.sampling()),
        // A tracepoint that belongs to a thread is hit while it runs, so not by the switch to it.
        away_only: of_some && switches().next().is_some(),
        not_inherited: of_some && !all().any(|event| event.is_inherited()),
        some_cpus: has(&["-C", "--cpu"]),
        filtered: of_some || has(&["--filter"]),
        cut_off: false,
        inferred: 0,
        unread: 0,
        no_states: false,
    })
}

/// Returns `true` if a word is one of these options, with or without its value.
fn is_option(word: &str, options: &[&str]) -> bool {
    options.iter().any(|option| match word.strip_prefix(option) {
        Some(value) if option.starts_with("--") => value.is_empty() || value.starts_with('='),
        Some(value) => value.is_empty() || value.starts_with(|first: char| first.is_ascii_digit()),
        None => false,
    })
}

/// Returns the recorded command: the words after `--`, or the whole command line of `perf`.
fn command(data: &mut Bytes<'_>) -> Result<String, Error> {
    let words = words(data)?;
    let recorded = words.iter().position(|word| word == "--").map_or(0, |dashes| dashes + 1);
    Ok(words[recorded..].join(" "))
}

fn words(data: &mut Bytes<'_>) -> Result<Vec<String>, Error> {
    let number = data.u32("the number of words of the command")?;
    (0..number).map(|_| string(data)).collect()
}

fn string(data: &mut Bytes<'_>) -> Result<String, Error> {
    let len = data.u32("the length of a text")?;
    let text = data.take(len.into(), "a text")?;
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    Ok(String::from_utf8_lossy(&text[..end]).into_owned())
}

/// The clock of the times, by the kernel's name. The numbers are Linux's (`CLOCK_MONOTONIC` and so
/// on), on whatever system they are read.
fn clock(container: &Container<'_>) -> &'static str {
    let clock = container.events.first().and_then(|event| event.attributes.clock);
    match clock {
        Some(0) => "realtime",
        Some(1) => "mono",
        Some(4) => "mono_raw",
        Some(7) => "boot",
        Some(11) => "tai",
        _ => "perf",
    }
}
