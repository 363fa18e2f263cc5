"""torch and the scoring packages on the path of the tests, from cached environments: `scoring_packages`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.interop.environments import environment

HERE = f"python{sys.version_info.major}.{sys.version_info.minor}"


def scoring_packages() -> None:
    """Make torch, transformers, whisper, funasr and distillmos importable, in worker processes too (they take over the
    path); skips the test where they cannot be had.

    Behind everything else on the path: what the project itself has installed stays first. The path keeps them, since
    torch cannot be taken out of a process.
    """
    for name in ("speech", "scoring"):
        folder = str(_site_packages(environment(name)))
        if folder not in sys.path:
            sys.path.append(folder)


def _site_packages(python: Path) -> Path:
    return python.parent.parent / "lib" / HERE / "site-packages"
