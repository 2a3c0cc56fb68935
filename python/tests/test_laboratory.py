"""Published tables, traces and pictures."""

import json
import subprocess

import pytest
from conftest import ROOT

import percid

RECORDING = ROOT / "crates/percid-trace/tests/fixtures/sched.data"


@pytest.fixture(scope="session")
def intermittent():
    return percid.paper.intermittent()


def test_published_figures_stand_beside_simulated_ones(command, intermittent):
    table = intermittent
    told = subprocess.run(
        [command, "sim", "published", "intermittent", "--json"], capture_output=True, check=True
    )
    rows = json.loads(told.stdout)["rows"]
    assert table["model_ns"] == [row["model_ns"] for row in rows]
    assert table["published_ns"] == [row["published_ns"] for row in rows]
    assert all(abs(error) < 0.5 for error in table["error"])


@pytest.mark.parametrize("part", ["predictions", "mask", "numa"])
def test_each_part_has_rows(part):
    assert len(getattr(percid.paper, part)()) > 5


def test_a_recording_is_a_table(command, tmp_path):
    table = percid.trace.read(RECORDING)
    assert table.column_names[:3] == ["time_ns", "cpu", "event"]
    path = tmp_path / "sched.parquet"
    subprocess.run([command, "trace", "convert", RECORDING, path], capture_output=True)
    if path.exists():
        import pyarrow.parquet

        assert pyarrow.parquet.read_table(path).num_rows == len(table)
    frame = table.to_pandas()
    assert (frame["event"] == "switch").sum() > 0 and frame["time_ns"].is_monotonic_increasing


def test_a_recording_is_a_data_frame_in_one_call():
    """Also the one that comes with the package."""
    for recording in (RECORDING, percid.trace.example()):
        table = percid.trace.read(recording)
        frame = percid.trace.read_pandas(recording)
        assert frame.shape == table.shape and list(frame.columns) == table.column_names
        assert frame["time_ns"].tolist() == table["time_ns"]
        assert frame["event"].astype(str).tolist() == table["event"]
        frame = percid.trace.read_polars(recording)
        assert frame.shape == table.shape and frame.columns == table.column_names
        assert frame["event"].cast(str).to_list() == table["event"]
        assert frame["time_ns"].to_list() == table["time_ns"]


def test_a_recording_is_replayed_under_policies():
    table = percid.trace.replay(RECORDING, ["per-cpu", "percid-table"], machine="cascade-lake")
    assert set(table["policy"]) == {"per-cpu", "percid-table"}
    assert all(0 <= share <= 1 for share in table["same_cpu"])


def test_what_is_no_recording_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        percid.trace.read(tmp_path / "nothing")
    file = tmp_path / "letter.txt"
    file.write_text("Dear reader,\n")
    with pytest.raises(percid.TraceError, match="letter.txt: "):
        percid.trace.read(file)
    with pytest.raises(percid.SpaceError, match="policy per-cup"):
        percid.trace.replay(RECORDING, "per-cup")


def test_pictures_are_drawn(space, intermittent, tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    runs = percid.sim.run(**space)
    spans = percid.sim.spans("cascade-lake", duration_ms=20)
    for name, axes in {
        "shares": percid.plots.shares(runs),
        "cost": percid.plots.shares(runs, cost=True),
        "published": percid.plots.published(intermittent),
        "ids": percid.plots.ids(spans),
        "sensitivity": percid.plots.sensitivity(runs, "allowed"),
    }.items():
        assert axes.get_children()
        axes.figure.savefig(tmp_path / f"{name}.png")
    with pytest.raises(percid.SpaceError, match="this one lacks"):
        percid.plots.sensitivity(runs, "colour")
