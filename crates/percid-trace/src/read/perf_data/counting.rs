//! Counters that `perf record -e '{sched:sched_switch,cycles}:S' -a` reads at every switch.

use std::collections::HashMap;

use super::container::{Container, feature};
use super::sample::Group;
use crate::counters::{Counted, Counter, MAX_COUNTERS, Reading, Readings};
use crate::error::Error;
use crate::event::{Cpu, Tid};
use crate::formats::Formats;

/// Makes turns of what the counters show at switches.
pub(super) struct Counting {
    /// The event of the file, by the number of an event on a CPU; `None` for the switches.
    events: HashMap<u64, Option<usize>>,
    names: Vec<String>,
    /// The place of each event among the counters, once it has been met.
    places: Vec<Option<usize>>,
    /// The events at these places.
    counters: Vec<usize>,
    readings: Readings,
    counted: Vec<Counted>,
}

impl Counting {
    pub(super) fn new(container: &Container<'_>, formats: &Formats) -> Result<Counting, Error> {
        let described = descriptions(container)?;
        let mut counting = Counting {
            events: HashMap::new(),
            names: Vec::new(),
            places: vec![None; container.events.len()],
            counters: Vec::new(),
            readings: Readings::default(),
            counted: Vec::new(),
        };
        for (nr, event) in container.events.iter().enumerate() {
            let described = event.ids.first().and_then(|id| described.get(id));
            let (sort, number) = event.attributes.counter();
            let known = || Counter::of_kernel(sort, number).map(|counter| counter.to_string());
            let name = described.cloned().or_else(known).unwrap_or_else(|| format!("event {nr}"));
            let name = counting.unlike_others(name);
            counting.names.push(name);
            let is_switch =
                event.attributes.tracepoint().is_some_and(|id| formats.is(id, "sched_switch"));
            let counts = (!is_switch).then_some(nr);
            counting.events.extend(event.ids.iter().map(|&id| (id, counts)));
        }
        Ok(counting)
    }

    /// Names are in lists, separated by commas.
    fn unlike_others(&self, name: String) -> String {
        let name = name.replace([',', '\n', '\t'], " ");
        match self.names.contains(&name) {
            true => format!("{name} #{}", self.names.len()),
            false => name,
        }
    }

    /// A CPU switched from one thread to another, and the counters showed this.
    pub(super) fn switch(
        &mut self,
        time: u64,
        cpu: Cpu,
        (prev, next): (Tid, Tid),
        group: &Group<'_>,
    ) {
        let (mut shown, mut switches) = ([0; MAX_COUNTERS], None);
        for (id, value) in group.values() {
            let Some(&event) = self.events.get(&id) else { continue };
            let place = event.and_then(|event| {
                if self.places[event].is_none() && self.counters.len() < MAX_COUNTERS {
                    self.places[event] = Some(self.counters.len());
                    self.counters.push(event);
                }
                self.places[event]
            });
            match (event, place) {
                (None, _) => switches = Some(value),
                (_, Some(place)) => shown[place] = value,
                _ => {}
            }
        }
        let &Group { asked, running, .. } = group;
        let reading =
            Reading { time, cpu, prev, next: Some(next), switches, asked, running, shown };
        self.counted.extend(self.readings.take(reading));
    }

    /// Notes that records of a CPU were lost; `None` if the CPU is not known.
    pub(super) fn lose(&mut self, cpu: Option<Cpu>) {
        match cpu {
            Some(cpu) => self.readings.lose(cpu),
            None => self.readings = Readings::default(),
        }
    }

    /// The turns, and what was counted.
    pub(super) fn finish(self, counters: &mut Vec<String>) -> Vec<Counted> {
        if self.counters.is_empty() {
            return Vec::new();
        }
        *counters = self.counters.iter().map(|&event| self.names[event].clone()).collect();
        let mut counted = self.counted;
        counted.sort_by_key(|turn| (turn.time, turn.cpu));
        counted
    }
}

/// Returns the names of events on the command line, by the events' numbers.
fn descriptions(container: &Container<'_>) -> Result<HashMap<u64, String>, Error> {
    const WHAT: &str = "the description of an event";
    let Some(mut data) = container.feature(feature::EVENT_DESC) else { return Ok(HashMap::new()) };
    let (events, attributes) = (data.u32(WHAT)?, data.u32(WHAT)?);
    let mut names = HashMap::new();
    for _ in 0..events {
        data.take(attributes.into(), WHAT)?;
        let ids = data.u32(WHAT)?;
        let length = data.u32(WHAT)?;
        let name = data.take(length.into(), WHAT)?;
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        let name = String::from_utf8_lossy(&name[..end]).into_owned();
        for _ in 0..ids {
            names.insert(data.u64(WHAT)?, name.clone());
        }
    }
    Ok(names)
}
