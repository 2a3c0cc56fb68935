//! `percid sim sweep`, if this program is built with the feature sweep.

#[cfg(not(feature = "sweep"))]
#[test]
fn it_is_refused_where_parquet_is_not_built_in() {
    let output = crate::percid::bounded(&mut crate::percid::command("sim sweep --store nowhere"));
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("expected a percid with the feature sweep"), "{said}");
}

#[cfg(feature = "sweep")]
mod built_in {
    use std::env;
    use std::fs;
    use std::os::unix::process::ExitStatusExt;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output, Stdio};

    use serde_json::Value;

    use crate::percid::page::look_at;
    use crate::percid::wait::until;
    use crate::percid::{bounded, command, document, list};

    const SPACE: &str = "--machine cascade-lake --workload container --policy per-cpu,percid-table \
                         --set duration_ms=20 --set allowed=4,8 --seeds 20";

    fn json(arguments: &str) -> Value {
        let output = bounded(&mut command(arguments));
        assert!(output.status.success(), "{arguments}: {output:?}");
        document(&output)
    }

    fn folder(name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sweep-{name}"));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn sweep(store: &Path, more: &str) -> Command {
        command(&format!("sim sweep --store {} {more}", store.display()))
    }

    #[test]
    fn a_sweep_has_a_report() {
        let store = folder("report");
        let page = store.with_extension("html");
        let space = SPACE.replace("--seeds 20", "--seeds 3");
        let output = bounded(&mut sweep(&store, &format!("{space} --html {}", page.display())));
        assert!(output.status.success(), "{output:?}");
        let html = fs::read_to_string(&page).expect("the report is written");
        look_at(Path::new(env!("CARGO_TARGET_TMPDIR")), "sweep", &html, 1);
    }

    fn table(store: &Path) -> Vec<u8> {
        fs::read(store.join("table.parquet")).expect("a table")
    }

    fn refused(output: &Output) -> String {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        said
    }

    #[test]
    fn shards_and_other_stores_give_the_bytes_of_one_sweep() {
        let [whole, shared, one, two, merged] =
            ["whole", "shared", "one", "two", "merged"].map(folder);
        let found = json(&format!("sim sweep --json --store {} {SPACE}", whole.display()));
        assert_eq!(found["runs"]["computed"], 80);
        assert_eq!(list(&found, "rows").len(), 4);
        for shard in [3, 1, 2] {
            let output = bounded(&mut sweep(&shared, &format!("{SPACE} --shard {shard}/3")));
            assert!(output.status.success() && !shared.join("table.parquet").exists());
        }
        assert!(bounded(&mut sweep(&shared, "--merge")).status.success());
        assert_eq!(table(&shared), table(&whole));
        assert!(bounded(&mut sweep(&one, &format!("{SPACE} --shard 1/2"))).status.success());
        let missing = bounded(&mut sweep(&one, "--merge"));
        assert_eq!(missing.status.code(), Some(1), "a half is missing");
        assert!(String::from_utf8_lossy(&missing.stdout).contains("files are missing"));
        assert!(bounded(&mut sweep(&two, &format!("{SPACE} --shard 2/2"))).status.success());
        let from = format!("--merge --from {},{}", one.display(), two.display());
        assert!(bounded(&mut sweep(&merged, &from)).status.success());
        assert_eq!(table(&merged), table(&whole));
    }

    #[test]
    fn a_run_of_a_sweep_is_that_of_sim_run() {
        let store = folder("as-run");
        let found = json(&format!("sim sweep --json --store {} {SPACE}", store.display()));
        let run = json(&format!("sim run --json {SPACE}"));
        let means = |rows: &[Value]| -> Vec<i64> {
            let ns = |row: &Value| row["ns_per_burst"].as_f64().expect("a number");
            rows.iter().map(|row| ns(row).round() as i64).collect()
        };
        // The command weights runs by their bursts, of which all runs have about as many.
        for (one, other) in means(list(&found, "rows")).iter().zip(means(list(&run, "rows"))) {
            assert!((one - other).abs() <= other / 50, "{one} {other}");
        }
    }

    #[test]
    fn what_a_killed_sweep_has_done_is_not_done_again() {
        let store = folder("killed");
        let space = SPACE.replace("--seeds 20", "--seeds 4000");
        let mut sweeping = sweep(&store, &space)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        until("five files of runs", || (count(&store.join("runs")) >= 5).then_some(()));
        sweeping.kill().expect("SIGKILL");
        assert_eq!(sweeping.wait().expect("a status").signal(), Some(9));
        let found = document(&bounded(&mut sweep(&store, &format!("{space} --json"))));
        let runs = &found["runs"];
        let [before, after] = ["found", "computed"].map(|key| runs[key].as_u64().expect("a count"));
        assert!(before > 0 && after > 0 && before + after == 16_000, "{runs}");
        let whole = folder("not-killed");
        assert!(bounded(&mut sweep(&whole, &space)).status.success());
        assert_eq!(table(&store), table(&whole));
    }

    fn count(folder: &Path) -> usize {
        let Ok(entries) = fs::read_dir(folder) else { return 0 };
        entries
            .flatten()
            .map(|entry| match entry.file_type() {
                Ok(kind) if kind.is_dir() => count(&entry.path()),
                _ => {
                    usize::from(entry.path().extension().is_some_and(|ending| ending == "parquet"))
                }
            })
            .sum()
    }

    #[test]
    fn bad_input_is_refused_and_the_store_stays() {
        let store = folder("refused");
        for (more, expected) in [
            ("--policy per-cup", "policy per-cup: "),
            ("--set colour=1", "parameter colour: expected one of"),
            ("--set stay_ms=-1", "container on epyc-9654, stay_ms=-1"),
            ("--shard 3/2", "such as 2/8"),
            ("--machine mars", "no machine is named 'mars'"),
            ("--until 0", "an interval above 0"),
            ("--merge", "expected a sweep.json"),
            ("--from elsewhere", "--merge"),
        ] {
            let said = refused(&bounded(&mut sweep(&store, more)));
            assert!(said.contains(expected), "{more}: {said}");
            assert!(!store.exists(), "{more}");
        }
        assert!(bounded(&mut sweep(&store, SPACE)).status.success());
        let before = table(&store);
        let said =
            refused(&bounded(&mut sweep(&store, &SPACE.replace("allowed=4,8", "allowed=4"))));
        assert!(said.contains("it has the runs of another sweep"), "{said}");
        assert_eq!(table(&store), before);
    }

    #[test]
    fn a_combination_without_sense_is_a_failure_if_it_shall_be() {
        let store = folder("kept");
        let space = SPACE.replace("allowed=4,8", "stay_ms=-1,5");
        let output = bounded(&mut sweep(&store, &format!("{space} --keep-invalid --json")));
        assert_eq!(output.status.code(), Some(1));
        let found = document(&output);
        assert_eq!(found["runs"]["failed"], 40);
        assert_eq!(found["runs"]["computed"], 40);
        let why = list(&found, "failures")[0]["why"].as_str().expect("why");
        assert!(why.contains("expected"), "{why}");
    }

    /// A module whose `percid_id(cpu, thread)` returns the CPU. The version is a field that the
    /// module does not use.
    #[cfg(feature = "wasm")]
    fn module(version: u8) -> Vec<u8> {
        let mut module = b"\0asm\x01\0\0\0\x01\x07\x01\x60\x02\x7f\x7f\x01\x7f\x03\x02\x01\0\
            \x07\x0d\x01\x09percid_id\0\0\x0a\x06\x01\x04\0\x20\0\x0b"
            .to_vec();
        module.extend([0, 3, 1, b'v', version]);
        module
    }

    #[cfg(feature = "wasm")]
    #[test]
    fn a_module_is_swept_and_a_store_with_another_one_is_refused() {
        let folder = folder("module");
        fs::create_dir_all(folder.join("other")).expect("a folder");
        let [own, other] = ["ids.wasm", "other/ids.wasm"].map(|path| folder.join(path));
        fs::write(&own, module(1)).expect("a file");
        fs::write(&other, module(2)).expect("a file");
        let store = folder.join("store");
        let of = |module: &Path, seeds: u32| {
            let space = "--machine cascade-lake --set duration_ms=20 --set allowed=4";
            let policies = format!("--policy {},per-cpu", module.display());
            bounded(&mut sweep(&store, &format!("{space} {policies} --seeds {seeds} --json")))
        };
        let swept = document(&of(&own, 3));
        let rows = swept["rows"].as_array().expect("rows");
        let value = |row: &Value| row["ns_per_burst"].clone();
        assert_eq!((&rows[0]["policy"], rows.len()), (&Value::from("ids.wasm"), 2));
        assert_eq!(value(&rows[0]), value(&rows[1]), "CPU numbers, as per-cpu");
        assert_eq!(document(&of(&own, 3))["runs"]["computed"], 0, "it resumes");
        let said = refused(&of(&other, 3));
        assert!(said.contains("modules[0].sha256 is "), "{said}");
        // The runs of the store can be merged without the module.
        let merged = json(&format!("sim sweep --store {} --merge --json", store.display()));
        assert_eq!(merged["rows"], swept["rows"]);
    }
}
