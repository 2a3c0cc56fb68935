//! The origin of a trace as pairs of a key and a text: the metadata of files.

use std::str::FromStr;

use crate::counters::MAX_COUNTERS;
use crate::error::Error;
use crate::numa::ScanSettings;
use crate::trace::{Coverage, Origin, Sampling};

const RELEASE: &str = "percid.release";
const CLOCK: &str = "percid.clock";
const POSSIBLE_CPUS: &str = "percid.possible_cpus";
const ONLINE_CPUS: &str = "percid.online_cpus";
const LOST: &str = "percid.lost";
const COMMAND: &str = "percid.command";
const SUBJECT: &str = "percid.subject";
const SCAN_DELAY_MS: &str = "percid.numa_scan_delay_ms";
const SCAN_SIZE_MB: &str = "percid.numa_scan_size_mb";
const NODES: &str = "percid.cpu_nodes";
const COUNTERS: &str = "percid.counters";
const SAMPLE_FREQUENCY: &str = "percid.sample_frequency";
const SAMPLE_PERIOD: &str = "percid.sample_period";
const AWAY_ONLY: &str = "percid.switches_away_only";
const NOT_INHERITED: &str = "percid.not_inherited";
const SOME_CPUS: &str = "percid.some_cpus";
const FILTERED: &str = "percid.filtered";
const LATE_CPUS: &str = "percid.late_cpus";
const CUT_OFF: &str = "percid.cut_off";
const INFERRED: &str = "percid.inferred_switches";
const UNPARSED: &str = "percid.unparsed_lines";
const NO_STATES: &str = "percid.no_states";
const REMARKS: &str = "percid.remarks";

/// The separator of remarks. No remark contains a control character, and some files have a line for
/// each pair.
const BETWEEN_REMARKS: &str = "\u{1f}";

/// Returns the pairs of everything that is known.
pub(crate) fn pairs(origin: &Origin) -> Vec<(&'static str, String)> {
    let Origin { release, clock, possible_cpus, online_cpus, lost, command, .. } = origin;
    let Origin { subject, scan, nodes, counters, coverage, late_cpus, remarks, .. } = origin;
    let pairs = [
        (RELEASE, release.clone()),
        (CLOCK, clock.clone()),
        (POSSIBLE_CPUS, possible_cpus.map(|cpus| cpus.to_string())),
        (ONLINE_CPUS, online_cpus.map(|cpus| cpus.to_string())),
        (LOST, Some(lost.to_string())),
        (COMMAND, command.clone()),
        (SUBJECT, list(subject)),
        (SCAN_DELAY_MS, scan.map(|scan| scan.delay_ms.to_string())),
        (SCAN_SIZE_MB, scan.map(|scan| scan.size_mb.to_string())),
        (NODES, list(nodes)),
        (COUNTERS, (!counters.is_empty()).then(|| joined(counters))),
        (LATE_CPUS, list(late_cpus)),
        (REMARKS, (!remarks.is_empty()).then(|| remarks.join(BETWEEN_REMARKS))),
    ];
    let all = pairs.into_iter().chain(pairs_of_coverage(coverage));
    all.filter_map(|(key, value)| Some((key, value?))).collect()
}

/// Returns numbers separated by commas, if there are any.
fn list(numbers: &[u32]) -> Option<String> {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    (!numbers.is_empty()).then(|| numbers.join(","))
}

