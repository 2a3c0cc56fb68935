"""Tables and sweeps as data: copies, other processes, rows, columns, equality."""

import copy
import multiprocessing
import pickle
import struct
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import pytest
from conftest import ROOT

import percid
from percid import sim

RECORDING = ROOT / "crates/percid-trace/tests/fixtures/sched.data"


@pytest.fixture(scope="module")
def runs():
    return sim.run("cascade-lake", "container", ["per-cpu", "percid-table"], 3, duration_ms=10)


@pytest.fixture(scope="module")
def tables(runs):
    """Tables of every kind: with gaps, with words that repeat, with several batches, with none."""
    return {
        "runs": runs,
        "machines": sim.machines(),
        "spans": sim.spans("cascade-lake", duration_ms=10),
        "no spans": sim.spans("cascade-lake", duration_ms=10, most=0),
        "mask": percid.paper.mask(),
        "trace": percid.trace.read(RECORDING),
        "some rows": runs[1:4],
        "no rows": runs[5:2],
        "some columns": runs[["seed", "policy"]],
    }


def bits(table):
    """The values so that no two floating-point numbers are equal but by their bits."""

    def of(value):
        return struct.pack("<d", value) if isinstance(value, float) else value

    return [{name: of(value) for name, value in row.items()} for row in table]


def expect_same(found, table):
    assert isinstance(found, percid.Table)
    assert found == table and hash(found) == hash(table) and found.shape == table.shape
    assert bits(found) == bits(table) and found.column_names == table.column_names
    assert found.to_pyarrow().schema == table.to_pyarrow().schema
    assert found.to_parquet() == table.to_parquet()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_tables_are_pickled(tables, protocol):
    for table in tables.values():
        text = pickle.dumps(table, protocol)
        expect_same(pickle.loads(text), table)
        assert pickle.dumps(pickle.loads(text), protocol) == text, "caches compare the bytes"


def test_tables_and_what_has_them_are_copied(tables):
    for table in tables.values():
        for copied in (copy.copy(table), copy.deepcopy(table)):
            expect_same(copied, table)
    nested = {"tables": list(tables.values())}
    copied = copy.deepcopy(nested)
    assert copied == nested and copied["tables"] is not nested["tables"]


