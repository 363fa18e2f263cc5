"""What was computed once outlives a full disk and a torn line."""

from __future__ import annotations

import multiprocessing
import resource
import signal
from pathlib import Path

import pytest

from harness.core.errors import PrerequisiteError
from scoring.stage_cache import StageCache

pytestmark = pytest.mark.unit
LIMIT = 200


def fill(path: Path) -> None:
    """Ends well when the disk takes no more and the one error is ours; closing then adds none."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
    with pytest.raises(PrerequisiteError, match=r"free some space .*what is scored stays"):
        keep(path)


def keep(path: Path) -> None:
    with StageCache(path) as cache:
        for key in range(LIMIT):
            cache.put(str(key), "x" * 30)


def test_a_full_disk_is_one_error_and_loses_only_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "cache.jsonl"
    process = multiprocessing.get_context("spawn").Process(target=fill, args=(path,))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert path.stat().st_size == LIMIT
    with StageCache(path) as cache:
        whole = LIMIT // len('{"key":"0","value":"' + "x" * 30 + '"}\n')
        assert len(cache) == whole == 3
        cache.put("after", 1)
    with StageCache(path) as cache:
        assert cache.get("after") == 1
