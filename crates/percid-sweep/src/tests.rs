//! Sweeps of short runs, in every order and by any number of processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{
    Campaign, DESCRIPTION, Directory, Error, Grid, Job, ModuleHash, Named, Plan, Seeds, Shard,
    Space, Until, run, table,
};
use percid_sim::run_control::RunControl;
use percid_sim::workload::Workload;

fn named(name: &str, text: &str) -> Named {
    Named { name: name.to_owned(), text: text.to_owned() }
}

fn grid(policies: &[&str], parameters: &[(&str, &[f64])]) -> Grid {
    let text = percid_sim::machine::Machine::preset_text("cascade-lake").expect("a preset");
    let workload = Workload::preset_text("container").expect("a preset");
    let mut parameters: BTreeMap<String, Vec<f64>> =
        parameters.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect();
    parameters.entry("duration_ms".to_owned()).or_insert_with(|| vec![20.0]);
    Grid {
        machines: vec![named("cascade-lake", text)],
        workloads: vec![named("container", workload)],
        policies: policies.iter().map(|&name| name.to_owned()).collect(),
        memory: None,
        parameters,
    }
}

fn space() -> Space {
    Space {
        grids: vec![grid(&["per-cpu", "percid-table"], &[("allowed", &[4.0, 8.0])])],
        seeds: Seeds { first: 1, count: 70, list: Vec::new(), until: None },
        modules: Vec::new(),
    }
}

fn adaptive(interval: f64) -> Space {
    let seeds =
        Seeds { first: 1, count: 3, list: Vec::new(), until: Some(Until { interval, most: 400 }) };
    Space { seeds, ..space() }
}

fn plan_of(space: Space) -> Arc<Plan> {
    Arc::new(Plan::new(space, false).expect("a good space"))
}

fn compute(plan: &Plan, unit: crate::Unit) -> Vec<u8> {
    let sent = plan.job(unit).to_text();
    let job = Job::read(&sent).expect("a job of this version");
    job.compute(&RunControl::default()).expect("it can be computed")
}

/// A temporary folder, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("percid-sweep-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Fills a store. Requests `at_a_time` units at once, which end in the reverse order.
fn fill(store: &Directory, plan: &Arc<Plan>, shard: Option<Shard>, at_a_time: usize) -> Campaign {
    let mut campaign = Campaign::new(plan.clone(), shard);
    for name in store.runs().expect("a list") {
        let bytes = store.read_runs(&name).expect("a file");
        campaign.found(&name, bytes).expect("a whole file");
    }
    loop {
        let mut units: Vec<_> = (0..at_a_time).map_while(|_| campaign.next()).collect();
        if units.is_empty() {
            return campaign;
        }
        units.reverse();
        for unit in units {
            let bytes = compute(plan, unit);
            store.write_runs(&plan.name(unit), &bytes).expect("written");
            campaign.done(unit, Some(bytes)).expect("what was computed");
        }
    }
}

fn table_of(store: &Directory, plan: &Plan) -> Vec<u8> {
    let merged = plan.merge(|name| store.read_runs(name)).expect("whole files");
    assert!(merged.missing.is_empty(), "{:?}", merged.missing);
    table::to_parquet(&merged.table)
}

#[test]
fn any_number_of_shards_in_any_order_gives_the_bytes_of_one_run_in_memory() {
    for space in [space(), adaptive(0.02)] {
        let plan = plan_of(space);
        let table = run(&plan, &RunControl::default()).expect("it can be run");
        let expected = table::to_parquet(&table);
        for of in [1, 2, 3, 7] {
            let folder = Folder::new(&format!("shards-{of}-{}", plan.most_runs()));
            let store = Directory::open(&folder.0, &plan).expect("a new store");
            let shares = (1..=of).map(|number| {
                Campaign::new(plan.clone(), Some(Shard { number, of })).counts().left
            });
            assert_eq!(shares.sum::<u64>(), plan.most_runs(), "no run is in two shares");
            for number in (1..=of).rev() {
                fill(&store, &plan, Some(Shard { number, of }), of as usize);
            }
            assert_eq!(table_of(&store, &plan), expected, "{of} shards");
        }
    }
}

