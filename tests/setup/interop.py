"""`python -m tests.setup.interop`: builds the pinned environments of the interop tests (about 2 GB, once)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.interop.environments import HERE, NotBuiltError, build_node, build_python

Build = Callable[[str], Path]


def builds() -> list[tuple[str, Build]]:
    """Every environment that a folder of `tests/interop` describes."""
    python = [(file.parent.name, build_python) for file in sorted(HERE.glob("*/requirements.txt"))]
    return python + [(file.parent.name, build_node) for file in sorted(HERE.glob("*/package.json"))]


def main() -> None:
    for name, build in builds():
        begin = time.monotonic()
        try:
            build(name)
        except NotBuiltError as exc:
            print(exc, file=sys.stderr)  # the tests that need it skip with this line
        if (seconds := time.monotonic() - begin) > 1:
            print(f"interop environment {name}: {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
