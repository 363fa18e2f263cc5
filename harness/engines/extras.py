"""Lazy import of what an extra brings; a missing package becomes one line that names the extra."""

from __future__ import annotations

import importlib
import importlib.util
from importlib import metadata
from typing import Any

from harness.core.errors import PrerequisiteError


def require(module: str, extra: str) -> Any:
    """The module `module`, imported now.

    Typed `Any`: the packages behind extras need not be installed where types are checked.
    Raises PrerequisiteError naming `pip install 'firstpacket[extra]'` when the module, or one it needs, is missing.
    """
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        raise missing(exc.name or module, extra) from exc


def installed(module: str, extra: str, package: str = "") -> str:
    """The version of what brings `module`, without importing it (torch takes seconds). package: its name on the index,
    by default the module's with dashes. Raises PrerequisiteError as `require` does."""
    if importlib.util.find_spec(module) is None:
        raise missing(module, extra)
    try:
        return metadata.version(package or module.replace("_", "-"))
    except metadata.PackageNotFoundError:
        return "unknown"


def missing(module: str, extra: str) -> PrerequisiteError:
    """What is not installed, and how it is."""
    return PrerequisiteError(f"{module} is not installed: pip install 'firstpacket[{extra}]'")
