"""Pinned environments for software of others, built once each into the cache: `environment`, `node_environment`.

A Python one is a virtual environment from `<name>/requirements.txt` and, where a package declares more than the test
needs, `<name>/no_deps.txt`; a Node one is a `node_modules` from `<name>/package.json`. The folder's name changes with
any pin, and it appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.engines.cache import cache_dir

HERE = Path(__file__).parent
SHARED = {"moshi": "speech", "speech_to_speech": "speech"}
"""Names that stand for one environment: both need torch, which is big."""
PATIENCE_S = 900
"""Longest build: torch and its like on a slow line."""

_GONE = re.compile(r"No matching distribution|No matching version|\bE404\b|\bETARGET\b|404 Not Found", re.IGNORECASE)
_OFFLINE = re.compile(
    r"NewConnectionError|NameResolution|Max retries|ProxyError|Network is unreachable|Read timed out"
    r"|ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT",
    re.IGNORECASE,
)


class NotBuiltError(Exception):
    """An environment that cannot be had here: one line that begins with `package gone:` or `not built:`."""


def environment(name: str) -> Path:
    """The Python of the environment `name`; skips the test where it cannot be built."""
    with _or_skip():
        return build_python(SHARED.get(name, name))


def node_environment(name: str) -> Path:
    """The folder that holds the `node_modules` of `name`; skips the test where it cannot be built."""
    with _or_skip():
        return build_node(name)


def node() -> str:
    """The Node.js program; skips the test where there is none."""
    return shutil.which("node") or pytest.skip("not built: no Node.js on this machine")


def build_python(name: str) -> Path:
    """`environment` for set-up scripts. Raises NotBuiltError."""
    files = [path for file in ("requirements.txt", "no_deps.txt") if (path := HERE / name / file).is_file()]
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    digest = _digest(files, version, platform.system(), platform.machine())
    folder = _built(f"{name}-{version}-{digest}", lambda into: _install_python(name, files, into))
    return folder / "bin" / "python"


def build_node(name: str) -> Path:
    """`node_environment` for set-up scripts. Raises NotBuiltError."""
    manifest = HERE / name / "package.json"
    digest = _digest([manifest], platform.system(), platform.machine())
    return _built(f"{name}-node-{digest}", lambda into: _install_node(name, manifest, into))


def _install_python(name: str, files: list[Path], folder: Path) -> None:
    _run(name, [sys.executable, "-m", "venv", str(folder)])
    # Only its retries tell a registry that is not reached from one that lacks a release.
    quiet = ["--quiet", "--disable-pip-version-check", "--retries", "5"]
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", *quiet]
    for file in files:
        options = ["--no-deps"] if file.name == "no_deps.txt" else []
        _run(name, [*pip, *options, "--requirement", str(file)])


def _install_node(name: str, manifest: Path, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise NotBuiltError(f"not built: {name} needs npm, which is not on this machine")
    folder.mkdir()
    shutil.copy(manifest, folder)
    quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    _run(name, [npm, "install", *quiet, "--prefix", str(folder)])


def _run(name: str, command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S, cwd=HERE)
    except subprocess.CalledProcessError as exc:
        raise NotBuiltError(explain(name, exc.stderr or exc.stdout)) from exc
    except subprocess.TimeoutExpired as exc:
        raise NotBuiltError(f"not built: {name} took more than {PATIENCE_S} s") from exc


def explain(name: str, said: str) -> str:
    """One line for what pip or npm said; only a package that the registry does not have counts as gone."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    gone = [line for line in lines if _GONE.search(line)]
    if gone and not _OFFLINE.search(said):
        return f"package gone: {name}: {gone[-1]}"
    return f"not built: {name}: {lines[-1] if lines else 'no reason given'}"


def _built(name: str, install: Callable[[Path], None]) -> Path:
    root = cache_dir() / "interop"
    target = root / name
    if target.is_dir():
        return target
    root.mkdir(parents=True, exist_ok=True)
    with _alone(root / f".{name}.lock"):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=root, prefix=f".{name}.") as scratch:
                install(Path(scratch) / "whole")
                (Path(scratch) / "whole").rename(target)
    return target


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released with the file, also by a process that dies
        yield


@contextlib.contextmanager
def _or_skip() -> Iterator[None]:
    try:
        yield
    except NotBuiltError as exc:
        pytest.skip(str(exc))


def _digest(files: list[Path], *facts: str) -> str:
    parts = [*facts, *(f"{file.name}:{file.read_text('utf-8')}" for file in files)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]
