"""Odd arguments are taken, and bad ones are a SpaceError that names them and what is allowed."""

from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import pytest
from conftest import ROOT

import percid
from percid import paper, plots, sim, trace

RECORDING = ROOT / "crates/percid-trace/tests/fixtures/sched.data"
SHORT = {"machine": "cascade-lake", "policies": "per-cpu", "duration_ms": 10}
COST = {"value": 400, "origin": "a guess"}
NAN, INF = float("nan"), float("inf")


def machine(**more):
    return {"name": "mine", "base": "cascade-lake"} | more


def costs(value):
    return machine(costs={"hot_ns": {"value": value, "origin": "made up"}})


class Index:
    """A whole number of some library."""

    def __index__(self):
        return 2


WHOLE = "expected a whole number from"
FINITE = "expected a finite number, found"

BAD_RUNS = [
    ({"machine": []}, "machine: expected at least one value"),
    ({"machine": None}, "machine: expected a name, a file or a dictionary, found None"),
    ({"machine": 7}, "machine: expected a name, a file or a dictionary, found 7"),
    ({"machine": b"epyc-9654"}, "machine: expected a name, a file or a dictionary"),
    ({"machine": ""}, "machine: expected the name of a file"),
    ({"machine": ["epyc-9654", 3]}, "machine: expected a name, a file or a dictionary, found 3"),
    ({"machine": "mars"}, "no machine is named 'mars'; allowed are this, epyc-9654"),
    ({"machine": {"base": "epyc-9654"}}, "machine: expected a name in the dictionary"),
    ({"machine": {"name": 3}}, "machine: expected a name in the dictionary"),
    ({"machine": machine(sokets=1)}, "machine mine: .*unknown field `sokets`, expected one of"),
    ({"machine": machine(topology={"sockets": "two"})}, 'machine mine: sockets = "two": .*u32'),
    ({"machine": machine(topology={"sockets": 0})}, "topology.sockets: expected at least 1"),
    ({"machine": machine(topology=None)}, "machine mine.topology: expected a number, found None"),
    ({"machine": machine(topology={1: 2})}, "mine.topology: expected names as keys, found 1"),
    ({"machine": costs(NAN)}, f"machine mine.costs.hot_ns.value: {FINITE} nan"),
    ({"machine": costs(INF)}, f"machine mine.costs.hot_ns.value: {FINITE} inf"),
    ({"machine": costs(-1)}, "costs.hot_ns: expected a number from 1 to"),
    ({"machine": costs(2**64)}, f"machine mine.costs.hot_ns.value: {WHOLE} -9223"),
    ({"machine": [machine(), machine(kernel={"hz": COST})]}, "one machine named mine, found two"),
    ({"workload": "nothing"}, "no workload is named 'nothing'; allowed are"),
    ({"workload": {"name": "x"}}, "workload x: missing field `about`"),
    ({"workload": None}, "workload: expected a name, a file or a dictionary, found None"),
    ({"policies": []}, "policies: expected at least one value"),
    ({"policies": 5}, "policies: expected 'all' or names such as .*, found 5"),
    ({"policies": ["per-cpu", 5]}, "policies: expected 'all' or names such as .*, found 5"),
    ({"policies": {"per-cpu": 1}}, "policies: expected names of policies"),
    ({"policies": "per-cup"}, "policy per-cup: .*percid-table"),
    ({"memory": "virtual"}, "memory: expected one of copy-on-write, zero-page, pre-faulted"),
    ({"memory": 5}, "memory: expected one of copy-on-write, .*, found 5"),
    ({"colour": 3}, "parameter colour: expected one of the parameters allowed, .*hot_ns"),
    ({"stay_ms": NAN}, f"parameter stay_ms: {FINITE} nan"),
    ({"stay_ms": -INF}, f"parameter stay_ms: {FINITE} -inf"),
    ({"stay_ms": 10**400}, f"parameter stay_ms: {FINITE} 1000"),
    ({"stay_ms": [1, NAN]}, f"parameter stay_ms: {FINITE} nan"),
    ({"stay_ms": None}, "parameter stay_ms: expected a number, found None"),
    ({"stay_ms": True}, "parameter stay_ms: expected a number, found True"),
    ({"stay_ms": "long"}, "parameter stay_ms: expected a number, found 'long'"),
    ({"stay_ms": ["4"]}, "parameter stay_ms: expected a number, found '4'"),
    ({"stay_ms": [[1, 2]]}, "parameter stay_ms: expected a number, found"),
    ({"stay_ms": {"a": 1}}, "parameter stay_ms: expected numbers"),
    ({"stay_ms": {1, 2}}, "parameter stay_ms: expected numbers in an order"),
    ({"stay_ms": []}, "parameter stay_ms: expected at least one value"),
    ({"stay_ms": 2j}, "parameter stay_ms: expected a number"),
    ({"stay_ms": -1}, "parameter stay_ms: expected a number from 0 to 86400000, found -1"),
    ({"stay_ms": 0}, "parameter stay_ms: expected more than 0"),
    ({"allowed": 0}, f"parameter allowed: {WHOLE} 1 to 96, found 0"),
    ({"allowed": 97}, f"parameter allowed: {WHOLE} 1 to 96, found 97"),
    ({"allowed": 1.5}, f"parameter allowed: {WHOLE} 1 to 96, found 1.5"),
    ({"threads": -3}, f"parameter threads: {WHOLE} 0 to 1000000, found -3"),
    ({"hot_ns": 0}, "parameter hot_ns: expected a number from 1 to 1000000000, found 0"),
    ({"seeds": 0}, "seeds: expected how many"),
    ({"seeds": -1}, "seeds: expected how many .*, found -1"),
    ({"seeds": True}, "seeds: expected how many"),
    ({"seeds": 5.0}, "seeds: expected how many .*, found 5.0"),
    ({"seeds": "5"}, "seeds: expected how many .*, found '5'"),
    ({"seeds": None}, "seeds: expected how many .*, found None"),
    ({"seeds": NAN}, "seeds: expected how many .*, found nan"),
    ({"seeds": []}, "seeds: expected at least one value"),
    ({"seeds": range(3, 3)}, "seeds: expected at least one value"),
    ({"seeds": [1, -2]}, f"seeds: {WHOLE} 0 to 18446744073709551615, found -2"),
    ({"seeds": range(-3, 3)}, f"seeds: {WHOLE} 0 to 18446744073709551615, found -3"),
    ({"seeds": range(2**64 - 2, 2**64 + 2)}, f"seeds: {WHOLE} 0 to 18446744073709551615"),
    ({"seeds": range(0, 10**12, 2)}, "seeds: expected at most 10000000 values"),
    ({"seeds": [1, 2.5]}, f"seeds: {WHOLE} .*, found 2.5"),
    ({"seeds": [1, 3, 1]}, "seeds: expected each one once, found 1 twice"),
    ({"seeds": {1, 2}}, "seeds: expected .* in an order"),
    ({"seeds": {"first": 1}}, "seeds: expected how many"),
    ({"seeds": 10**8}, "at most 10000000 runs"),
    ({"seeds": 10**30}, "at most 10000000 runs"),
]


