"""Which Python runs a model's worker: the harness's own, or one of an environment that has the model's packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from harness.core.errors import ConfigError, PrerequisiteError

NEEDS = ("msgspec", "numpy")
"""What the worker imports beside the standard library."""
OLDEST = (3, 11)
ASK_LIMIT_S = 60.0
_QUESTION = (
    "import sys, importlib.util as u;"
    f"print(sys.version_info[0], sys.version_info[1], *[n for n in {NEEDS!r} if u.find_spec(n) is None])"
)


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """command: how to start a worker, before its last argument. path: where it looks for the model's module, last."""

    command: tuple[str, ...]
    path: tuple[str, ...]


def own() -> Interpreter:
    """The Python that runs the harness, with all that can be imported here."""
    path = (*(entry for entry in sys.path if entry), os.getcwd())
    return Interpreter(command=(sys.executable, "-P", "-m", "connectors.local.worker"), path=path)


def other(python: str) -> Interpreter:
    """Another Python: a program's name or path, or the folder of a virtual environment. Its packages are its own.

    Raises ConfigError where there is none, PrerequisiteError for one that cannot run a worker.
    """
    found = _program(python)
    lacks = _lacks(found)
    if lacks:
        raise PrerequisiteError(f"{python} has no {' and no '.join(lacks)}: {found} -m pip install {' '.join(lacks)}")
    start = Path(__file__).with_name("elsewhere.py")
    # Never our installed packages: their compiled parts belong to this Python.
    ours = tuple(Path(prefix) for prefix in {sys.prefix, sys.base_prefix})
    path = [entry for entry in sys.path if entry and not any(Path(entry).is_relative_to(prefix) for prefix in ours)]
    return Interpreter(command=(found, "-P", str(start)), path=(*path, os.getcwd()))


def _program(python: str) -> str:
    place = Path(python).expanduser()
    name = str(place / "bin" / "python") if place.is_dir() else str(place)
    found = shutil.which(name)
    if found is None:
        raise ConfigError(f"python={python}: no such program; give a Python or the folder of a virtual environment")
    return os.path.abspath(found)


def _lacks(python: str) -> list[str]:
    """What `python` has not of `NEEDS`."""
    try:
        asked = subprocess.run(
            [python, "-c", _QUESTION], capture_output=True, text=True, timeout=ASK_LIMIT_S, check=True
        )
        major, minor, *lacks = asked.stdout.split()
        version = (int(major), int(minor))
    except (OSError, subprocess.SubprocessError, ValueError) as exc:
        raise ConfigError(f"python={python} does not run as a Python") from exc
    if version < OLDEST:
        raise PrerequisiteError(f"{python} is Python {major}.{minor}, a worker needs {OLDEST[0]}.{OLDEST[1]} or newer")
    return lacks
