"""percid.sim.run, and the tables it gives."""

import json
import multiprocessing
import signal
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import percid
from percid import sim


def test_a_row_is_a_run(space):
    table = sim.run(**space)
    assert len(table) == 2 * 2 * 20
    assert table.column_names[:6] == [
        "machine",
        "workload",
        "memory",
        "seed",
        "parameters.allowed",
        "parameters.duration_ms",
    ]
    assert set(table["policy"]) == {"per-cpu", "percid-table"}
    assert table["seed"][:3] == [1, 2, 3]
    assert sim.run(**space).to_parquet() == table.to_parquet()


def test_other_libraries_take_it_over(space):
    table = sim.run(**space)
    frame = table.to_pandas()
    assert list(frame.columns) == table.column_names and len(frame) == len(table)
    assert table.to_polars().shape == (80, len(table.column_names))
    cube = table.to_xarray()
    assert dict(cube.sizes) == {"seed": 20, "allowed": 2, "policy": 2}
    one = cube["ns_per_burst"].sel(seed=3, allowed=8, policy="per-cpu").item()
    row = frame.query("seed == 3 and `parameters.allowed` == 8 and policy == 'per-cpu'")
    assert one == row["ns_per_burst"].item()
    with pytest.raises(ValueError, match="found two alike"):
        table.to_xarray(dims=["policy"])


def test_numbers_are_not_copied(space):
    import pyarrow

    table = sim.run(**space)

    def address():
        column = pyarrow.table(table).column("ns_per_burst")
        return column.chunk(0).buffers()[1].address

    assert address() == address(), "both are the table's own memory"
    assert sim.run(**space).to_pyarrow()["ns_per_burst"].chunk(0).buffers()[1].address != address()


def test_a_table_outlives_what_made_it(space):
    import gc

    arrow = sim.run(**space).to_pyarrow()
    gc.collect()
    assert sum(arrow["runs"].to_pylist()) == 80


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    machine=st.sampled_from(["cascade-lake", "epyc-9654", "ivy-bridge-ex"]),
    policy=st.sampled_from(["per-cpu", "percid-table", "linux-6.4", "linux-6.14", "per-thread"]),
    allowed=st.integers(1, 40),
    first=st.integers(0, 2**63),
    seeds=st.integers(1, 3),
)
def test_it_gives_what_the_command_gives(command, machine, policy, allowed, first, seeds):
    table = sim.run(
        machine, "container", policy, range(first, first + seeds), duration_ms=10, allowed=allowed
    )
    line = [command, "sim", "run", "--json", "--machine", machine, "--workload", "container"]
    line += ["--policy", policy, "--set", "duration_ms=10", "--set", f"allowed={allowed}"]
    for row in table.to_pylist():
        told = subprocess.run(
            [*line, "--seeds", "1", "--seed", str(row["seed"])], capture_output=True, check=True
        )
        (expected,) = json.loads(told.stdout)["rows"]
        for name in ("ns_per_burst", "bursts", "ids_distinct", "ids_bound", "elapsed_ns"):
            assert row[name] == expected[name], name
        assert row["work.slow_paths"] == expected["work"]["slow_paths"]
        assert row["policy_share"] == expected["policy_share"]


def test_machines_and_workloads_are_names_files_and_dictionaries(tmp_path, command):
    text = subprocess.run(
        [command, "sim", "show", "machine", "cascade-lake"], capture_output=True, check=True
    ).stdout
    file = tmp_path / "mine.toml"
    file.write_bytes(text)
    arguments = {"policies": "percid-table", "seeds": 2, "duration_ms": 10}
    by_name = sim.run("cascade-lake", **arguments)
    by_file = sim.run(file, **arguments)
    assert by_file["machine"] == ["mine"] * 2
    assert by_file["ns_per_burst"] == by_name["ns_per_burst"]
    by_base = sim.run({"name": "slower", "base": "cascade-lake", "costs": SLOWER}, **arguments)
    assert by_base["machine"] == ["slower"] * 2
    assert min(by_base["ns_per_burst"]) > max(by_name["ns_per_burst"])


SLOWER = {"hot_ns": {"value": 5000.0, "origin": "made up"}}


def test_this_machine_can_be_changed_and_simulated():
    this = percid.machine.this()
    assert this["name"].startswith("this machine")
    table = sim.run(
        this | {"name": "like this"}, policies="per-cpu", seeds=1, duration_ms=10, allowed=1
    )
    assert table["machine"] == ["like this"]


def test_ctrl_c_ends_a_long_run_soon():
    code = (
        "import percid.sim, sys\n"
        "print('begun', flush=True)\n"
        "percid.sim.run(workload='container', seeds=1, duration_ms=1e7)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.7)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    print(f"ended {1000 * (time.monotonic() - began):.0f} ms after Ctrl-C")
    assert "KeyboardInterrupt" in said and child.returncode != 0


def test_others_run_meanwhile():
    """The interpreter's lock is not held: a thread that counts goes on counting."""
    counted, over = 0, threading.Event()

    def count():
        nonlocal counted
        while not over.wait(0.001):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    sim.run(policies="percid-table", seeds=4, duration_ms=30_000)
    over.set()
    thread.join()
    assert counted > 20


def test_seeds_go_on_until_the_mean_is_known(space):
    rough = sim.run(**space | {"seeds": sim.until(0.5, least=3)})
    exact = sim.run(**space | {"seeds": sim.until(0.005, least=3, most=200)})
    assert len(rough) < len(exact) <= 800


def test_what_there_is_is_listed():
    assert "epyc-9654" in sim.machines()["name"]
    assert "intermittent" in sim.workloads()["name"]
    assert "percid-table" in sim.policies()["name"]


def test_spans_say_which_cpu_had_which_id():
    table = sim.spans("cascade-lake", "container", "percid-table", duration_ms=20)
    assert table.column_names == ["cpu", "id", "from_ns", "to_ns"] and len(table) > 0
    assert all(begin <= end for begin, end in zip(table["from_ns"], table["to_ns"]))


def _bytes_of(space):
    return sim.run(**space).to_parquet()


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_children_of_a_process_that_has_run_something_run_too(space, method):
    """The child of a fork has none of its parent's threads."""
    expected = _bytes_of(space)
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(_bytes_of, [space] * 4).get(timeout=600)
    assert found == [expected] * 4