def expect_refused(call, expected):
    with pytest.raises(percid.SpaceError, match=expected) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and "column" not in text and len(text) < 2000
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("arguments", "expected"), BAD_RUNS)
def test_bad_arguments_of_a_run_are_named(arguments, expected, tmp_path):
    arguments = SHORT | arguments
    expect_refused(lambda: sim.run(**arguments), expected)
    store = tmp_path / "campaign"
    expect_refused(lambda: sim.sweep(arguments, store=store, progress=False), expected)
    assert not store.exists()


def test_mistakes_in_a_file_keep_its_line(tmp_path):
    file = tmp_path / "typo.toml"
    file.write_text('name = "x"\nbase = "epyc-9654"\nkosts = 3\n')
    expect_refused(lambda: sim.run(file), r"typo\.toml: line 3: unknown field `kosts`")
    text = "name = 'x'\nabout = 'y'\nduration_ms = 'wrong'\n[[threads]]\nname = 'a'\n"
    file.write_text(text + "count = 1\nscript = ['wait']\n")
    expect_refused(lambda: sim.run(workload=str(file)), 'line 3: duration_ms: "wrong" is neither')
    expect_refused(lambda: sim.run(workload=[file]), 'line 3: duration_ms: "wrong" is neither')
    with pytest.raises(percid.SpaceError, match="nothing.toml: No such file"):
        sim.run(tmp_path / "nothing.toml")


