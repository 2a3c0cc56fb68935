"""percid.sim.sweep: stores, executors, and what happens when they go away."""

import errno
import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

import percid
from percid import sim
from percid._work import compute


def table_of(store) -> str:
    return hashlib.sha256(Path(store, "table.parquet").read_bytes()).hexdigest()


def quiet(space, executor=None, store="campaign/", **more):
    return sim.sweep(space, executor, store, progress=False, **more)


class Backwards:
    """An executor that computes what it has in the opposite order, when it has some."""

    def __init__(self):
        self.waiting = []

    def submit(self, function, *arguments):
        future = Future()
        self.waiting.append((future, function, arguments))
        if len(self.waiting) >= 3:
            self.flush()
        return future

    def flush(self):
        for future, function, arguments in reversed(self.waiting):
            future.set_result(function(*arguments))
        self.waiting.clear()


def test_every_way_gives_the_same_bytes(space, tmp_path, command):
    expected = hashlib.sha256(sim.run(**space).to_parquet()).hexdigest()
    units = len(space["policies"]) * len(space["allowed"])
    assert units % 3 == 1, "one would wait for ever"
    backwards = Backwards()
    executors = {
        "serial": ThreadPoolExecutor(1),
        "own threads": None,
        "threads": ThreadPoolExecutor(7),
        "processes": ProcessPoolExecutor(2),
    }
    for name, executor in executors.items():
        found = quiet(space, executor, tmp_path / name)
        assert table_of(tmp_path / name) == expected, name
        assert hashlib.sha256(found.table.to_parquet()).hexdigest() == expected
        assert (found.found, found.computed, found.missing) == (0, 80, 0)
    quiet(space | {"policies": "per-cpu", "allowed": [4, 8, 12]}, backwards, tmp_path / "backwards")
    for of in (2, 3):
        store = tmp_path / f"{of} shards"
        for number in range(of, 0, -1):
            assert number == 1 or not (store / "table.parquet").exists()
            quiet(space, None, store, shard=(number, of))
        assert table_of(store) == expected, f"{of} shards"
    line = [command, "sim", "sweep", "--store", str(tmp_path / "command"), "--seeds", "20"]
    line += ["--machine", "cascade-lake", "--workload", "container"]
    line += ["--policy", "per-cpu,percid-table", "--set", "duration_ms=20", "--set", "allowed=4,8"]
    subprocess.run(line, check=True, capture_output=True)
    assert table_of(tmp_path / "command") == expected, "the command"


def test_a_store_that_python_began_the_command_ends_and_the_other_way_round(
    space, tmp_path, command
):
    quiet(space, None, tmp_path / "one", shard=(1, 2))
    line = [command, "sim", "sweep", "--json", "--store", str(tmp_path / "one")]
    line += ["--space", str(tmp_path / "one" / "sweep.json")]
    told = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    assert re.search(r'"computed": ?40', told), told
    subprocess.run(
        [*line[:5], str(tmp_path / "two"), *line[6:], "--shard", "2/2"],
        check=True,
        capture_output=True,
    )
    found = quiet(space, None, tmp_path / "two")
    assert (found.found, found.computed) == (40, 40)
    assert table_of(tmp_path / "one") == table_of(tmp_path / "two")


def test_what_is_there_is_not_computed_again(space, tmp_path):
    first = quiet(space, None, tmp_path)
    files = sorted((tmp_path / "runs").rglob("*.parquet"))
    again = quiet(space, None, tmp_path)
    assert (again.found, again.computed) == (80, 0)
    (tmp_path / "table.parquet").unlink()
    files[0].unlink()
    third = quiet(space, None, tmp_path)
    assert third.computed == 80 // len(files) and third.found + third.computed == 80
    assert third.table.to_parquet() == first.table.to_parquet()


def test_the_store_is_read_by_what_reads_partitions(space, tmp_path):
    import polars
    import pyarrow.dataset

    quiet(space, None, tmp_path)
    dataset = pyarrow.dataset.dataset(tmp_path / "runs", partitioning="hive")
    assert dataset.count_rows() == 80
    assert dataset.to_table(filter=pyarrow.dataset.field("allowed") == 8).num_rows == 40
    assert polars.scan_parquet(tmp_path / "runs" / "**/*.parquet").collect().height == 80


