"""Where torch runs an engine."""

from __future__ import annotations

from typing import Any, Literal

from harness.core.errors import PrerequisiteError
from harness.engines.clip_engine import EngineSpec
from harness.engines.extras import installed, require


def torch_device(spec: EngineSpec, extra: str) -> Literal["cpu", "cuda"]:
    """`spec.device`, with `auto` decided: torch is imported only where an NVIDIA driver could make a difference.

    Raises PrerequisiteError without torch, or for a GPU that torch does not see.
    """
    version = installed("torch", extra)
    if spec.device == "cpu" or (spec.device == "auto" and "+cpu" in version):
        return "cpu"
    if require("torch", extra).cuda.is_available():
        return "cuda"
    if spec.device == "cuda":
        raise PrerequisiteError(f"torch {version} sees no GPU: use --device cpu, or install a CUDA build of torch")
    return "cpu"


def prepare(spec: EngineSpec, extra: str) -> Any:
    """torch, with the threads of `spec`."""
    torch = require("torch", extra)
    if spec.threads:
        torch.set_num_threads(spec.threads)
    return torch
