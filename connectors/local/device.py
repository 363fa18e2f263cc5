"""Where a model computes and in which numbers: `cpu`, `cuda[:N]`, `mps`, or `auto`, as torch finds them."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from harness.core.errors import ConfigError, PrerequisiteError
from harness.engines.extras import require

DTYPES = ("float32", "bfloat16", "float16")


class Place(NamedTuple):
    """device, dtype: torch's own objects. name: of the device, for a person."""

    device: Any
    dtype: Any
    name: str


def place(device: str = "auto", dtype: str = "auto") -> Place:
    """`device` and `dtype` as torch's. auto: the first GPU, else the CPU; bfloat16 on a GPU, float32 on the CPU.

    Raises ConfigError for words that mean nothing, PrerequisiteError for a device that is not here.
    """
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", device):
        raise ConfigError(f"device={device}: needs cpu, cuda, cuda:N, mps or auto")
    if dtype not in (*DTYPES, "auto"):
        raise ConfigError(f"dtype={dtype}: needs {', '.join(DTYPES)} or auto")
    torch = require("torch", "local")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    kind, _, index = device.partition(":")
    if kind == "cuda" and not torch.cuda.is_available():
        raise PrerequisiteError("device=cuda: torch sees no GPU here; use device=cpu, or a torch built for CUDA")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise PrerequisiteError("device=mps: torch sees no Apple GPU here; use device=cpu")
    if kind == "cuda" and int(index or 0) >= torch.cuda.device_count():
        raise PrerequisiteError(f"device={device}: there are {torch.cuda.device_count()} GPUs, counted from 0")
    wanted = ("float32" if kind == "cpu" else "bfloat16") if dtype == "auto" else dtype
    found = torch.device(kind, int(index or 0)) if kind == "cuda" else torch.device(kind)
    return Place(found, getattr(torch, wanted), torch.cuda.get_device_name(found) if kind == "cuda" else kind)


def cpu_threads(asked: int = 0) -> int:
    """Threads of an engine on the CPU: as `asked`, or (0) all cores but one, which is the harness's."""
    return asked or max(1, (os.cpu_count() or 2) - 1)


def synchronize(device: Any) -> None:
    """Wait until all that was given to `device` is done; what is on the host already needs no waiting."""
    torch = require("torch", "local")
    kind = torch.device(device).type
    if kind == "cuda":
        torch.cuda.synchronize(device)
    elif kind == "mps":
        torch.mps.synchronize()
