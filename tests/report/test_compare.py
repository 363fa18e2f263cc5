"""Comparisons in words and as a table, and the command."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len
from rich.console import Console

from harness.cli import cli
from harness.core.errors import ConfigError, SessionFormatError
from harness.report import compare_sentence
from harness.report.compare import print_compared
from harness.report.compare_sentence import amount, sentences, warnings
from scoring.compare import difference
from scoring.compare.comparison import compare
from scoring.compare.run import load_runs
from tests.report.sample_run import HOSTILE
from tests.scoring.compare.runs import turn, turns, write_run

pytestmark = pytest.mark.unit


def compared(tmp_path: Path, base: list[dict[str, Any]], other: list[dict[str, Any]], **summary: Any) -> dict[str, Any]:
    paths = [write_run(tmp_path / "old", base), write_run(tmp_path / "new", other, **summary)]
    found: dict[str, Any] = msgspec.to_builtins(compare(*load_runs(paths)))
    return found


def shown(comparison: dict[str, Any], width: int = 100, **options: Any) -> str:
    file = io.StringIO()
    print_compared(Console(file=file, width=width, color_system=None), comparison, **options)
    text = file.getvalue()
    assert max(map(cell_len, text.splitlines())) <= width
    return text


def firstpacket(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(cli, [str(each) for each in arguments])


def test_what_is_better_by_how_much_and_that_it_suffices(tmp_path: Path) -> None:
    rows = [turn(f"q{k}", 800.0 + 10 * k) for k in range(12)]
    slow = [turn(f"q{k}", 850.0 + 10 * k) for k in range(12)]
    found = compared(tmp_path, rows, slow)
    assert sentences(found) == [
        "new is worse than old in first packet. The evidence suffices for that.",
        "First packet: new is 50.0 ms slower than old (95 % interval +50.0 to +50.0 ms, 12 pairs).",
    ]
    assert warnings(found) == []
    other = compared(tmp_path, slow, rows)
    assert sentences(other)[0] == "new is better than old in first packet. The evidence suffices for that."
    assert "50.0 ms faster" in sentences(other)[1]


def test_no_difference_to_be_seen_and_what_could_have_been(tmp_path: Path) -> None:
    found = compared(tmp_path, turns(seed=1), turns(seed=2))
    smallest = next(each for each in found["figures"] if each["name"] == "first_packet_ms")["difference"]["smallest"]
    assert 2 < smallest < 8  # noise of 5 ms a run, 24 pairs: 2.9 * 5 * sqrt(2) * 1.25 / sqrt(24)
    first, second = sentences(found)
    assert first == "There is no difference to be seen between new and old."
    assert second.startswith("First packet: no difference to be seen (")
    assert second.endswith(f"; one of {smallest:.1f} ms could have been.")


def test_within_the_error_of_the_harness(tmp_path: Path) -> None:
    rows = [turn(f"q{k}", 800.0) for k in range(12)]
    found = compared(tmp_path, rows, [turn(f"q{k}", 800.3) for k in range(12)])
    assert "(+0.3 ms, within the harness's own error; " in sentences(found)[1]


def test_too_few_to_tell(tmp_path: Path) -> None:
    found = compared(
        tmp_path, [turn("a", 1.0), turn("a", 1.0, repeat=1)], [turn("a", 900.0), turn("a", 900.0, repeat=1)]
    )
    assert sentences(found) == [
        "Whether new or old is better cannot be said: 6 different queries at least are needed for an interval.",
        "First packet: +899.0 ms (2 pairs from 1 queries), too few to tell.",
    ]
    assert compare_sentence.LEAST_CLUSTERS == difference.LEAST_CLUSTERS


def test_better_in_one_worse_in_another(tmp_path: Path) -> None:
    base = [turn(f"q{k}", 800.0, ttft_ms=500.0) for k in range(12)]
    other = [turn(f"q{k}", 700.0, ttft_ms=600.0) for k in range(12)]
    assert sentences(compared(tmp_path, base, other))[0] == (
        "new is better than old in first packet; it is worse in first text (TTFT). The evidence suffices for that."
    )


def test_doubts(tmp_path: Path) -> None:
    found = compared(
        tmp_path,
        turns(seed=1),
        [*turns(seed=2)[1:], turn("q00", None)],
        harness={"error_ms": {"p50": 0.2}, "tainted": 3, "noise": {"quiet": False}},
        missing_sessions=2,
    )
    found["other"]["random_weights"] = ["weights: random"]
    found["forced"] = ["mode (vad and manual)"]
    found["circumstances"] = ["session.chunk_ms (20 and 40)"]
    assert warnings(found) == [
        "Forced; not measured alike: mode (vad and manual).",
        "new ran on random weights (weights: random): its scores say nothing of the model.",
        "new: 3 of 24 turns are tainted, the harness itself was late there.",
        "new: 1 of 24 turns failed and are in no latency.",
        "new: 2 planned sessions are missing.",
        "new: the machine was noisy.",
        "Held differently: session.chunk_ms (20 and 40).",
    ]


@pytest.mark.parametrize("width", [50, 80, 120])
def test_the_table_fits_and_says_what_it_leaves_out(tmp_path: Path, width: int) -> None:
    found = compared(tmp_path, turns(seed=1), turns(50, seed=2))
    text = shown(found, width)
    line = next(line for line in text.splitlines() if line.startswith("first_packet_ms"))
    shift = next(each for each in found["figures"] if each["name"] == "first_packet_ms")["difference"]
    assert amount(shift["value"], "ms", signed=True) in line
    assert line.rstrip().endswith("worse")
    assert ("No room for: " in text) == (width < 120)


def test_words_of_others_are_inert(tmp_path: Path) -> None:
    found = compared(tmp_path, turns(seed=1), turns(50, seed=2))
    found["base"]["label"] = HOSTILE
    found["other"]["random_weights"] = [HOSTILE]
    assert "\x1b" not in shown(found)


def test_the_command(tmp_path: Path) -> None:
    for name, shift in (("a", 0), ("b", 50), ("c", 0)):
        write_run(tmp_path / "out" / name, turns(shift, seed=ord(name)))
    done = firstpacket("compare", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert [line for line in done.stdout.splitlines() if " against " in line] == ["b against a", "c against a"]
    found = json.loads(firstpacket("compare", tmp_path / "out", "--json").stdout)
    assert [each["sentences"][0] for each in found] == [
        "b is worse than a in first packet. The evidence suffices for that.",
        "There is no difference to be seen between c and a.",
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a",), "one run alone"),
        (("a", "m"), r"a and m were not measured alike: mode \(vad and manual\); --force"),
        (("a", "x"), r"x: no run\.json"),
    ],
)
def test_what_cannot_be_compared_is_one_line(tmp_path: Path, names: tuple[str, ...], said: str) -> None:
    write_run(tmp_path / "a", turns(seed=1))
    write_run(tmp_path / "m", turns(seed=1), mode="manual")
    done = firstpacket("compare", *(tmp_path / name for name in names))
    assert done.exception is not None
    with pytest.raises((ConfigError, SessionFormatError), match=said) as raised:
        raise done.exception
    assert "\n" not in str(raised.value)
