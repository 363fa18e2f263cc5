"""The cache folder and atomic writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.engines.cache import CACHE_VARIABLE, cache_dir, write_atomic

pytestmark = pytest.mark.unit


def test_variable_moves_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "there"))
    assert cache_dir() == tmp_path / "there"
    monkeypatch.delenv(CACHE_VARIABLE)
    assert cache_dir().name == "firstpacket"


def test_write_makes_parents_replaces_and_leaves_nothing_beside(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b.json"
    write_atomic(target, b"one")
    write_atomic(target, b"two")
    assert target.read_bytes() == b"two"
    assert [path.name for path in target.parent.iterdir()] == ["b.json"]


def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "b.json"
    write_atomic(target, b"one")

    def full(self: Path, other: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_atomic(target, b"two")
    assert target.read_bytes() == b"one"
    assert [path.name for path in tmp_path.iterdir()] == ["b.json"]