def test_bad_arguments_of_other_functions_are_named(tmp_path):
    table = sim.machines()
    runs = sim.run(**SHORT, seeds=1)
    store = tmp_path / "campaign"

    def sweep(**more):
        return sim.sweep(SHORT, **{"store": store, "progress": False} | more)

    calls = [
        (lambda: sim.until(-1), "interval: expected a number above 0, such as 0.02"),
        (lambda: sim.until(0), "interval: expected a number above 0"),
        (lambda: sim.until(NAN), f"interval: {FINITE} nan"),
        (lambda: sim.until("2 %"), "interval: expected a number, found '2 %'"),
        (lambda: sim.until(0.1, least=0), f"least: {WHOLE} 1 to"),
        (lambda: sim.until(0.1, least=2.5), f"least: {WHOLE} 1 to .*, found 2.5"),
        (lambda: sim.until(0.1, most=3), f"most: {WHOLE} 5 to .*, found 3"),
        (lambda: sim.sweep([], store=store), "space: expected at least one grid"),
        (lambda: sim.sweep(None, store=store), "space: expected a dictionary .*, found None"),
        (lambda: sim.sweep("all", store=store), "space: expected a dictionary .*, found 'all'"),
        (lambda: sim.sweep([3], store=store), "space: expected a dictionary .*, found 3"),
        (lambda: sim.sweep({3: 4}, store=store), "space: expected names as keys, found 3"),
        (
            lambda: sim.sweep([{"seeds": 1}, {"seeds": 2}], store=store),
            "seeds: expected the same seeds in all grids",
        ),
        (lambda: sweep(executor="spark"), "executor: expected None, an executor"),
        (lambda: sweep(invalid="ignore"), "invalid: expected 'raise' or 'keep', found 'ignore'"),
        (lambda: sweep(invalid=None), "invalid: expected 'raise' or 'keep', found None"),
        (lambda: sweep(store=None), "store: expected the name of a file or folder, found None"),
        (lambda: sweep(store=3), "store: expected the name of a file or folder, found 3"),
        (lambda: sweep(storage_options=3), "storage_options: expected a dictionary, found 3"),
        (lambda: sweep(shard=3), "shard: expected a number and how many there are, .*found 3"),
        (lambda: sweep(shard=(3, 2)), f"shard: expected a number .*: {WHOLE} 1 to 2, found 3"),
        (lambda: sweep(shard=(-1, 2)), f"shard: expected a number .*: {WHOLE} 1 to 2, found -1"),
        (lambda: sweep(shard=("1", "2")), f"shard: expected a number .*: {WHOLE} 1 to"),
        (lambda: sim.spans(seed=-1), f"seed: {WHOLE} 0 to 18446744073709551615, found -1"),
        (lambda: sim.spans(seed=1.5), f"seed: {WHOLE} 0 to .*, found 1.5"),
        (lambda: sim.spans(seed=2**64), f"seed: {WHOLE} 0 to .*, found 18446744073709551616"),
        (lambda: sim.spans(most=-1), f"most: {WHOLE} 0 to"),
        (lambda: sim.spans(policy="all"), "policy: expected one, found 'all'"),
        (lambda: sim.spans(policy=["per-cpu"] * 2), "policy: expected one"),
        (lambda: sim.spans(["epyc-9654"]), "machine: expected a name, a file or a dictionary"),
        (lambda: sim.spans(duration_ms=[1, 2]), "parameter duration_ms: expected a number"),
        (lambda: sim.spans(allowed=1000), f"parameter allowed: {WHOLE} 1 to 384, found 1000"),
        (lambda: trace.read(None), "path: expected the name of a file or folder, found None"),
        (lambda: trace.read(b"x"), "path: expected the name of a file or folder"),
        (lambda: trace.read(""), "path: expected the name of a file or folder, found ''"),
        (lambda: trace.replay(RECORDING, "per-cup"), "policy per-cup: "),
        (lambda: trace.replay(RECORDING, 3), "policies: expected 'all' or names"),
        (lambda: trace.replay(RECORDING, machine=3), "machine: expected a name, a file or"),
        (lambda: trace.replay(RECORDING, area_bytes=-1), f"area_bytes: {WHOLE} 1 to"),
        (lambda: trace.replay(RECORDING, area_bytes=NAN), f"area_bytes: {WHOLE} 1 to"),
        (lambda: runs.to_xarray(dims=["colour"]), "dims: expected names of .*; found 'colour'"),
        (lambda: runs.to_parquet(3), "path: expected the name of a file or folder, found 3"),
        (lambda: plots.shares(table), "expected a table with policy, .*; this one lacks policy"),
        (lambda: plots.shares(None), "table: expected a percid.Table, found None"),
        (lambda: plots.sensitivity(runs, 3), "this one lacks 3"),
    ]
    for name in paper.__all__:
        published = getattr(paper, name)
        for seed in (-1, 2**64, 1.5, "1", None, True, NAN):
            calls.append((lambda f=published, seed=seed: f(seed), f"seed: {WHOLE} 0 to"))
    for call, expected in calls:
        expect_refused(call, expected)


