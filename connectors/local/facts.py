"""What a session header should say of a local model: `model_facts`, called from `LocalModel.facts`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from connectors.local.device import Place
from harness.core.weights_mark import RANDOM
from harness.engines.extras import require
from harness.engines.weights import RANDOM_MARK, sha256_of

WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf", "*.onnx")
"""Files that hold weights; configuration and tokenizer are named by the revision."""


def model_facts(
    at: Place,
    *,
    weights: Path | str,
    model: Any = None,
    revision: str = "",
    attention: str = "",
    compiled: str = "none",
    **more: Any,
) -> dict[str, Any]:
    """The facts of a model that is loaded.

    weights: the folder or file they came from, or `random`. model: the torch module, to count its parameters and name
    its attention backend (transformers' `config._attn_implementation`). revision: a commit; of a folder in a hub's
    cache it is known. compiled: `none`, torch.compile's mode, or `cuda graphs`. more: what else there is to say; keys
    with empty values are left out. `peak_memory_mb` counts the device's memory from the start of the process, on the
    CPU the process's resident size; read again after a session, it has grown.
    """
    torch = require("torch", "local")
    facts = {
        "device": str(at.device),
        "device_name": at.name if at.name != str(at.device) else "",
        "dtype": str(at.dtype).removeprefix("torch."),
        "attention": attention or _attention(model),
        "compiled": compiled,
        "parameters": sum(parameter.numel() for parameter in model.parameters()) if model is not None else 0,
        **_weights(weights),
        "peak_memory_mb": peak_memory_mb(at.device),
        "torch": str(torch.__version__),
        **more,
    }
    if revision:
        facts["revision"] = revision
    return {name: value for name, value in facts.items() if value not in ("", 0, None)}


def peak_memory_mb(device: Any) -> int:
    """The most memory that this process has had on `device`, 10**6 bytes."""
    torch = require("torch", "local")
    kind = torch.device(device).type
    if kind == "cuda":
        return round(int(torch.cuda.max_memory_allocated(device)) / 1e6)
    if kind == "mps":
        return round(int(torch.mps.driver_allocated_memory()) / 1e6)
    import resource  # not on Windows, which has no local models

    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6)


def _weights(weights: Path | str) -> dict[str, str]:
    if weights == RANDOM:
        return {"weights": RANDOM}
    path = Path(weights)
    files = [path] if path.is_file() else sorted(file for pattern in WEIGHTS for file in path.glob(pattern))
    # A hub's cache: models--OWNER--NAME/snapshots/REVISION
    in_hub = path.parent.name == "snapshots"
    name = path.parents[1].name.removeprefix("models--").replace("--", "/") if in_hub else path.name
    marked = (path / RANDOM_MARK).exists() if path.is_dir() else path.with_name(f"{path.name}.{RANDOM_MARK}").exists()
    return {
        "weights": RANDOM if marked else name,
        "revision": path.name if in_hub else "",
        "sha256": sha256_of(files) if files else "",
    }


def _attention(model: Any) -> str:
    return str(getattr(getattr(model, "config", None), "_attn_implementation", None) or "")