def test_grids_are_lists_too(space, tmp_path):
    other = {**space, "workload": "thread-pool", "policies": "per-cpu"}
    del other["allowed"]
    found = quiet([space, other], None, tmp_path)
    assert len(found.table) == 100
    assert found.table["parameters.allowed"][-1] is None
    with pytest.raises(percid.SpaceError, match="the same seeds in all grids"):
        quiet([space, other | {"seeds": 3}], None, tmp_path / "other")


def test_failures_are_kept_with_their_error_and_tried_again(space, tmp_path):
    bad = space | {"allowed": [4, -8]}
    with pytest.raises(percid.SpaceError, match="allowed=-8"):
        quiet(bad, None, tmp_path)
    assert not tmp_path.joinpath("sweep.json").exists()
    with pytest.warns(RuntimeWarning, match="could not be simulated"):
        found = quiet(bad, None, tmp_path, invalid="keep")
    assert len(found.table) == 40 and found.missing == len(found.failures) > 0
    assert "allowed=-8" in found.failures[0].unit and "expected" in found.failures[0].why
    with pytest.warns(RuntimeWarning):
        assert len(quiet(bad, None, tmp_path, invalid="keep").failures) == len(found.failures)


class Failing(ThreadPoolExecutor):
    """Some jobs raise what a worker without memory would."""

    def submit(self, function, job):
        return super().submit(self.compute, function, job)

    @staticmethod
    def compute(function, job):
        if '"allowed",8' in job:
            raise MemoryError("the worker has no memory left")
        return function(job)


def test_a_worker_that_fails_at_some_units_leaves_the_others(space, tmp_path):
    with pytest.warns(RuntimeWarning, match="MemoryError: the worker has no memory left"):
        found = quiet(space, Failing(2), tmp_path)
    assert len(found.table) == 40 and len(found.failures) == found.missing > 0
    again = quiet(space, None, tmp_path)
    assert len(again.table) == 80 and not again.failures and again.found == 40


def test_a_store_of_another_sweep_is_refused_and_stays(space, tmp_path):
    quiet(space, None, tmp_path)
    before = table_of(tmp_path)
    with pytest.raises(percid.StoreError, match="another sweep: .*seeds.count is 20, expected 21"):
        quiet(space | {"seeds": 21}, None, tmp_path)
    with pytest.raises(percid.StoreError, match=r"allowed\[1\] is 8.0, expected 9.0"):
        quiet(space | {"allowed": [4, 9]}, None, tmp_path)
    text = (tmp_path / "sweep.json").read_text()
    (tmp_path / "sweep.json").write_text(text.replace(percid.__version__, "0.0.1", 1))
    with pytest.raises(percid.StoreError, match="made by percid 0.0.1"):
        quiet(space, None, tmp_path)
    assert table_of(tmp_path) == before
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("mine")
    with pytest.raises(percid.StoreError, match="expected a new or empty folder"):
        quiet(space, None, tmp_path / "thesis")


def test_damaged_files_are_named(space, tmp_path):
    quiet(space, None, tmp_path)
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    with pytest.raises(percid.StoreError, match="table.parquet: .*delete it"):
        quiet(space, None, tmp_path)
    (tmp_path / "table.parquet").unlink()
    victim = next((tmp_path / "runs").rglob("*.parquet"))
    victim.write_bytes(victim.read_bytes()[:-20])
    with pytest.raises(percid.StoreError, match="runs/machine=cascade-lake.*delete it"):
        quiet(space, None, tmp_path)
    victim.unlink()
    assert len(quiet(space, None, tmp_path).table) == 80


class OtherVersion(ThreadPoolExecutor):
    """A worker for which jobs come from another version."""

    def submit(self, function, job):
        return super().submit(function, job.replace(percid.__version__, "9.9.9", 1))


