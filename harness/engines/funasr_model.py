"""A model folder loaded by funasr (extra `emotion`), quietly."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.core.errors import ConfigError
from harness.engines.batches import first_line
from harness.engines.checkpoint import read_tensors
from harness.engines.clip_engine import EngineSpec
from harness.engines.extras import require
from harness.engines.torch_device import prepare

_PREFIXES = ("", "d2v_model.", "module.")
"""What checkpoints put before names: emotion2vec's trainer, and torch's for several GPUs."""


def load_funasr(folder: Path, spec: EngineSpec) -> Any:
    """funasr's AutoModel of a local folder on `spec.device` (decided, not `auto`); it looks nothing up on a hub.

    Raises PrerequisiteError without funasr, ConfigError for a folder that it cannot load.
    """
    torch = prepare(spec, "emotion")
    with _quiet():
        funasr = require("funasr", "emotion")
        try:
            loaded = funasr.AutoModel(
                model=str(folder),
                device=spec.device,
                ncpu=spec.threads or torch.get_num_threads(),  # it sets torch's threads, to 4 by itself
                disable_update=True,
                disable_pbar=True,
                disable_log=True,
            )
        except (OSError, RuntimeError, KeyError, AttributeError, TypeError, ValueError, AssertionError) as exc:
            raise ConfigError(f"{folder} cannot be loaded by funasr: {first_line(exc)}") from exc
    _check(loaded.model, folder)
    return loaded


def _check(model: Any, folder: Path) -> None:
    """funasr leaves at random what the checkpoint lacks or has in another shape, and only prints so."""
    held = read_tensors(folder / "model.pt", extra="emotion")
    for name, value in model.state_dict().items():
        found = next((held[prefix + name] for prefix in _PREFIXES if prefix + name in held), None)
        if found is None or found.shape != value.shape:
            shape = "nothing" if found is None else tuple(found.shape)
            raise ConfigError(f"{folder}: model.pt has {shape} for {name} where config.yaml says {tuple(value.shape)}")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """funasr prints on import, and makes itself heard in the root logger."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(level)
