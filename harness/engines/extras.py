"""Lazy import of what an extra brings; a missing package becomes one line that names the extra."""

from __future__ import annotations

import importlib
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
        missing = exc.name or module
        raise PrerequisiteError(f"{missing} is not installed: pip install 'firstpacket[{extra}]'") from exc
