"""What executors make of this machine's CPUs: PERCID_COMMAND=percid python python/throughput.py

Sweeps of the same runs by the command, by threads of this process, by a process pool and by Dask on
loopback, one after the other, several rounds. For runs of 50 ms and longer the share of the
command's throughput counts; for shorter ones what a run costs more than by the command.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from percid import sim

CPUS = len(os.sched_getaffinity(0))
#: Simulated milliseconds, and runs: of 2 to 900 ms each where this was written.
SIZES = [(20, 2000), (500, 200), (2000, 60), (8000, 20)]
ROUNDS = 3


def space(duration_ms: float, runs: int) -> dict:
    return {
        "machine": "epyc-9654",
        "workload": "thread-pool",
        "policies": ["linux-6.14", "percid-table"],
        "duration_ms": duration_ms,
        "seeds": runs // 2,
    }


def by_command(duration_ms: float, runs: int, store: Path) -> None:
    line = [os.environ["PERCID_COMMAND"], "sim", "sweep", "--store", str(store)]
    line += ["--workload", "thread-pool", "--policy", "linux-6.14,percid-table"]
    line += ["--set", f"duration_ms={duration_ms}", "--seeds", str(runs // 2)]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main() -> None:
    from distributed import Client, LocalCluster

    folder = Path(tempfile.mkdtemp(prefix="percid-throughput-"))
    cluster = LocalCluster(n_workers=CPUS, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client, ProcessPoolExecutor(CPUS) as pool:
        list(pool.map(abs, range(4 * CPUS)))
        ways = {"command": None, "threads": None, "processes": pool, "dask": client}
        for way, executor in ways.items():
            # What is loaded when it is used first is no part of a campaign.
            if way != "command":
                sim.sweep(space(20, 8), executor, folder / f"first-{way}", progress=False)
        for duration_ms, runs in SIZES:
            seconds: dict[str, list[float]] = {way: [] for way in ways}
            tables = set()
            for nth in range(ROUNDS):
                for way, executor in ways.items():
                    store = folder / f"{way}-{duration_ms}-{nth}"
                    began = time.monotonic()
                    if way == "command":
                        by_command(duration_ms, runs, store)
                    else:
                        sim.sweep(space(duration_ms, runs), executor, store, progress=False)
                    seconds[way].append(time.monotonic() - began)
                    tables.add((store / "table.parquet").read_bytes())
            assert len(tables) == 1, "expected the same bytes by every way"
            tell(runs, seconds)
    shutil.rmtree(folder)
    driver()


def tell(runs: int, seconds: dict[str, list[float]]) -> None:
    base = statistics.median(seconds["command"])
    print(f"runs of {1000 * base * CPUS / runs:.1f} ms, {runs} of them on {CPUS} CPUs:")
    for way, measured in seconds.items():
        took = statistics.median(measured)
        more = 1e6 * (took - base) / runs
        print(f"  {way:10} {took:6.2f} s, {base / took:.2f} of the command, {more:+.0f} us a run")


def driver() -> None:
    """A sweep of ten thousand runs, and once more: in a process of its own, for its memory."""
    code = (
        "import resource, sys, time; from percid import sim\n"
        "space = {'workload': 'container', 'machine': 'cascade-lake', 'seeds': 1000,\n"
        "         'policies': ['per-cpu', 'percid-table'], 'allowed': [2, 4, 6, 8, 10],\n"
        "         'duration_ms': 2}\n"
        "began = time.monotonic()\n"
        "found = sim.sweep(space, store=sys.argv[1], progress=False)\n"
        "print(found.found, found.computed, len(found.table), time.monotonic() - began,\n"
        "      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    with tempfile.TemporaryDirectory() as store:
        for what in ("computed", "resumed"):
            line = [sys.executable, "-I", "-c", code, store]
            told = subprocess.run(line, check=True, capture_output=True, text=True).stdout.split()
            found, computed, rows = map(int, told[:3])
            seconds, megabytes = map(float, told[3:])
            print(
                f"10,000 runs {what}: {found} found, {computed} computed, {rows} rows, "
                f"{seconds:.2f} s, {megabytes:.0f} MB at most"
            )


if __name__ == "__main__":
    main()