def test_files_that_cannot_be_read_are_the_systems_exceptions(tmp_path):
    with pytest.raises(FileNotFoundError):
        trace.read(tmp_path / "nothing")
    with pytest.raises(percid.TraceError, match="this is a directory"):
        trace.read(tmp_path)
    with pytest.raises(OSError):
        sim.machines().to_parquet(tmp_path)


def test_numbers_of_other_libraries_are_numbers():
    numpy = pytest.importorskip("numpy")
    pandas = pytest.importorskip("pandas")
    arguments = SHORT | {"seeds": 2}
    expected = sim.run(**arguments, allowed=[2, 4])
    for two, four in [
        (numpy.int64(2), numpy.int8(4)),
        (numpy.float32(2), numpy.float64(4)),
        (Fraction(2), 4.0),
        (Index(), numpy.array(4)),
    ]:
        assert sim.run(**arguments, allowed=[two, four]) == expected
        assert sim.run(**arguments, allowed=two) == sim.run(**arguments, allowed=2)
    several = [
        numpy.array([2, 4]),
        numpy.array([2.0, 4.0]),
        pandas.Series([2, 4]),
        range(2, 5, 2),
        (2, 4),
        iter([2, 4]),
    ]
    for values in several:
        assert sim.run(**arguments, allowed=values) == expected
    assert sim.run(**arguments, allowed=numpy.array([2])) == sim.run(**arguments, allowed=2)
    for count in (numpy.int64(2), numpy.uint8(2), numpy.array(2), Index()):
        assert sim.run(**SHORT | {"seeds": count}) == sim.run(**arguments)
    for bad in (numpy.float64("nan"), numpy.bool_(True), numpy.array([1.0, numpy.inf])):
        with pytest.raises(percid.SpaceError, match="parameter allowed: expected a"):
            sim.run(**arguments, allowed=bad)


