//! Records and prints a summary.
use percid_trace::record::*;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn main() {
    let mut args = std::env::args_os().skip(1).peekable();
    let mut options = Options::new(Target::System);
    let (mut dump, mut ids) = (false, false);
    while let Some(word) = args.next() {
        match word.to_str().unwrap() {
            "--pid" => {
                options.target =
                    Target::Process(args.next().unwrap().to_str().unwrap().parse().unwrap())
            }
            "--perf" => options.way = Some(Way::PerfEvents),
            "--tracefs" => options.way = Some(Way::Tracefs),
            "--dump" => dump = true,
            "--ids" => ids = true,
            "--kb" => options.buffer_kb = args.next().unwrap().to_str().unwrap().parse().unwrap(),
            "--ms" => {
                options.limit = Some(Duration::from_millis(
                    args.next().unwrap().to_str().unwrap().parse().unwrap(),
                ))
            }
            "--" => options.target = Target::Command(args.by_ref().collect()),
            other => panic!("{other}"),
        }
    }
    let stop = AtomicBool::new(false);
    match record(&options, &stop, |_| {}) {
        Err(refusal) => {
            eprintln!("{refusal}");
            std::process::exit(refusal.exit_code().into());
        }
        Ok(recorded) => {
            let trace = &recorded.trace;
            eprintln!(
                "events={} status={:?} way={} without={:?} {:?}",
                trace.events.len(),
                recorded.status,
                recorded.way,
                recorded.without,
                trace.origin
            );
            if dump {
                for e in &trace.events {
                    println!("{:.6} {} {:?}", e.time as f64 / 1e9, e.cpu, e.what);
                }
            }
            if ids {
                let mut procs: Vec<u32> = trace
                    .events
                    .iter()
                    .filter_map(|e| match e.what {
                        percid_trace::event::What::Exec { thread, .. } => Some(thread),
                        _ => None,
                    })
                    .collect();
                procs.sort();
                procs.dedup();
                for p in procs {
                    match percid_trace::kernel_ids::recording(trace, p) {
                        Err(e) => println!("{p}: {e}"),
                        Ok(r) => {
                            let threads = r
                                .steps
                                .iter()
                                .filter(|s| matches!(s.event, percid_sim::replay::Event::Spawn(..)))
                                .count()
                                + 1;
                            let mut line =
                                format!("{p}: threads={threads} steps={}", r.steps.len());
                            let idn = r
                                .steps
                                .iter()
                                .filter(|s| matches!(s.event, percid_sim::replay::Event::Id(..)))
                                .count();
                            line += &format!(" ids={idn}");
                            for name in
                                ["linux-6.14", "linux-6.3", "linux-6.4", "linux-6.13", "linux-6.19"]
                            {
                                let c = r.compare(percid_sim::policies::find(name).unwrap());
                                line += &format!(
                                    " | {name}: {}/{} {}",
                                    c.differences.len(),
                                    c.compared,
                                    c.border.map_or(0, |b| b / 1_000_000)
                                );
                            }
                            println!("{line}");
                            let c = percid_trace::kernel_ids::compare(trace, p).unwrap();
                            if !c.differences.is_empty() {
                                println!("{c}");
                                std::fs::write(format!("/tmp/hb/rec-{p}"), r.to_string()).unwrap();
                            }
                        }
                    }
                }
            }
        }
    }
}
