"""One answer to be heard: what the speech stages need to know of it before it is read."""

from __future__ import annotations

from typing import NamedTuple

from harness.engines.clip_engine import Load


class Answer(NamedTuple):
    """key: whatever the caller finds it again by. sha256: of its sound (samples and rate), the cache's key. seconds:
    its length. load: reads it; an error that it raises becomes this answer's reason, not the run's end."""

    key: str
    sha256: str
    seconds: float
    load: Load