#[test]
fn what_is_there_is_not_computed_again() {
    let plan = plan_of(space());
    let folder = Folder::new("resumed");
    let store = Directory::open(&folder.0, &plan).expect("a new store");
    let all = fill(&store, &plan, None, 1).counts();
    assert_eq!((all.found, all.done, all.left, all.failed), (0, 280, 0, 0));
    let names = store.runs().expect("a list");
    let lost = &names[1];
    fs::remove_file(folder.0.join("runs").join(lost)).expect("a file");
    let merged = plan.merge(|name| store.read_runs(name)).expect("whole files");
    assert_eq!(&merged.missing, std::slice::from_ref(lost));
    let again = fill(&store, &plan, None, 1).counts();
    assert_eq!(again.found + again.done, 280);
    assert!(again.done > 0 && again.done < 70, "{again:?}");
    assert_eq!(fill(&store, &plan, None, 1).counts().done, 0);
}

#[test]
fn seeds_go_on_until_the_mean_is_known_and_no_longer() {
    let runs = |interval| {
        let plan = plan_of(adaptive(interval));
        let folder = Folder::new(&format!("until-{interval}"));
        let store = Directory::open(&folder.0, &plan).expect("a new store");
        fill(&store, &plan, None, 3);
        let cells = plan.merge(|name| store.read_runs(name)).expect("whole files").cells;
        assert_eq!(cells.len(), 4);
        for cell in &cells {
            let (mean, half) = (cell.ns_per_burst.expect("bursts"), cell.half_interval_ns);
            let share = half.expect("runs") / mean;
            assert!(share <= interval || cell.runs == 400, "{cell:?}");
        }
        // A later campaign finds nothing left to do.
        let again = fill(&store, &plan, None, 3).counts();
        assert_eq!((again.done, again.left), (0, 0), "{again:?}");
        cells.iter().map(|cell| cell.runs).sum::<u64>()
    };
    let (rough, exact) = (runs(0.5), runs(0.001));
    assert_eq!(rough, 4 * 3, "the least that was wanted");
    assert!(exact > 4 * 30, "{exact}");
}

#[test]
fn a_cell_that_fails_ends_and_the_others_go_on() {
    for space in [space(), adaptive(0.02)] {
        let plan = plan_of(space);
        let mut campaign = Campaign::new(plan.clone(), None);
        let first = campaign.next().expect("a unit");
        campaign.failed(first);
        while let Some(unit) = campaign.next() {
            campaign.done(unit, Some(compute(&plan, unit))).expect("what was computed");
        }
        let counts = campaign.counts();
        assert_eq!(counts.left, 0);
        assert!(counts.failed > 0 && counts.done > 0, "{counts:?}");
    }
}

#[test]
fn grids_have_what_they_share_once_and_empty_where_they_lack_a_column() {
    let space = Space {
        grids: vec![
            grid(&["per-cpu"], &[("allowed", &[4.0, 8.0])]),
            grid(&["per-cpu", "linux-6.12.48"], &[("allowed", &[8.0])]),
            grid(&["per-cpu"], &[("stay_ms", &[5.0])]),
        ],
        seeds: Seeds { first: 7, count: 1, list: Vec::new(), until: None },
        modules: Vec::new(),
    };
    let plan = plan_of(space);
    assert_eq!(plan.cells(), 4, "per-cpu with allowed=8 is in two of them");
    let table = run(&plan, &RunControl::default()).expect("it can be run");
    let allowed = table::numbers(&table, "parameters.allowed").expect("a column");
    assert_eq!(allowed, [Some(4.0), Some(8.0), Some(8.0), None]);
    let names: Vec<&str> =
        table.schema_ref().fields().iter().take(9).map(|field| field.name().as_str()).collect();
    let expected = [
        "machine",
        "workload",
        "memory",
        "seed",
        "parameters.allowed",
        "parameters.duration_ms",
        "parameters.stay_ms",
        "policy",
        "runs",
    ];
    assert_eq!(names, expected);
    assert_eq!(
        plan.units().map(|unit| plan.name(unit)).next().as_deref(),
        Some(
            "machine=cascade-lake/workload=container/allowed=4/duration_ms=20/policy=per-cpu/seeds-7-7.parquet"
        )
    );
}

