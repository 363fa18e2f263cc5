"""What VocalBench-zh consists of: sizes, and the index ranges that its rules and tables go by.

Sources: query files of snapshot 3524c78; `utils/reasoning.py`, `utils/instruction_full.py`, `utils/robust.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

KNOWLEDGE = ("chinese_knowledge", "foreign_knowledge", "general_knowledge")
SIZES = {
    **dict.fromkeys(KNOWLEDGE, 1000),
    "reasoning": 851,
    "creativity": 240,
    "single_round": 200,
    "multi_round": 400,
    "instruction_following": 1000,
    "emotion": 500,
    "safety": 400,
    "cs_knowledge": 362,
    "cs_knowledge_en": 362,
    "cs_open_ended": 200,
    "robust_clean": 100,
    "robust": 3600,
}
"""Published items of each subset; `robust_clean` repeats even ones of `single_round` and is not in the 11,115."""


class Group(NamedTuple):
    """Items `start` to `stop` (not included) of a query file."""

    name: str
    start: int
    stop: int

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and self.start <= index < self.stop


def _groups(start: int, *sizes: tuple[str, int]) -> tuple[Group, ...]:
    found: list[Group] = []
    for name, size in sizes:
        found.append(Group(name, start, start + size))
        start += size
    return tuple(found)


REASONING = _groups(
    0,
    ("graphological", 50),
    ("anachronisms", 20),
    ("movie_recommendation", 20),
    ("nli", 20),
    ("reading_comprehension", 20),
    ("sequence_understanding", 20),
    ("analogical", 29),
    ("causal", 72),
    ("common_sense", 90),
    ("conflict", 47),
    ("deductive_inductive", 75),
    ("hypothesis", 61),
    ("math", 269),
    ("story", 50),
    ("counter_proposition", 8),
)
CULTURE = tuple(group.name for group in REASONING[:6])
GRADED = ("analogical", "causal", "conflict", "hypothesis", "story")
"""Categories with a grade instead of a verdict; right when it is above 3."""
CREATIVITY = _groups(
    0,
    ("narrative", 40),
    ("argumentative", 40),
    ("descriptive", 30),
    ("role_play", 40),
    ("ancient_appreciation", 35),
    ("ancient_writing", 30),
    ("modern_poem_appreciation", 10),
    ("modern_poem_writing", 15),
)
MULTI_ROUND = _groups(
    0,
    *(("GR", 44), ("IC", 33), ("AR", 42), ("FR", 20), ("MR", 20), ("CC", 20), ("TS", 26)),
    *(("CR", 20), ("SA", 37), ("SI", 39), ("CM", 20), ("PI", 43), ("SC", 36)),
)
INSTRUCTIONS = _groups(
    0,
    *(("repeat", 50), ("emotion", 50), ("speed", 50), ("speed_emotion", 50)),
    *(("num", 50), ("constrain", 50), ("keywords", 50), ("progressive", 50), ("conditional", 50), ("topic_change", 50)),
    *(("spoken_format", 50), ("speaker_tune", 50), ("speaking_style", 50), ("instruction", 50)),
    *(("situation", 100), ("format", 100), ("mandarin_specific", 100)),
)
INSTRUCTION_KINDS = (
    *(Group("paralinguistic", 0, 200), Group("content", 200, 500), Group("style", 500, 700)),
    *(Group("situation", 700, 800), Group("format", 800, 900), Group("mandarin_specific", 900, 1000)),
)
PARALINGUISTIC = INSTRUCTION_KINDS[0]
EMOTIONS = ("angry", "happy", "neutral", "sad", "surprised")
"""In the order of a query's five integers `Score`."""
QUERY_EMOTIONS = _groups(0, *((name, 100) for name in ("angry", "happy", "sad", "surprised", "neutral")))
ROBUST_USED = {
    "white_noise": "robust-white_noise-snr_-5",
    "background_noise": "robust-background_noise-snr_-5",
    "reverberation": "robust-reverberation-rt60_30",
    "far_field": "robust-farfield-filter_400hz",
    "packet_loss": "robust-packet_loss-dropping_0.70",
    "clipping": "robust-distortion-clipping_0.0001",
}
"""The six condition levels in the overall: name in the tables to what stands before the last dash of a Qid."""


def group_of(groups: Sequence[Group], index: int) -> str:
    """Name of the group that holds item `index`; empty for none."""
    return next((group.name for group in groups if index in group), "")
