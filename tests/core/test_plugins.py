"""Plug-ins through entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from harness.core import plugins
from harness.core.errors import ConfigError, PrerequisiteError

pytestmark = pytest.mark.unit


def pretend(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> None:
    made = [EntryPoint(name=name, value=value, group=plugins.SCORERS) for name, value in points]
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point for point in made if point.group == group])


def test_the_timing_scorer_is_found():
    assert plugins.load(plugins.SCORERS, "timing").__name__ == "TimingScorer"


def test_names_are_sorted(monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, ("zeta", "json:loads"), ("alpha", "json:dumps"))
    assert list(plugins.names(plugins.SCORERS)) == ["alpha", "zeta"]


def test_an_unknown_name_offers_the_nearest(monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, ("timing", "json:loads"))
    with pytest.raises(ConfigError, match=r"no scorer called 'timming': did you mean timing\?"):
        plugins.load(plugins.SCORERS, "timming")


def test_a_failed_import_is_a_missing_prerequisite(monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, ("heavy", "no_such_package_here.scorer:Heavy"))
    with pytest.raises(PrerequisiteError, match=r"heavy: no_such_package_here"):
        plugins.load(plugins.SCORERS, "heavy")
