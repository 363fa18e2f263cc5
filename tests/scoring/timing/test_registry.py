"""Every metric declares what it is; third parties can add one."""

from __future__ import annotations

import importlib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from harness.core import plugins
from harness.core.errors import ScoringError
from scoring.timing import metrics, registry
from scoring.timing.metric import Metric
from scoring.timing.rows import session_rows
from tests.scoring.timing.recordings import vad_turn

pytestmark = pytest.mark.unit
COLUMNS = [
    *("session", "query", "turn", "turn_index", "mode", "status", "ttft_ms", "first_packet_ms", "first_audible_ms"),
    *("endpoint_ms", "think_ms", "leading_silence_ms", "generation_s", "response_s", "rtf", "rtf_anchor"),
    *("stream_rtf", "stalls", "stall_ms", "rtt_ms", "since_ready_ms", "send_late_p99_ms", "own_error_ms", "tainted"),
    *("usage", "error"),
]


def test_every_module_is_one_metric_of_its_name():
    names = sorted(path.stem for path in Path(metrics.__path__[0]).glob("*.py") if path.stem != "__init__")
    assert sorted(metric.name for metric in registry.all_metrics()) == names


def test_every_metric_has_a_place_among_the_columns():
    assert {metric.name for metric in registry.all_metrics()} == set(registry.ORDER)


@pytest.mark.parametrize("metric", registry.all_metrics(), ids=lambda metric: metric.name)
def test_declarations(metric: Metric):
    module = importlib.import_module(f"{metrics.__name__}.{metric.name}")
    assert metric.version >= 1
    assert metric.header
    assert "Null" in module.__doc__ or metric.unit == "flag"
    assert "Source:" in module.__doc__.replace("\n", " ")
    if metric.name.endswith("_ms"):
        assert metric.unit in ("ms", "label")


def test_the_row_has_the_documented_columns(tmp_path: Path):
    row = vad_turn().row(tmp_path)
    assert set(COLUMNS) <= set(row)
    assert list(row)[:8] == COLUMNS[:8]


@pytest.fixture
def _fresh():
    registry.all_metrics.cache_clear()
    yield
    registry.all_metrics.cache_clear()


def add(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    point = EntryPoint(name=name, value=f"{__name__}:{name.upper()}", group=registry.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point] if group == registry.GROUP else [])


MINE = Metric(
    name="mine", version=1, unit="count", direction="none", header="Mine", compute=lambda scene: len(scene.turn.used)
)
TAKEN = Metric(name="rtf", version=1, unit="ratio", direction="lower", header="RTF", compute=lambda scene: 1.0)
BAD = Metric(name="bad", version=1, unit="ms", direction="lower", header="Bad", compute=lambda scene: float("nan"))


@pytest.mark.usefixtures("_fresh")
def test_a_third_partys_metric_is_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    add(monkeypatch, "mine")
    assert vad_turn().row(tmp_path)["mine"] == 1
    assert registry.all_metrics()[-1].name == "mine"


@pytest.mark.usefixtures("_fresh")
def test_two_metrics_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch):
    add(monkeypatch, "taken")
    with pytest.raises(ScoringError, match="two metrics are called rtf"):
        registry.all_metrics()


def test_a_figure_that_is_no_number_is_an_error(tmp_path: Path):
    with pytest.raises(ScoringError, match="bad gave nan"):
        session_rows(vad_turn().write(tmp_path), metrics=[BAD])


def test_every_metric_and_its_version_stand_in_the_documentation():
    text = (Path(metrics.__path__[0]).parent / "METRICS.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    for metric in registry.all_metrics():
        (line,) = [line for line in lines if f"`{metric.name}`" in line.split("|")[1]]
        assert line.split("|")[2].strip() == str(metric.version), metric.name
