"""The figures of the last `firstpacket calibrate` on this machine, kept so that every run can carry them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

NAME = "calibration.json"


def calibration_path() -> Path:
    """Where the figures are kept: the user's state directory, or `FIRSTPACKET_STATE`."""
    own = os.environ.get("FIRSTPACKET_STATE")
    return (Path(own) if own else Path(platformdirs.user_state_dir("firstpacket"))) / NAME


def stored_calibration() -> dict[str, Any] | None:
    """The stored figures, or None when this machine was never calibrated (or the file cannot be read)."""
    try:
        return msgspec.json.decode(calibration_path().read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return None


def store_calibration(figures: dict[str, Any]) -> None:
    """Keep `figures` for later runs."""
    path = calibration_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1))
    temporary.replace(path)
