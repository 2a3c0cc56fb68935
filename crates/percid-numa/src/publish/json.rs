//! A report as JSON, for other processes: one object. All of its strings are names without quotes
//! or backslashes. Times are in nanoseconds; counts by node, reason or `errno` are an object with
//! those as keys.

use std::fmt::{self, Display, Formatter, Write};
use std::time::Duration;

use crate::report::placement_timeline::PlacementTimeline;
use crate::report::{RegionReport, Report};

/// The version of this format. It changes when a field changes its meaning or is removed; new
/// fields may be added.
const FORMAT: u32 = 1;

/// Displays a report as JSON.
pub(crate) struct Json<'a>(pub(crate) &'a Report);

impl Display for Json<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let report = self.0;
        write!(f, "{{\"format\":{FORMAT},\"nodes\":")?;
        list(f, &report.nodes)?;
        f.write_str(",\"slow_nodes\":")?;
        list(f, &report.slow_nodes)?;
        write!(f, ",\"sequence\":{},\"passes\":{}", report.sequence, report.passes)?;
        write!(f, ",\"unreadable_passes\":{}", report.unreadable_passes)?;
        time(f, "period_ns", report.period)?;
        time(f, "scan_ns", report.scan_time)?;
        time(f, "move_ns", report.move_time)?;
        time(f, "age_ns", report.age)?;
        time(f, "run_time_ns", report.run_time)?;
        write!(f, ",\"threads\":{},\"collisions\":{}", report.threads, report.collisions)?;
        write!(f, ",\"events_lost\":{},\"timeline\":", report.events_lost)?;
        list(f, report.timeline.iter().map(OfTimeline))?;
        f.write_str(",\"regions\":")?;
        list(f, report.regions.iter().map(Region))?;
        f.write_char('}')
    }
}

struct OfTimeline<'a>(&'a PlacementTimeline);

impl Display for OfTimeline<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let PlacementTimeline { began, armed, seen, pending, moved, pages, batches, rearmed } =
            self.0;
        write!(f, "{{\"began_ns\":{}", began.as_nanos())?;
        for (name, reached) in
            [("armed_ns", armed), ("seen_ns", seen), ("pending_ns", pending), ("moved_ns", moved)]
        {
            match reached {
                Some(reached) => time(f, name, *reached)?,
                None => write!(f, ",\"{name}\":null")?,
            }
        }
        write!(f, ",\"pages\":{pages},\"batches\":{batches},\"rearmed\":{rearmed}}}")
    }
}

struct Region<'a>(&'a RegionReport);

impl Display for Region<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let region = self.0;
        write!(f, "{{\"start\":{},\"end\":{}", region.range.start, region.range.end)?;
        write!(f, ",\"access\":\"{}\",\"gone\":{}", region.access, region.gone)?;
        counts(f, "pages_by_node", region.pages_by_node.iter().copied())?;
        write!(f, ",\"absent\":{}", region.absent)?;
        write!(f, ",\"local\":{},\"remote\":{}", region.local, region.remote)?;
        write!(f, ",\"private\":{},\"shared\":{}", region.private, region.shared)?;
        counts(f, "recent_accesses_by_node", region.recent_accesses_by_node.iter().copied())?;
        write!(f, ",\"active\":{},\"scanned\":{}", region.active, region.scanned)?;
        counts(f, "skipped", region.skipped.iter().copied())?;
        write!(f, ",\"moved\":{},\"promoted\":{}", region.moved, region.promoted)?;
        write!(f, ",\"demoted\":{},\"pending\":{}", region.demoted, region.pending)?;
        counts(f, "failed", region.failed.iter().copied())?;
        write!(f, ",\"disarmed_whole\":{}", region.disarmed_whole)?;
        write!(f, ",\"unattributed\":{}", region.unattributed)?;
        time(f, "scan_ns", region.scan_time)?;
        time(f, "move_ns", region.move_time)?;
        f.write_char('}')
    }
}

fn time(f: &mut Formatter<'_>, name: &str, time: Duration) -> fmt::Result {
    write!(f, ",\"{name}\":{}", time.as_nanos())
}