def test_seeds_are_listed_in_any_order():
    numpy = pytest.importorskip("numpy")
    all_seeds = {row["seed"]: row for row in sim.run(**SHORT, seeds=range(0, 12))}
    for listed in ([9, 1, 2, 3, 5], range(1, 9, 2), range(5, 1, -1), [7], [0], (4, 3)):
        expected = [all_seeds[seed] for seed in listed]
        for seeds in (listed, numpy.array(listed), numpy.array(listed, dtype="uint64")):
            assert sim.run(**SHORT, seeds=seeds).to_pylist() == expected
    assert sim.run(**SHORT, seeds=[3, 4, 5]) == sim.run(**SHORT, seeds=range(3, 6))
    last = 2**64 - 1
    assert sim.run(**SHORT, seeds=[last, 3])["seed"] == [last, 3]
    assert sim.run(**SHORT, seeds=range(last, last + 1))["seed"] == [last]


def test_a_sweep_of_listed_seeds_is_resumed(tmp_path):
    space = SHORT | {"policies": ["per-cpu", "percid-table"], "seeds": [5, 1, 2, 9]}
    expected = sim.run(**space)
    assert expected["seed"] == [5, 1, 2, 9] * 2
    first = sim.sweep(space, store=tmp_path, progress=False, shard=(1, 2))
    found = sim.sweep(space, store=tmp_path, progress=False)
    assert found.found == first.computed > 0 and found.found + found.computed == 8
    assert found.table == expected and found.table.to_parquet() == expected.to_parquet()
    with pytest.raises(percid.StoreError, match="another sweep"):
        sim.sweep(space | {"seeds": [5, 1, 2, 8]}, store=tmp_path, progress=False)


def test_dictionaries_may_be_of_any_mapping_and_number():
    numpy = pytest.importorskip("numpy")
    plain = {"name": "x", "base": "cascade-lake", "costs": {"other_socket_ns": COST}}
    expected = sim.run(plain, policies="per-cpu", seeds=1, duration_ms=10)
    cost = MappingProxyType({"value": numpy.int64(400), "origin": numpy.str_("a guess")})
    odd = MappingProxyType(plain | {"costs": {"other_socket_ns": cost}})
    assert sim.run(odd, policies="per-cpu", seeds=1, duration_ms=10) == expected
    assert sim.run([odd], policies=numpy.array(["per-cpu"]), seeds=1, duration_ms=10) == expected


def test_a_machine_of_two_cpus_runs_or_says_which_parameter_does_not_fit():
    shape = {"sockets": 1, "nodes_per_socket": 1, "l3s_per_socket": 1, "threads_per_core": 1}
    small = machine(topology=shape | {"cores_per_l3": 2})
    expected = rf"container on mine, .*: parameter allowed: {WHOLE} 1 to 2, found 8 .*on 2 CPUs"
    expect_refused(lambda: sim.run(small), expected)
    expect_refused(lambda: sim.spans(small), "parameter allowed: .* on 2 CPUs")
    with pytest.raises(percid.SpaceError) as caught:
        sim.run(small)
    assert "line" not in str(caught.value)
    table = sim.run(small, policies="all", seeds=1, allowed=2, duration_ms=10)
    assert len(table) == len(sim.policies())
    this = percid.machine.this()
    for workload in ("container", "thread-pool"):
        fits = {"allowed": 1} if workload == "container" else {}
        assert len(sim.run(this, workload, "per-cpu", seeds=1, duration_ms=10, **fits)) == 1
    assert len(sim.spans(this, allowed=1, duration_ms=10, most=5)) == 5


def test_a_replay_takes_machines_as_runs_do(tmp_path):
    by_name = trace.replay(RECORDING, "per-cpu", machine="cascade-lake")
    like = {"name": "like", "base": "cascade-lake"}
    assert trace.replay(RECORDING, "per-cpu", machine=like) == by_name
    file = tmp_path / "like.toml"
    file.write_text('name = "like"\nbase = "cascade-lake"\n')
    assert trace.replay(Path(RECORDING), ["per-cpu"], machine=file) == by_name
    shape = {"sockets": 1, "nodes_per_socket": 1, "l3s_per_socket": 1, "cores_per_l3": 1}
    one = like | {"topology": shape | {"threads_per_core": 1}}
    expect_refused(lambda: trace.replay(RECORDING, "per-cpu", machine=one), "sched.data: ")
