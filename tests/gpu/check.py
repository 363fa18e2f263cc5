"""The device check: every stage in a process of its own, within its time; a table and JSON. See `check.sh`."""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from connectors.local.device import place
from harness.core.errors import HarnessError
from tests.gpu import models, overhead
from tests.gpu.step_model import UNIT

MOSHI = "connectors.local.models.moshi:Moshi"
TOTAL_S = 285.0
"""For all stages together; one that comes after has its lack of time as its error."""
NO_WEIGHTS = ("burst", "packets of 80 ms")
QWEN = "connectors.local.models.qwen:Qwen25Omni"


class Scale(NamedTuple):
    """Sizes and amounts: of the real check, and of `--tiny`."""

    moshi: str
    moshi_s: float
    qwen: str
    rounds: int
    answer: dict[str, Any]
    whisper: dict[str, Any]
    steps: dict[str, Any]
    pairs: int
    limit_s: float


FULL = Scale(
    moshi="7b",
    moshi_s=25.0,
    qwen="7b",
    rounds=3,
    answer={"text_tokens": 48, "audio_s": 6},
    whisper={"size": "large-v3", "batch": 32, "tokens": 100, "rounds": 2},
    steps={"size": "big", "steps": 50},
    pairs=30,
    limit_s=75.0,
)
TINY = Scale(
    moshi="tiny",
    moshi_s=2.0,
    qwen="tiny",
    rounds=2,
    answer={"text_tokens": 6, "audio_s": 0.5},
    whisper={"size": "tiny", "batch": 2, "tokens": 4, "rounds": 1},
    steps={"size": "tiny", "steps": 10},
    pairs=4,
    limit_s=150.0,
)
Stage = Callable[[], Any]


def stages(asked: argparse.Namespace, scale: Scale) -> dict[str, Stage]:
    """What is run, by name, in this order."""
    random = {"weights": "random", "device": asked.device}
    duplex = random | {"size": scale.moshi} | ({"python": asked.moshi_python} if asked.moshi_python else {})
    qwen = random | {"size": scale.qwen, **scale.answer}
    steps = {**scale.steps, "device": asked.device}

    def answered(mode: str) -> Any:
        settings = {**qwen, "mode": mode}
        return models.answers(QWEN, settings, rounds=scale.rounds, query_s=3.0, limit_s=scale.limit_s)

    return {
        "moshi": lambda: models.duplex_steps(MOSHI, duplex, seconds=scale.moshi_s),
        "qwen2.5-omni incremental": lambda: answered("incremental"),
        "qwen2.5-omni stock": lambda: answered("stock"),
        "overhead": lambda: overhead.overhead(steps, pairs=scale.pairs, limit_s=scale.limit_s),
        "burst": lambda: overhead.burst(megabytes=30, limit_s=scale.limit_s),
        "packets of 80 ms": lambda: overhead.burst(megabytes=8, samples=UNIT, limit_s=scale.limit_s),
        "whisper": lambda: _whisper({**scale.whisper, "device": asked.device}, scale.limit_s),
    }


async def _whisper(settings: dict[str, Any], limit_s: float) -> Any:
    command = [sys.executable, "-m", "tests.gpu.whisper_batches", json.dumps(settings)]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=limit_s, check=False
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def run_stage(stage: Stage, limit_s: float) -> dict[str, Any]:
    """Its figures, or `error`, and `took_s`."""
    begin = time.monotonic()

    async def within() -> Any:
        async with asyncio.timeout(limit_s):
            return await stage()

    try:
        found = dict(asyncio.run(within()))
    except TimeoutError:
        found = {"error": f"not done within {limit_s:.3g} s"}
    except (HarnessError, RuntimeError, OSError, subprocess.SubprocessError, ImportError) as exc:
        found = {"error": f"{type(exc).__name__}: {exc}"}
    return {**found, "took_s": round(time.monotonic() - begin, 1)}


def machine(device: str) -> dict[str, Any]:
    import torch
    import transformers

    gpu = torch.cuda.get_device_name() if device != "cpu" and torch.cuda.is_available() else ""
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
        "gpu": gpu or "none",
        "system": platform.platform(),
    }


def print_table(found: dict[str, dict[str, Any]]) -> None:
    """A line a figure; facts stand in the JSON only."""
    for name, figures in found.items():
        print(f"\n{name}" if name in NO_WEIGHTS else f"\n{name} (weights: random)")
        for key, value in figures.items():
            if key != "facts":
                print(f"  {key:<26} {value}")


def verdicts(found: dict[str, dict[str, Any]]) -> list[str]:
    """The limits that hold on a GPU, each met or missed."""
    lines = []
    moshi, harness = found.get("moshi", {}), found.get("overhead", {})
    if "step_p99_ms" in moshi:
        met = moshi["step_p99_ms"] <= moshi["budget_ms"]
        lines.append(f"moshi: p99 step {moshi['step_p99_ms']} of {moshi['budget_ms']} ms: {'met' if met else 'MISSED'}")
    if "ratio_p50" in harness:
        said = f"{harness['ratio_p50']}, p99 {harness['stamp_to_arrival_p99_ms']} ms"
        lines.append(f"overhead: ratio {said}: {'met' if overhead.within_limits(harness) else 'MISSED'}")
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="check.sh", description="Local models in their real sizes, random weights.")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:N, mps or auto (default)")
    parser.add_argument("--tiny", action="store_true", help="shrunken models, for any machine")
    parser.add_argument("--only", action="append", metavar="STAGE", help="run only this stage; may be repeated")
    parser.add_argument("--out", type=Path, help="write JSON here")
    parser.add_argument("--moshi-python", default="", metavar="DIR", help="environment that has the package moshi")
    asked = parser.parse_args(arguments)
    scale = TINY if asked.tiny else FULL
    chosen = stages(asked, scale)
    unknown = set(asked.only or ()) - set(chosen)
    if unknown:
        parser.error(f"--only {unknown.pop()}: the stages are {', '.join(chosen)}")
    try:
        kind = place(asked.device).device.type
    except HarnessError as exc:
        parser.error(str(exc))
    if kind == "cpu" and not asked.tiny:
        parser.error("no GPU: models of real size want 17 GB and more, and minutes for an answer; --tiny runs anywhere")
    seen = machine(asked.device)
    found: dict[str, dict[str, Any]] = {}
    end = time.monotonic() + TOTAL_S
    for name, stage in chosen.items():
        if not asked.only or name in asked.only:
            left_s = end - time.monotonic()
            print(f"{name} ... ({left_s:.0f} s left)", file=sys.stderr, flush=True)
            found[name] = run_stage(stage, min(scale.limit_s, max(0.0, left_s)))
    print(" ".join(f"{key} {value};" for key, value in seen.items()))
    print_table(found)
    gated = [] if seen["gpu"] == "none" else verdicts(found)
    print("\n" + "\n".join(gated or ["No limit is checked without a GPU."]))
    if asked.out:
        document = {"weights": "random", "tiny": asked.tiny, "machine": seen, "stages": found, "verdicts": gated}
        asked.out.write_text(json.dumps(document, indent=1) + "\n")
    failed = [name for name, figures in found.items() if "error" in figures]
    return 1 if failed or any("MISSED" in line for line in gated) else 0


if __name__ == "__main__":
    sys.exit(main())
