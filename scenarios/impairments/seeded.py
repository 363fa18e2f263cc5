"""Random numbers that follow from names: the same names give the same numbers on every machine and in any order."""

from __future__ import annotations

import hashlib
import json

import numpy as np


def generator(*names: str | int) -> np.random.Generator:
    """A generator of its own for `names` (PCG64, seeded by the first 128 bits of the sha256 of their JSON list)."""
    digest = hashlib.sha256(json.dumps(names).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "big")))
