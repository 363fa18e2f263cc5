"""Starts the worker under a Python that does not have the harness installed: `python -P elsewhere.py FD`.

Only the packages that the worker is made of are brought in, by their files; all else is that Python's own.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def bring(name: str) -> None:
    """Import the package `name` from beside ours, whatever else there is of that name."""
    folder = ROOT / name
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])


if __name__ == "__main__":
    for package in ("harness", "connectors"):
        bring(package)
    from connectors.local.worker import main

    main()
