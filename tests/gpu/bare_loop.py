"""The same loop without the harness: `python -m tests.gpu.bare_loop JSON`; each line read is an answer, timed in ns."""

from __future__ import annotations

import json
import sys
import time

from connectors.local.model import Session
from tests.gpu.step_model import StepModel


def main() -> None:
    model = StepModel(**json.loads(sys.argv[1]))
    model.load()
    model.warm_up()
    model.start(Session(turn="manual"))
    print("ready", flush=True)
    for _ in sys.stdin:
        begin_ns = time.monotonic_ns()
        for _ in model.end_turn():
            pass
        print(time.monotonic_ns() - begin_ns, flush=True)


if __name__ == "__main__":
    main()
