"""A model folder loaded by funasr (extra `emotion`), quietly."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.core.errors import ConfigError
from harness.engines.clip_engine import EngineSpec
from harness.engines.extras import require
from harness.engines.torch_device import prepare


def load_funasr(folder: Path, spec: EngineSpec) -> Any:
    """funasr's AutoModel of a local folder on `spec.device` (decided, not `auto`); it looks nothing up on a hub.

    Raises PrerequisiteError without funasr, ConfigError for a folder that it cannot load.
    """
    torch = prepare(spec, "emotion")
    with _quiet():
        funasr = require("funasr", "emotion")
        try:
            return funasr.AutoModel(
                model=str(folder),
                device=spec.device,
                ncpu=spec.threads or torch.get_num_threads(),  # it sets torch's threads, to 4 by itself
                disable_update=True,
                disable_pbar=True,
                disable_log=True,
            )
        except (OSError, RuntimeError, KeyError, AttributeError, TypeError, ValueError, AssertionError) as exc:
            raise ConfigError(f"{folder} cannot be loaded by funasr: {exc}") from exc


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
