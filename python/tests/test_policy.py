"""Policies that are written in Python."""

import pytest

import percid
from percid import sim
from percid.sim import Policy, Process

#: Runs of some milliseconds, in which threads and processes begin and end.
SHORT = {"machine": "cascade-lake", "seeds": [1, 77], "duration_ms": 10}


class Linux63(Policy):
    """Linux 6.3: the first free ID at every switch between processes."""

    def start(self, process: Process) -> None:
        self.cpus = process.cpus
        self.taken: set[int] = set()
        self.held: dict[int, int] = {}
        self.ended: set[int] = set()

    def obtain(self, process: Process) -> int:
        process.count(slow_paths=1)
        free = next(id for id in range(self.cpus) if id not in self.taken)
        self.taken.add(free)
        return free

    def switch(self, process: Process, cpu: int, prev: int | None, next: int | None) -> None:
        released = None if prev is None else self.held.pop(prev, None)
        if next is not None and next not in self.ended:
            # A switch between two threads of the process passes the ID on.
            self.held[next] = self.obtain(process) if released is None else released
        elif released is not None:
            self.taken.remove(released)

    def exit(self, process: Process, thread: int, cpu: int) -> None:
        self.ended.add(thread)
        if thread in self.held:
            self.taken.remove(self.held.pop(thread))

    def exec(self, process: Process, cpu: int, thread: int) -> None:
        self.taken.clear()
        self.held.clear()
        self.held[thread] = self.obtain(process)

    def id(self, process: Process, cpu: int, thread: int) -> int:
        if thread not in self.held:
            self.held[thread] = self.obtain(process)
        return self.held[thread]


def rows(table):
    return [{key: value for key, value in row.items() if key != "policy"} for row in table]


@pytest.mark.parametrize("workload", ["container", "churn", "oversubscribed", "fork-exec"])
def test_a_policy_gives_what_the_built_in_one_gives(workload):
    table = sim.run(workload=workload, policies=["linux-6.3", "per-cpu"], policy=Linux63(), **SHORT)
    built_in, other, own = (
        [row for row in table if row["policy"] == name]
        for name in ("linux-6.3", "per-cpu", "Linux63")
    )
    assert len(own) == 2 and rows(own) == rows(built_in)
    assert rows(own) != rows(other), "the comparison finds differences"


def test_only_the_own_policy_is_simulated_if_no_other_is_named():
    table = sim.run(policy=Linux63(), **SHORT)
    assert set(table["policy"]) == {"Linux63"}


def test_each_process_has_a_copy_of_its_own():
    policy = Linux63()
    sim.run(workload="fork-exec", policy=policy, **SHORT)
    assert not hasattr(policy, "taken"), "the object itself stays as it is"


def test_an_object_without_the_base_class_will_do():
    class Plain:
        name = "plain"

        def id(self, process, cpu, thread):
            return cpu

    table = sim.run(policies="per-cpu", policy=Plain(), **SHORT)
    own, built_in = ([row for row in table if row["policy"] == n] for n in ("plain", "per-cpu"))
    assert rows(own) == rows(built_in)


class Raises(Policy):
    """Raises its own exception in one method."""

    class Mine(Exception):
        pass

    def __init__(self, method):
        def fail(*arguments):
            raise Raises.Mine(method)

        if method != "id":
            setattr(self, method, fail)

        self.is_id = method == "id"

    def id(self, process, cpu, thread):
        if self.is_id:
            raise Raises.Mine("id")
        return cpu


@pytest.mark.parametrize("method", ["start", "id", "switch", "tick", "spawn", "exit", "exec"])
def test_an_exception_comes_out_as_it_is(method):
    workload = "fork-exec" if method in ("exec", "exit") else "churn"
    with pytest.raises(Raises.Mine, match=method):
        sim.run(workload=workload, policy=Raises(method), **{**SHORT, "duration_ms": 100})


@pytest.mark.parametrize(
    "of, expected",
    [
        (lambda cpu: cpu // 2, "which thread .* has on CPU"),
        (lambda cpu: 10**6, "expected an ID below"),
        (lambda cpu: -1, r"returned -1; expected an int from 0"),
        (lambda cpu: None, r"returned None; expected an int from 0"),
    ],
)
def test_a_broken_contract_is_an_error_of_the_run(of, expected):
    class Broken(Policy):
        def id(self, process, cpu, thread):
            return of(cpu)

    with pytest.raises(percid.RunError, match=expected):
        sim.run(policy=Broken(), **SHORT)


def test_a_policy_sees_its_process_and_reports_work():
    seen = []

    class Curious(Policy):
        def id(self, process, cpu, thread):
            seen.append((process.now, process.threads, process.allowed_cpus, process.cpus))
            process.count(steals=2, slow_paths=1)
            process.charge(slow_paths=1)
            return cpu

        def __deepcopy__(self, memo):
            return self

    table = sim.run(policies="per-cpu", policy=Curious(), **{**SHORT, "seeds": 1})
    built_in, own = table
    assert own["ns_per_burst"] > built_in["ns_per_burst"], "slow paths cost time"
    now, threads, allowed, cpus = max(seen)
    assert 0 < now <= 10**7 and threads > 1 and 0 < allowed <= cpus
    with pytest.raises(ValueError, match="expected CPUs below"):
        sim.run(policy=Far(), **SHORT)


class Far(Policy):
    def start(self, process):
        assert process.distance(0, 0) == 0
        process.distance(0, process.cpus)

    def id(self, process, cpu, thread):
        return cpu


@pytest.mark.parametrize("policy", [Policy, "linux-6.3", 3, object()])
def test_what_is_no_policy_is_refused(policy):
    with pytest.raises(percid.SpaceError, match="expected an object with the methods"):
        sim.run(policy=policy, **SHORT)


def test_the_name_of_a_built_in_policy_is_refused():
    policy = Linux63()
    policy.name = "linux-6.3"
    with pytest.raises(percid.SpaceError, match="is the name of a policy of the simulator"):
        sim.run(policy=policy, **SHORT)