fn refused(space: Space) -> String {
    Plan::new(space, false).expect_err("a fault").to_string()
}

#[test]
fn what_makes_no_sense_is_refused_with_what_was_expected() {
    let with = |change: fn(&mut Space)| {
        let mut space = space();
        change(&mut space);
        refused(space)
    };
    for (said, expected) in [
        (with(|space| space.grids[0].policies.push("per-cup".to_owned())), "policy per-cup: "),
        (
            with(|space| space.grids[0].machines[0].text.push_str("\ncpus = 3\n")),
            "machine cascade-lake: line",
        ),
        (
            with(|space| space.grids[0].workloads[0].text = "name = 3".to_owned()),
            "workload container: line 1",
        ),
        (
            with(|space| space.grids[0].memory = Some("virtual".to_owned())),
            "expected one of copy-on-write",
        ),
        (
            with(|space| {
                space.grids[0].parameters.insert("colour".to_owned(), vec![1.0]);
            }),
            "parameter colour: expected one of",
        ),
        (
            with(|space| {
                space.grids[0].parameters.insert("stay_ms".to_owned(), vec![-1.0]);
            }),
            "container on cascade-lake, ",
        ),
        (
            with(|space| {
                space.grids[0].parameters.insert("stay_ms".to_owned(), vec![]);
            }),
            "stay_ms: expected at least one value",
        ),
        (with(|space| space.seeds.count = 0), "seeds: expected at least one"),
        (with(|space| space.seeds.count = u64::MAX), "expected at most 10000000 runs"),
        (with(|space| space.seeds.list = vec![1, 2]), "seeds: expected a list that begins with"),
        (
            with(|space| (space.seeds.list, space.seeds.count) = (vec![1, 4, 1], 3)),
            "seeds: expected each one once, found 1 twice",
        ),
        (
            with(|space| space.seeds.until = Some(Until { interval: 0.0, most: 100 })),
            "an interval above 0",
        ),
        (
            with(|space| space.seeds.until = Some(Until { interval: 0.1, most: 5 })),
            "at most 5 to be at least the 70",
        ),
        (with(|space| space.grids.clear()), "at least one combination"),
        (
            with(|space| {
                let mut other = space.grids[0].machines[0].clone();
                other.text.push('\n');
                space.grids[0].machines.push(other);
            }),
            "expected one machine named cascade-lake",
        ),
    ] {
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_combination_that_makes_no_sense_can_be_a_failure() {
    let mut space = space();
    space.grids[0].parameters.insert("stay_ms".to_owned(), vec![-1.0, 5.0]);
    let plan = Plan::new(space, true).expect("kept");
    let faults = plan.units().filter(|&unit| {
        let job = Job::read(&plan.job(unit).to_text()).expect("a job");
        job.compute(&RunControl::default()).is_err()
    });
    let all = plan.units().count();
    assert_eq!(faults.count(), all / 2);
}

#[test]
fn a_store_takes_the_runs_of_its_sweep_only() {
    let folder = Folder::new("belongs");
    let own = plan_of(space());
    Directory::open(&folder.0, &own).expect("a new store");
    Directory::open(&folder.0, &own).expect("its own");
    let (_, described) = Directory::existing(&folder.0).expect("a store");
    assert_eq!(described.description(), own.description());
    let mut other = space();
    other.seeds.count = 71;
    let said = Directory::open(&folder.0, &plan_of(other)).expect_err("another").to_string();
    assert!(said.contains("space.seeds.count is 70, expected 71"), "{said}");

    let text = own
        .description()
        .replace(&format!("\"percid\": \"{}\"", crate::VERSION), "\"percid\": \"0.0.1\"");
    fs::write(folder.0.join(DESCRIPTION), text).expect("written");
    let said = Directory::open(&folder.0, &own).expect_err("another version").to_string();
    assert!(said.contains("it was made by percid 0.0.1, this is"), "{said}");

    let strange = Folder::new("strange");
    fs::create_dir_all(&strange.0).expect("a folder");
    fs::write(strange.0.join("thesis.txt"), "mine").expect("written");
    let said = Directory::open(&strange.0, &own).expect_err("no store").to_string();
    assert!(said.contains("expected a new or empty folder"), "{said}");
}

#[test]
fn a_job_of_another_version_is_refused() {
    let plan = plan_of(space());
    let job = plan.job(plan.units().next().expect("a unit"));
    let text = Job { percid: "9.9.9".to_owned(), ..job }.to_text();
    assert!(matches!(Job::read(&text), Err(Error::OtherVersion { .. })));
    assert!(Job::read("{}").is_err() && Job::read("x").is_err());
}

#[test]
fn damaged_files_are_named_and_unfinished_ones_do_not_count() {
    let folder = Folder::new("damaged");
    let plan = plan_of(space());
    let store = Directory::open(&folder.0, &plan).expect("a new store");
    fill(&store, &plan, None, 1);
    let names = store.runs().expect("a list");
    let path = folder.0.join("runs").join(&names[0]);
    fs::write(path.with_extension("1-1.part"), "half").expect("written");
    assert_eq!(store.runs().expect("a list"), names);
    let whole = fs::read(&path).expect("a file");
    for damaged in [&whole[..0], &whole[..whole.len() / 2], &[7; 100][..]] {
        fs::write(&path, damaged).expect("written");
        let said = plan.merge(|name| store.read_runs(name)).expect_err("damaged").to_string();
        assert!(said.starts_with(&format!("runs/{}", names[0])), "{said}");
        assert!(said.contains("delete it"), "{said}");
    }
    fs::write(&path, whole).expect("written");
    assert!(plan.merge(|name| store.read_runs(name)).is_ok(), "as it was");
    let mut later = space();
    later.seeds.first = 2;
    let later = plan_of(later);
    let unit = later.units().next().expect("a unit");
    fs::write(&path, compute(&later, unit)).expect("written");
    let said = plan.merge(|name| store.read_runs(name)).expect_err("another unit's").to_string();
    assert!(said.contains("it has other seeds than its name says"), "{said}");
}

#[test]
fn a_stopped_job_has_no_result() {
    let plan = plan_of(space());
    let control = RunControl::default();
    control.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let job = plan.job(plan.units().next().expect("a unit"));
    assert!(matches!(job.compute(&control), Err(Error::Stopped)));
    assert!(matches!(run(&plan, &control), Err(Error::Stopped)));
}

/// The policy `per-cpu` under another name, as a module has one.
static MODULE: percid_sim::policies::PolicySpec = percid_sim::policies::PolicySpec {
    name: "mine.wasm",
    about: "a module",
    create: &|topology| (percid_sim::policies::find("per-cpu").expect("a policy").create)(topology),
};

/// A small sweep of a module with this hash.
fn with_module(sha256: &str) -> Space {
    Space {
        grids: vec![grid(&["per-cpu", "mine.wasm"], &[])],
        seeds: Seeds { count: 2, ..space().seeds },
        modules: vec![ModuleHash { name: "mine.wasm".to_owned(), sha256: sha256.to_owned() }],
    }
}

#[test]
fn a_sweep_of_a_module_continues_with_the_same_module_only() {
    let plan = Plan::with_policies(with_module("aa"), false, vec![&MODULE]).expect("a good space");
    for unit in plan.units() {
        plan.compute(unit, &RunControl::default()).expect("it can be computed");
    }
    assert!(plan.expect_same(&plan.description()).is_ok());
    let other = Plan::with_policies(with_module("bb"), false, vec![&MODULE]).expect("a good space");
    let refused = other.expect_same(&plan.description()).expect_err("another module").to_string();
    assert!(refused.contains(r#"modules[0].sha256 is "aa", expected "bb""#), "{refused}");
    // Without the module, runs that are there can be merged, and no others computed.
    let described = Plan::described_by(&plan.description()).expect("its own description");
    assert_eq!(described.description(), plan.description());
    let unit = described.units().last().expect("a unit");
    let missing = described.compute(unit, &RunControl::default()).expect_err("no module");
    assert!(missing.to_string().contains("policy mine.wasm"), "{missing}");
}

#[test]
fn two_modules_with_one_name_are_refused() {
    let mut twice = with_module("aa");
    twice.modules.extend(with_module("bb").modules);
    assert!(refused(twice).contains("expected one module named mine.wasm"));
}