def test_damaged_pickles_are_an_exception(runs):
    text = pickle.dumps(runs)
    with pytest.raises(Exception, match=r"."):
        pickle.loads(text.replace(b"ARROW:", b"ARROX:")[: len(text) // 2])
    with pytest.raises(ValueError):
        percid._native.Table.from_ipc(b"nothing")


@pytest.fixture
def swept(space, tmp_path):
    return sim.sweep(space | {"seeds": 2}, None, tmp_path / "campaign", progress=False)


def test_sweeps_machines_and_errors_are_pickled_and_copied(swept):
    failed = sim.Sweep(swept.table, [sim.Failure("unit", "why")], 1, 2, 3)
    this = percid.machine.this()
    for whole in (swept, failed, this, sim.until(0.02), swept.failures):
        for again in (pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole), copy.copy(whole)):
            assert again == whole and type(again) is type(whole)
    assert failed != swept
    for name in ("SpaceError", "StoreError", "VersionError", "RunError", "TraceError"):
        error = getattr(percid, name)("why")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == "why"
    table = sim.run(pickle.loads(pickle.dumps(this)), policies="per-cpu", seeds=1, allowed=1)
    assert len(table) == 1


def simulated(seed):
    """In another process."""
    return sim.run("cascade-lake", "container", "per-cpu", [seed], duration_ms=10)


def selected(table, policy):
    return [row for row in table if row["policy"] == policy], table


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_process_pools_take_and_give_tables(runs, method):
    context = multiprocessing.get_context(method)
    # It raises an exception if a process dies, so nothing waits for ever.
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        rows, table = pool.submit(selected, runs, "per-cpu").result()
        expect_same(table, runs)
        assert rows == [row for row in runs if row["policy"] == "per-cpu"] and len(rows) == 3
        for seed, table in zip((1, 7), pool.map(simulated, (1, 7))):
            expect_same(table, simulated(seed))


def test_another_interpreter_reads_a_pickled_sweep(swept, tmp_path):
    file = tmp_path / "sweep.pickle"
    file.write_bytes(pickle.dumps(swept))
    code = (
        "import pickle, sys; found = pickle.load(open(sys.argv[1], 'rb'));"
        "sys.stdout.buffer.write(found.table.to_parquet())"
    )
    line = [sys.executable, "-I", "-c", code, str(file)]
    told = subprocess.run(line, capture_output=True, check=True)
    assert told.stdout == swept.table.to_parquet()


def test_dask_delays_what_gives_and_takes_tables():
    dask = pytest.importorskip("dask")
    both = [dask.delayed(simulated)(seed) for seed in (1, 2)]
    seeds = dask.delayed(lambda tables: [seed for table in tables for seed in table["seed"]])
    assert seeds(both).compute(scheduler="processes", num_workers=1) == [1, 2]
    assert dask.base.tokenize(simulated(1)) == dask.base.tokenize(simulated(1))
    assert dask.base.tokenize(simulated(1)) != dask.base.tokenize(simulated(2))


def test_joblib_caches_tables_and_sends_them(tmp_path):
    joblib = pytest.importorskip("joblib")
    called = []

    def wide(table):
        called.append(1)
        return table[["seed", "policy"]]

    cached = joblib.Memory(tmp_path, verbose=0).cache(wide)
    for seed in (1, 1, 2):
        expect_same(cached(simulated(seed)), simulated(seed)[["seed", "policy"]])
    assert len(called) == 2
    found = joblib.Parallel(2)(joblib.delayed(simulated)(seed) for seed in (1, 2))
    for seed, table in zip((1, 2), found):
        expect_same(table, simulated(seed))


def test_rows_are_what_it_is_iterated_by(runs):
    rows = list(runs)
    assert len(rows) == len(runs) == 6 and rows == runs.to_pylist()
    assert [row["seed"] for row in runs] == runs["seed"] == [1, 2, 3] * 2
    assert runs[0] == rows[0] and runs[-1] == rows[5] and list(rows[0]) == runs.column_names
    assert bool(runs) and not runs[:0] and list(runs[:0]) == []
    assert [row["seed"] for row in reversed(runs)] == runs["seed"][::-1]
    for at in (6, -7):
        with pytest.raises(IndexError, match=f"row {at}: expected -6 to 5"):
            runs[at]
    with pytest.raises(IndexError, match="no rows"):
        runs[:0][0]


def test_rows_of_several_batches_are_counted_through():
    import pyarrow

    table = percid.trace.read(RECORDING)
    rows = pyarrow.table(table).to_pylist()
    assert len(rows) == len(table) > 100
    for at in (0, 1, 99, len(rows) // 2, len(rows) - 1):
        assert table[at]["time_ns"] == rows[at]["time_ns"]
    assert [row["event"] for row in table] == [row["event"] for row in rows]


def test_slices_and_selections_are_tables(runs):
    numpy = pytest.importorskip("numpy")
    rows = runs.to_pylist()
    for part in (slice(2), slice(2, 5), slice(-2, None), slice(None), slice(4, 2), slice(3, 99)):
        assert runs[part].to_pylist() == rows[part]
    assert runs[numpy.int64(2)] == rows[2]
    chosen = runs[["seed", "policy"]]
    assert chosen.column_names == ["seed", "policy"] and chosen["seed"] == runs["seed"]
    assert chosen.shape == (6, 2)
    assert runs.to_pydict()["seed"] == runs["seed"]


def test_names_are_what_is_in_it(runs):
    assert "policy" in runs and "polic" not in runs
    with pytest.raises(percid.SpaceError, match="in: expected a column's name"):
        assert 3 in runs
    with pytest.raises(percid.SpaceError, match="in: expected a column's name"):
        assert runs[0] in runs


@pytest.mark.parametrize(
    ("key", "error", "expected"),
    [
        ("polic", KeyError, "no column is named 'polic'; did you mean 'policy'"),
        ("duration_ms", KeyError, "did you mean 'parameters.duration_ms'"),
        ("colour", KeyError, "column_names lists all"),
        (["seed", "colour"], KeyError, "'colour'"),
        (None, percid.SpaceError, "expected a column's name, a list of names, a row's number"),
        (True, percid.SpaceError, "found True"),
        (1.0, percid.SpaceError, "found 1.0"),
        ([True, False], percid.SpaceError, "rows by a condition: table.to_pandas"),
        ([], percid.SpaceError, "expected a column's name"),
        (slice(None, None, 2), percid.SpaceError, "expected a slice with step 1, found 2"),
        (slice("a", "b"), percid.SpaceError, "whole numbers in the slice"),
    ],
)
def test_other_keys_are_told_what_there_is(runs, key, error, expected):
    with pytest.raises(error) as caught:
        runs[key]
    assert expected in str(caught.value.args[0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("policy", r"the column is table\['policy'\]"),
        ("columns", "call table.column_names"),
        ("groupby", r"table.to_pandas\(\).groupby"),
        ("to_dicts", r"call table.to_pylist\(\)"),
    ],
)
def test_methods_of_data_frames_are_told_where_they_are(runs, name, expected):
    with pytest.raises(AttributeError, match=expected):
        getattr(runs, name)
    assert not hasattr(runs, "__array__")


def test_equality_is_one_truth_value(runs):
    again = sim.run("cascade-lake", "container", ["per-cpu", "percid-table"], 3, duration_ms=10)
    assert runs == again and hash(runs) == hash(again) and len({runs, again}) == 1
    others = [
        runs[:5],
        runs[["seed", "policy"]],
        sim.run(
            "cascade-lake", "container", ["per-cpu", "percid-table"], [2, 3, 4], duration_ms=10
        ),
    ]
    for other in [*others, None, 6, runs.to_pylist()]:
        assert (runs == other) is False and (runs != other) is True
    one, two = sim.machines()[["cpus"]], sim.machines()[["nodes"]]
    assert one != two


def test_a_table_is_made_by_functions_only():
    with pytest.raises(percid.SpaceError, match="tables come from percid's functions"):
        percid.Table({"seed": [1]})


def test_a_trace_is_written_as_parquet(tables, tmp_path):
    import pyarrow.parquet

    path = tmp_path / "trace.parquet"
    tables["trace"].to_parquet(path)
    assert pyarrow.parquet.read_table(path).to_pylist() == tables["trace"].to_pylist()
