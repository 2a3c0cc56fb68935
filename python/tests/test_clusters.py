"""Campaigns on Dask and Ray, whose processes are killed in the middle."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import percid
from percid import sim

SPACE = {
    "machine": "cascade-lake",
    "workload": "container",
    "policies": ["per-cpu", "percid-table"],
    "duration_ms": 100,
    "allowed": [4, 8, 16, 24, 32],
    "seeds": 200,
}
RUNS = 2000


def runs_in(store: Path) -> int:
    """By the names of files: two of one unit would have one name."""
    spans = [path.stem.split("-")[1:] for path in store.rglob("seeds-*.parquet")]
    return sum(int(last) - int(first) + 1 for first, last in spans)


def until(condition, what):
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < 120, f"expected {what} within two minutes"
        time.sleep(0.005)


class Cluster:
    """A scheduler and two workers on loopback, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.processes = []
        file = folder / "scheduler.json"
        common = ["--scheduler-file", str(file)]
        self.scheduler = self.start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *common
        )
        until(lambda: file.exists() and file.read_text().strip().endswith("}"), "a scheduler")
        self.address = json.loads(file.read_text())["address"]
        worker = ["--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard", "--no-nanny"]
        place = ["--local-directory", str(folder)]
        self.workers = [self.start("worker", self.address, *worker, *place) for _ in range(2)]

    def start(self, what: str, *arguments: str) -> subprocess.Popen:
        line = [sys.executable, "-m", "dask", what, *arguments]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(line, **quiet)
        self.processes.append(process)
        return process

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    pytest.importorskip("distributed")
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.end()


def killer(process: subprocess.Popen, store: Path, runs: int) -> threading.Thread:
    def kill():
        until(lambda: runs_in(store) >= runs, f"{runs} runs")
        process.send_signal(signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def test_a_killed_worker_and_a_killed_scheduler_lose_nothing(cluster, tmp_path):
    import dask
    from distributed import Client

    store = tmp_path / "campaign"
    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):
        client = Client(cluster.address, set_as_default=False)
        client.wait_for_workers(2)
        threads = [
            killer(cluster.workers[0], store, 300),
            killer(cluster.scheduler, store, 1000),
        ]
        began = time.monotonic()
        with pytest.raises(percid.ExecutorLost) as caught:
            sim.sweep(SPACE, client, store, progress=False)
        for thread in threads:
            thread.join()
        print(f"lost after {time.monotonic() - began:.1f} s: {caught.value}")
        client.close(timeout=1)
    done = runs_in(store)
    assert 1000 <= done < RUNS, "the scheduler was killed in the middle"
    assert not list(store.rglob("failures/**/*.parquet")), "no run failed for a lost worker"
    found = sim.sweep(SPACE, None, store, progress=False)
    assert found.found == done and found.computed == RUNS - done, "nothing is computed twice"
    serial = sim.run(**SPACE)
    assert found.table.to_parquet() == serial.to_parquet()


def test_dask_computes_a_campaign(cluster, tmp_path):
    from distributed import Client

    with Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(2)
        space = SPACE | {"seeds": 20}
        found = sim.sweep(space, client, tmp_path / "campaign", progress=False)
        assert found.computed == 200
        assert found.table.to_parquet() == sim.run(**space).to_parquet()


def test_a_cluster_without_workers_is_refused(tmp_path):
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 0, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as local:
        with distributed.Client(local, set_as_default=False) as client:
            with pytest.raises(percid.SpaceError, match="found one without"):
                sim.sweep(SPACE, client, tmp_path / "campaign", progress=False)


def test_ray_computes_a_campaign_whose_worker_is_killed(tmp_path):
    ray = pytest.importorskip("ray")
    ray.init(
        num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", logging_level="error"
    )
    try:
        space = SPACE | {"seeds": 100}
        store = tmp_path / "campaign"

        @ray.remote
        def number():
            return os.getpid()

        victim = ray.get(number.remote())

        def kill():
            until(lambda: runs_in(store) >= 100, "100 runs")
            os.kill(victim, signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        found = sim.sweep(space, "ray", store, progress=False)
        thread.join()
        assert found.computed == 1000 and not found.failures
        assert found.table.to_parquet() == sim.run(**space).to_parquet()
    finally:
        ray.shutdown()
