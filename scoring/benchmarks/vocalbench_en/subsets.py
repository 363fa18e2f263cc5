"""What VocalBench consists of: sizes, the index ranges of its instruction rules, the levels and clean items of its
robustness figure.

Sources: query files of snapshot 5e9cce0; `utils/read_score_instruction.py`, `utils/read_score_robust.py`,
`utils/read_score_robust_clean.py`.
"""

from __future__ import annotations

import re

SIZES = {
    "knowledge": 2000,
    "reasoning": 1000,
    "creativity": 400,
    "single_round": 200,
    "multi_round": 400,
    "instruction_following": 900,
    "emotion": 500,
    "safety": 400,
    "robust_clean": 100,
    "robust": 3600,
}
"""Published items of each subset; `robust_clean` repeats half of `single_round` and is not in the 9,400."""
REPEAT, WITH_EMOTION, WITH_SPEED, WITH_BOTH = range(50), range(50, 100), range(100, 150), range(150, 200)
"""Instruction items whose sentence must be said again."""
PARALINGUISTIC = range(200)
SPOKEN_FORMAT = range(500, 550)
"""The only instruction items whose speech is judged instead of the text."""
LEVELS = {
    "white_noise": "robust-white_noise-snr_-5",
    "background_noise": "robust-background_noise-snr_-5",
    "reverberation": "robust-reverberation-rt60_30",
    "far_field": "robust-farfield-filter_400hz",
    "packet_loss": "robust-packet_loss-dropping_70",
    "clipping": "robust-distortion-clipping_0.0001",
}
"""The six condition levels in the overall: name in the tables to what stands before the last dash of a Qid."""
CLEAN = (
    *(0, 3, 5, 6, 7, 10, 11, 13, 17, 18, 20, 24, 26, 29, 32, 38, 39, 40, 42, 43, 44, 45, 46, 48, 53),
    *(55, 56, 57, 58, 59, 62, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 75, 76, 79, 81, 84, 85, 87, 92, 93),
    *(96, 98, 104, 105, 107, 108, 111, 113, 114, 118, 119, 122, 123, 124, 125, 130, 131, 136, 138, 141),
    *(143, 145, 146, 149, 152, 153, 154, 155, 156, 158, 161, 166, 168, 169, 170, 171, 174, 175, 176, 179),
    *(186, 187, 188, 189, 190, 191, 193, 195, 197, 199),
)
"""Number of a robust query to the index of the same query in `single_round` (the original joins them by answer)."""
_FRACTION = re.compile(r"dropping_0\.([1-9])0$")


def level_of(qid: str) -> str:
    """What stands before the last dash of a robust Qid, lost packets in percent (VocalBench-zh writes 0.70)."""
    return _FRACTION.sub(r"dropping_\g<1>0", qid.rpartition("-")[0])