fn list(f: &mut Formatter<'_>, items: impl IntoIterator<Item = impl Display>) -> fmt::Result {
    f.write_char('[')?;
    for (place, item) in items.into_iter().enumerate() {
        let separator = if place > 0 { "," } else { "" };
        write!(f, "{separator}{item}")?;
    }
    f.write_char(']')
}

fn counts<K: Display>(
    f: &mut Formatter<'_>,
    name: &str,
    items: impl Iterator<Item = (K, u64)>,
) -> fmt::Result {
    write!(f, ",\"{name}\":{{")?;
    for (place, (key, count)) in items.enumerate() {
        let separator = if place > 0 { "," } else { "" };
        write!(f, "{separator}\"{key}\":{count}")?;
    }
    f.write_char('}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_method::AccessMethod;
    use percid_rules::scan::SkipReason;

    fn region(start: usize) -> RegionReport {
        RegionReport {
            range: start..2 * start,
            access: AccessMethod::Trapped,
            gone: false,
            pages_by_node: vec![(0, 3), (10, 4)],
            absent: 5,
            local: 6,
            remote: 7,
            private: 8,
            shared: 9,
            recent_accesses_by_node: Vec::new(),
            active: 10,
            scanned: 11,
            skipped: SkipReason::ALL.map(|reason| (reason, reason as u64)),
            moved: 12,
            promoted: 20,
            demoted: 21,
            pending: 13,
            failed: vec![(14, 15)],
            disarmed_whole: 16,
            unattributed: 19,
            scan_time: Duration::from_micros(17),
            move_time: Duration::from_nanos(18),
        }
    }

    #[test]
    fn a_report_is_one_object() {
        let report = Report {
            nodes: vec![0, 10],
            slow_nodes: vec![10],
            sequence: -1,
            passes: 2,
            unreadable_passes: 3,
            period: Duration::from_secs(1),
            scan_time: Duration::ZERO,
            move_time: Duration::from_nanos(4),
            run_time: Duration::from_secs(8),
            timeline: vec![PlacementTimeline {
                began: Duration::from_nanos(1),
                armed: Some(Duration::from_nanos(2)),
                pages: 3,
                batches: 4,
                rearmed: 5,
                ..PlacementTimeline::default()
            }],
            age: Duration::from_secs(5),
            threads: 6,
            collisions: 7,
            events_lost: u64::MAX,
            regions: vec![region(4096), region(65536)],
        };
        let region = |start: u32, end: u32| {
            format!(
                "{{\"start\":{start},\"end\":{end},\"access\":\"trapped\",\"gone\":false,\
                 \"pages_by_node\":{{\"0\":3,\"10\":4}},\"absent\":5,\"local\":6,\"remote\":7,\"private\":8,\
                 \"shared\":9,\"recent_accesses_by_node\":{{}},\"active\":10,\"scanned\":11,\"skipped\":{{\"unsuitable\":0,\
                 \"shared_ro\":1,\"inaccessible\":2,\"scan_delay\":3,\"seq_completed\":4,\"pid_inactive\":5,\
                 \"ignore_pid_inactive\":6}},\"moved\":12,\"promoted\":20,\"demoted\":21,\"pending\":13,\"failed\":{{\"14\":15}},\
                 \"disarmed_whole\":16,\"unattributed\":19,\"scan_ns\":17000,\"move_ns\":18}}"
            )
        };
        let regions = format!("{},{}", region(4096, 8192), region(65536, 131_072));
        assert_eq!(
            Json(&report).to_string(),
            format!(
                "{{\"format\":1,\"nodes\":[0,10],\"slow_nodes\":[10],\"sequence\":-1,\"passes\":2,\"unreadable_passes\":3,\"period_ns\":1000000000,\
                 \"scan_ns\":0,\"move_ns\":4,\"age_ns\":5000000000,\"run_time_ns\":8000000000,\"threads\":6,\"collisions\":7,\
                 \"events_lost\":18446744073709551615,\
                 \"timeline\":[{{\"began_ns\":1,\"armed_ns\":2,\"seen_ns\":null,\"pending_ns\":null,\
                 \"moved_ns\":null,\"pages\":3,\"batches\":4,\"rearmed\":5}}],\"regions\":[{regions}]}}"
            )
        );
    }
}
