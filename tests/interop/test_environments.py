"""Environments appear whole or not at all; a package that is gone is told apart from a registry that is not reached."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.conftest import _expected, unlisted
from tests.interop import environments
from tests.interop.environments import NotBuiltError, explain
from tests.interop.processes import free_port
from tests.setup.interop import builds

pytestmark = pytest.mark.interop
PIP = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "no-such==1.0"]
NPM_GONE = "npm error code ETARGET\nnpm error notarget No matching version found for x@9.9.9.\n"
NPM_OFFLINE = "npm error code ECONNREFUSED\nnpm error network request to http://127.0.0.1:9/x failed\n"


def said(folder: Path, **settings: str) -> str:
    """What pip says to itself alone: no configuration of this machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    env = {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "1", **settings}
    done = subprocess.run(PIP, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    return done.stderr


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FIRSTPACKET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "interop"


def test_a_release_that_pip_cannot_find_is_a_skip_that_ci_accepts(tmp_path: Path) -> None:
    line = explain("x", said(tmp_path, PIP_NO_INDEX="1"))
    assert line.startswith("package gone: x: ")
    assert line.endswith("no-such==1.0")
    assert not unlisted("tests/interop/x/test_x.py::test_it", line, _expected())


def test_a_registry_that_pip_cannot_reach_fails_under_ci(tmp_path: Path) -> None:
    line = explain("x", said(tmp_path, PIP_INDEX_URL=f"http://127.0.0.1:{free_port()}/simple"))
    assert line.startswith("not built: x: ")
    assert unlisted("tests/interop/x/test_x.py::test_it", line, _expected())


@pytest.mark.parametrize(("words", "begins"), [(NPM_GONE, "package gone: x: "), (NPM_OFFLINE, "not built: x: ")])
def test_npm_is_understood_alike(words: str, begins: str) -> None:
    assert explain("x", words).startswith(begins)


def test_a_build_that_fails_leaves_nothing(cache: Path) -> None:
    def install(folder: Path) -> None:
        folder.mkdir()
        (folder / "half").touch()
        raise NotBuiltError("not built: x")

    with pytest.raises(NotBuiltError):
        environments._built("x-1", install)
    assert [path.name for path in cache.iterdir()] == [".x-1.lock"]


def test_two_at_once_build_one(cache: Path) -> None:
    begun: list[Path] = []
    both = threading.Barrier(2)

    def install(folder: Path) -> None:
        begun.append(folder)
        folder.mkdir()

    def build() -> None:
        both.wait()
        environments._built("x-1", install)

    threads = [threading.Thread(target=build) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == 1
    assert (cache / "x-1").is_dir()


def test_a_changed_pin_is_another_environment(tmp_path: Path) -> None:
    pins = tmp_path / "requirements.txt"
    pins.write_text("x==1\n")
    before = environments._digest([pins])
    pins.write_text("x==2\n")
    assert environments._digest([pins]) != before


def test_set_up_finds_every_environment() -> None:
    names = [name for name, _ in builds()]
    assert sorted(names) == ["agents_realtime", "dashscope", "google_genai", "pipecat", "scoring", "speech"]
    assert set(environments.SHARED.values()) <= set(names)


def test_a_missing_npm_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(NotBuiltError, match="needs npm"):
        environments.build_node("agents_realtime")
