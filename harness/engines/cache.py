"""The user's cache folder and atomic writes into it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

CACHE_VARIABLE = "FIRSTPACKET_CACHE"
"""Environment variable that moves the cache."""


def cache_dir() -> Path:
    """The cache folder of this user, not necessarily there yet; FIRSTPACKET_CACHE overrides it."""
    override = os.environ.get(CACHE_VARIABLE)
    if override:
        return Path(override).expanduser()
    try:
        import platformdirs
    except ImportError:  # in the worker of a local model that runs under another Python
        return Path.home() / ".cache" / "firstpacket"
    return Path(platformdirs.user_cache_dir("firstpacket"))


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a reader sees the old file or the whole new one; parents are made.

    Raises OSError as the file system gives it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
