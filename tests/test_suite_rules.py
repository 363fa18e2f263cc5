"""The rules of `conftest.py` in a suite of their own, in one process and in several workers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SUITE = """
import time
from pathlib import Path
import pytest

pytestmark = pytest.mark.timeout(1.5)  # less than the exact tests have the machine for


def stay(name, seconds):
    with Path(__file__).with_name("log").open("a", buffering=1) as log:
        log.write(f"{name} in\\n")
        time.sleep(seconds)
        log.write(f"{name} out\\n")


@pytest.mark.parametrize("k", range(2))
def test_of_a_module(k):
    stay("together", 0.05)


@pytest.mark.loopback
@pytest.mark.parametrize("k", range(6))
def test_dealt_out(k):
    stay("together", 0.05)


@pytest.fixture(scope="module")
def prepared():
    stay("prepared", 0)


@pytest.mark.loopback
@pytest.mark.parametrize("k", range(4))
def test_with_a_fixture_in_common(k, prepared):
    pass


@pytest.mark.exact
@pytest.mark.parametrize("k", ["a", "b@c"])
def test_alone(k):
    stay("alone", 0.9)


def test_on_the_list():
    pytest.skip("no GPU here")


def test_not_on_the_list():
    pytest.skip("no luck")


@pytest.mark.loopback
@pytest.mark.xdist_group("some")
def test_fails():
    assert False
"""
SKIPS = '[[skip]]\ntest = "tests/test_x.py::*on_the_list"\nreason = "no GPU*"\n'
MARKERS = ("exact", "loopback", "interop", "browser")


def run_suite(folder: Path, *options: str) -> tuple[list[str], list[str]]:
    """Run SUITE under the project's rules: (lines that pytest said, who came and went in which order)."""
    tests = folder / "tests"
    tests.mkdir()
    for name in ("__init__.py", "conftest.py", "room.py"):
        shutil.copy(HERE / name, tests)
    (tests / "expected_skips.toml").write_text(SKIPS)
    (tests / "test_x.py").write_text(SUITE)
    markers = "".join(f"    {name}: x\n" for name in MARKERS)
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = -ra --strict-markers\nmarkers =\n{markers}")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "pytest_timeout",
            "-p",
            "xdist.plugin",
            "-p",
            "no:cacheprovider",
            *options,
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment | {"CI": "true", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    return (done.stdout + done.stderr).splitlines(), (tests / "log").read_text().splitlines()


@pytest.mark.parametrize("options", [(), ("--numprocesses=2",)], ids=["one process", "workers"])
def test_skips_under_ci_are_on_the_list_and_exact_tests_are_alone(tmp_path: Path, options: tuple[str, ...]) -> None:
    said, log = run_suite(tmp_path, *options)
    assert "2 failed, 14 passed, 1 skipped" in said[-1]
    assert "FAILED tests/test_x.py::test_fails - assert False" in said
    (skipped,) = [line for line in said if line.startswith("FAILED tests/test_x.py::test_not_on_the_list - ")]
    assert "skipped under CI and not listed" in skipped
    inside: list[str] = []
    for name, what in map(str.split, log):
        if what == "out":
            inside.remove(name)
            continue
        assert not inside or (name != "alone" and "alone" not in inside)
        inside.append(name)
    assert (log.count("alone in"), log.count("prepared in"), log.count("together in")) == (2, 1, 8)
