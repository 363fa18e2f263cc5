"""The tensors of a torch checkpoint, read without running code of the file or needing the packages that made it."""

from __future__ import annotations

import pickle
import types
from pathlib import Path
from typing import Any

from harness.engines.extras import require

_HOLDERS = ("state_dict", "model_state_dict", "model")
"""Where Lightning, openai-whisper and fairseq keep the weights."""


def read_tensors(path: Path, *, extra: str = "quality") -> dict[str, Any]:
    """Name to float32 tensor on the CPU. Raises what torch and pickle raise for a file that is no checkpoint."""
    reader = types.SimpleNamespace(
        Unpickler=_TensorsOnly, load=lambda file, **how: _TensorsOnly(file, **how).load(), __name__="tensors"
    )
    torch = require("torch", extra)
    held = torch.load(path, map_location="cpu", weights_only=False, pickle_module=reader)
    state = next((held[name] for name in _HOLDERS if isinstance(held.get(name), dict)), held)
    return {name: value.detach().float() for name, value in state.items() if isinstance(value, torch.Tensor)}


class _TensorsOnly(pickle.Unpickler):
    """Makes tensors and plain containers; everything else becomes a `_Stub`, so no code of the file runs."""

    def find_class(self, module: str, name: str) -> Any:
        wanted = (
            (module == "collections" and name == "OrderedDict")
            or (module == "torch._utils" and name in {"_rebuild_tensor_v2", "_rebuild_parameter"})
            or (module == "torch" and name.endswith("Storage"))
        )
        return super().find_class(module, name) if wanted else _Stub


class _Stub:
    """Stands in for a class or function of a package that is not wanted here, such as a trainer's settings."""

    def __new__(cls, *args: object, **kwargs: object) -> _Stub:
        return super().__new__(cls)

    def __init__(self, *args: object, **kwargs: object) -> None: ...

    def __call__(self, *args: object, **kwargs: object) -> _Stub:
        return self

    def __setstate__(self, state: object) -> None: ...

    def __setitem__(self, key: object, value: object) -> None: ...

    def append(self, value: object) -> None: ...

    def extend(self, values: object) -> None: ...