/// Returns the pairs that describe which part of the schedule was recorded.
fn pairs_of_coverage(coverage: &Coverage) -> [(&'static str, Option<String>); 10] {
    let Coverage { sampling, away_only, not_inherited, some_cpus, filtered, .. } = *coverage;
    let Coverage { cut_off, inferred, unread, no_states, .. } = *coverage;
    let (frequency, period) = match sampling {
        Some(Sampling::Frequency(hz)) => (Some(hz), None),
        Some(Sampling::Period(nth)) => (None, Some(nth)),
        None => (None, None),
    };
    let set = |is_set: bool| is_set.then(|| "1".to_owned());
    [
        (SAMPLE_FREQUENCY, frequency.map(|hz| hz.to_string())),
        (SAMPLE_PERIOD, period.map(|nth| nth.to_string())),
        (AWAY_ONLY, set(away_only)),
        (NOT_INHERITED, set(not_inherited)),
        (SOME_CPUS, set(some_cpus)),
        // Written if it is not filtered too: files of older recorders have no such pair.
        (FILTERED, Some(u8::from(filtered).to_string())),
        (CUT_OFF, set(cut_off)),
        (INFERRED, (inferred > 0).then(|| inferred.to_string())),
        (UNPARSED, (unread > 0).then(|| unread.to_string())),
        (NO_STATES, set(no_states)),
    ]
}

/// Returns the origin of a trace. `text` returns the text of a key.
///
/// # Errors
///
/// If the text of a number is not a number, or if there are more than [`MAX_COUNTERS`] counters.
pub(crate) fn from_pairs(text: impl Fn(&str) -> Option<String>) -> Result<Origin, Error> {
    Ok(Origin {
        release: text(RELEASE),
        clock: text(CLOCK),
        possible_cpus: number(POSSIBLE_CPUS, text(POSSIBLE_CPUS))?,
        online_cpus: number(ONLINE_CPUS, text(ONLINE_CPUS))?,
        lost: number(LOST, text(LOST))?.unwrap_or(0),
        command: text(COMMAND),
        scan: scan(
            number(SCAN_DELAY_MS, text(SCAN_DELAY_MS))?,
            number(SCAN_SIZE_MB, text(SCAN_SIZE_MB))?,
        ),
        subject: numbers(SUBJECT, text(SUBJECT))?,
        nodes: numbers(NODES, text(NODES))?,
        counters: counters(text(COUNTERS))?,
        late_cpus: numbers(LATE_CPUS, text(LATE_CPUS))?,
        remarks: remarks(text(REMARKS)),
        coverage: coverage(text)?,
    })
}

fn remarks(text: Option<String>) -> Vec<String> {
    let mut origin = Origin::default();
    let text = text.unwrap_or_default();
    let remarks = text.split(BETWEEN_REMARKS).filter(|remark| !remark.is_empty());
    remarks.for_each(|remark| origin.remark(remark));
    origin.remarks
}

/// Returns which part of the schedule was recorded.
fn coverage(text: impl Fn(&str) -> Option<String>) -> Result<Coverage, Error> {
    let read = |key: &str| number::<u64>(key, text(key));
    let is_set = |key: &str| read(key).map(|number| number.is_some_and(|number| number != 0));
    let frequency = read(SAMPLE_FREQUENCY)?.map(Sampling::Frequency);
    Ok(Coverage {
        sampling: frequency.or(read(SAMPLE_PERIOD)?.map(Sampling::Period)),
        away_only: is_set(AWAY_ONLY)?,
        not_inherited: is_set(NOT_INHERITED)?,
        some_cpus: is_set(SOME_CPUS)?,
        filtered: is_set(FILTERED)?,
        cut_off: is_set(CUT_OFF)?,
        inferred: read(INFERRED)?.unwrap_or(0),
        unread: read(UNPARSED)?.unwrap_or(0),
        no_states: is_set(NO_STATES)?,
    })
}

/// Returns `true` if the pairs are from a recorder that did not store whether it followed only a
/// command.
pub(crate) fn may_be_filtered(text: impl Fn(&str) -> Option<String>) -> bool {
    text(FILTERED).is_none() && text(COMMAND).is_some()
}

fn scan(delay_ms: Option<u64>, size_mb: Option<u64>) -> Option<ScanSettings> {
    Some(ScanSettings { delay_ms: delay_ms?, size_mb: size_mb? })
}

/// Returns the numbers of a list that is separated by commas.
fn numbers(key: &str, text: Option<String>) -> Result<Vec<u32>, Error> {
    let Some(text) = text else { return Ok(Vec::new()) };
    let numbers = text.split(',').map(|one| number(key, Some(one.to_owned())));
    Ok(numbers.collect::<Result<Vec<Option<u32>>, Error>>()?.into_iter().flatten().collect())
}

/// Returns names with commas between them. perf's names of counters may contain commas
/// (`cpu/event=0xc0,umask=0/`), which get a backslash.
fn joined(names: &[String]) -> String {
    let escaped = |name: &String| name.replace('\\', r"\\").replace(',', r"\,");
    names.iter().map(escaped).collect::<Vec<_>>().join(",")
}

/// Returns the names of a text that [`joined`] returned.
fn split(text: &str) -> Vec<String> {
    let (mut names, mut name) = (Vec::new(), String::new());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ',' => names.push(std::mem::take(&mut name)),
            '\\' => name.extend(letters.next()),
            _ => name.push(letter),
        }
    }
    names.push(name);
    names
}

/// Returns the names of counters.
fn counters(text: Option<String>) -> Result<Vec<String>, Error> {
    let names = text.as_deref().map(split).unwrap_or_default();
    match names.len() {
        0..=MAX_COUNTERS => Ok(names),
        more => Err(Error::in_file(format!(
            "the metadata `{COUNTERS}` has {more} names, expected at most {MAX_COUNTERS}"
        ))),
    }
}

/// Returns the number of a key, if the key has a text.
pub(crate) fn number<T: FromStr>(key: &str, text: Option<String>) -> Result<Option<T>, Error> {
    let Some(text) = text else { return Ok(None) };
    let no_number = |_| Error::in_file(format!("the metadata `{key}` is not a number"));
    text.parse().map(Some).map_err(no_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_commas_and_backslashes_stay_what_they_are() {
        let names = ["cycles", "cpu/event=0xc0,umask=0/", r"a\,b\", ","].map(str::to_owned);
        assert_eq!(split(&joined(&names)), names);
        assert_eq!(joined(&names[..1]), "cycles");
        assert_eq!(split("cache-misses,cycles"), ["cache-misses", "cycles"]);
    }
}