def test_a_worker_with_another_version_is_refused(space, tmp_path):
    with pytest.raises(percid.VersionError, match="expected a worker with percid 9.9.9"):
        quiet(space, OtherVersion(1), tmp_path)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_full_disk_is_an_oserror_and_the_store_keeps_what_it_has(space, tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "percid-test", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no small file system can be mounted here")
    try:
        large = space | {"allowed": list(range(1, 33)), "seeds": 5}
        with pytest.raises(OSError) as caught:
            quiet(large, None, tmp_path)
        assert caught.value.errno == errno.ENOSPC
        kept = list((tmp_path / "runs").rglob("*.parquet"))
        assert kept and not list(tmp_path.rglob("*.part"))
        subprocess.run(["mount", "-o", "remount,size=64m", str(tmp_path)], check=True)
        found = quiet(large, None, tmp_path)
        assert found.found == 5 * len(kept) and len(found.table) == 64 * 5
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def killed(job):
    os.kill(os.getpid(), signal.SIGKILL)


class Killing(ProcessPoolExecutor):
    """Its third job kills the worker."""

    submitted = 0

    def submit(self, function, job):
        self.submitted += 1
        return super().submit(killed if self.submitted == 3 else compute, job)


def test_a_killed_process_pool_is_said_and_the_next_sweep_goes_on(space, tmp_path):
    expected = sim.run(**space).to_parquet()
    with pytest.raises(percid.ExecutorLost, match="what was done is in the store") as caught:
        quiet(space, Killing(1), tmp_path)
    assert isinstance(caught.value.__cause__, BrokenProcessPool)
    assert quiet(space, None, tmp_path).table.to_parquet() == expected


def test_ctrl_c_ends_a_sweep_soon_and_it_goes_on(tmp_path):
    code = (
        "import sys, percid.sim\n"
        "percid.sim.sweep({'policies': 'percid-table', 'seeds': 3000, 'duration_ms': 50},\n"
        "                 store=sys.argv[1], progress=False)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    while not list(tmp_path.rglob("*.parquet")):
        assert child.poll() is None
        time.sleep(0.01)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    print(f"ended {1000 * (time.monotonic() - began):.0f} ms after Ctrl-C")
    assert "KeyboardInterrupt" in said
    assert not list(tmp_path.rglob("*.part")) and not (tmp_path / "table.parquet").exists()


def test_executors_that_are_none_are_refused(space, tmp_path):
    with pytest.raises(percid.SpaceError, match="executor: expected None, an executor"):
        quiet(space, "spark", tmp_path)
    with pytest.raises(percid.SpaceError, match="invalid: expected 'raise' or 'keep'"):
        quiet(space, None, tmp_path, invalid="ignore")
    with pytest.raises(ValueError, match="shard: expected a number and how many"):
        quiet(space, None, tmp_path, shard=(3, 2))


def test_progress_is_told_in_runs(space, tmp_path, capsys):
    sim.sweep(space, None, tmp_path)
    assert "80/80" in capsys.readouterr().err


def test_a_store_may_be_anything_that_fsspec_opens(space):
    pytest.importorskip("fsspec")
    url = f"memory://percid-{os.getpid()}/campaign"
    quiet(space, None, url, shard=(1, 2))
    found = quiet(space, None, url)
    assert (found.found, found.computed) == (40, 40)
    assert found.table.to_parquet() == sim.run(**space).to_parquet()
    assert quiet(space, None, url).found == 80
    with pytest.raises(percid.StoreError, match="another sweep"):
        quiet(space | {"seeds": 3}, None, url)


def test_a_store_may_be_a_bucket(space, monkeypatch):
    server_of = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {"endpoint_url": f"http://{host}:{port}"}
        import s3fs

        s3fs.S3FileSystem(**options).mkdir("campaigns")
        url = "s3://campaigns/first"
        quiet(space, None, url, shard=(1, 2), storage_options=options)
        found = quiet(space, None, url, storage_options=options)
        assert (found.found, found.computed) == (40, 40)
        assert found.table.to_parquet() == sim.run(**space).to_parquet()
    finally:
        server.stop()
