"""Small data sets and model outputs, written for a test as the benchmarks lay them out."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from harness.core.audio import Int16
from scenarios.benchmarks.catalogue import VOCALBENCH_ZH, Catalogue
from scenarios.benchmarks.dataset import Choice, Dataset, open_dataset

RATE = 16_000
ROUNDS = [{"from": "user", "value": "小明比小红高。"}, {"from": "assistant", "value": "好的。"}]


def row(qid: str, audio: str, **more: Any) -> dict[str, Any]:
    return {"Set": "s", "Qid": qid, "Audio": audio, "Question": f"问题 {qid}", "Answer": "答案", **more}


KNOWLEDGE = [row(f"chinese_knowledge-{k:04d}", f"knowledge/chinese/{k:04d}.wav") for k in range(3)]
ROUND = [row("multi_round-000", "multi_round/000.wav", Context=ROUNDS)]
CLEAN = [row(f"robust_clean-{k:03d}", f"single_round/{2 * k:03d}.wav") for k in range(3)]
ROBUST = [
    row(f"robust-{category}-{level}-{k:03d}", f"robust/{category}/{level}/{k:03d}.wav", Category=category, Level=level)
    for category, level in (("background_noise", "snr_-5"), ("white_noise", "snr_5"))
    for k in range(3)
]


def tone(seconds: float = 0.2, hz: float = 440.0) -> Int16:
    return (8000 * np.sin(2 * np.pi * hz * np.arange(round(seconds * RATE)) / RATE)).astype(np.int16)


def write_rows(root: Path, **subsets: list[dict[str, Any]]) -> Path:
    (root / "json").mkdir(parents=True, exist_ok=True)
    for name, rows in subsets.items():
        (root / "json" / f"{name}.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return root


def write_sound(path: Path, samples: Int16 | None = None, rate_hz: int = RATE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, tone() if samples is None else samples, rate_hz, subtype="PCM_16")
    return path


def write_sounds(root: Path, *rows: dict[str, Any]) -> Path:
    for each in rows:
        write_sound(root / each["Audio"])
    return root


def write_parquet(path: Path, rows: list[dict[str, Any]], *, group: int = 2) -> Path:
    """As the hub stores audio: a struct of the file's bytes and its name."""
    import pyarrow
    from pyarrow import parquet

    file = io.BytesIO()
    soundfile.write(file, tone(), RATE, format="WAV", subtype="PCM_16")
    packed = [
        {key: value for key, value in each.items() if key != "Audio"}
        | {"audio": {"bytes": file.getvalue(), "path": Path(each["Audio"]).name}}
        for each in rows
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(packed), path, row_group_size=group)
    return path


def opened(root: Path, *subsets: str, catalogue: Catalogue = VOCALBENCH_ZH, **choice: Any) -> Dataset:
    return open_dataset(root, catalogue, Choice(subsets=subsets, **choice))
