"""Scoring engines by name: `asr:faster-whisper:whisper-base` -> `EngineSpec` -> engine."""

from __future__ import annotations

import importlib
from typing import Any, Literal, cast, get_args

from harness.core.errors import ConfigError, nearest
from harness.engines.clip_engine import ClipEngine, EngineSpec, Kind

ENGINES: dict[Kind, dict[str, tuple[str, str]]] = {
    "asr": {
        "faster-whisper": ("harness.engines.asr_faster_whisper", "FasterWhisperBatch"),
        "transformers": ("harness.engines.asr_transformers", "TransformersWhisper"),
        "openai-whisper": ("harness.engines.asr_openai_whisper", "OpenAIWhisper"),
        "paraformer": ("harness.engines.asr_paraformer", "Paraformer"),
    },
    "mos": {
        "distillmos": ("harness.engines.quality_distillmos", "DistillMOS"),
        "dnsmos": ("harness.engines.quality_dnsmos", "DNSMOS"),
        "utmos22": ("harness.engines.quality_utmos22", "UTMOS22Strong"),
    },
    "emotion": {"emotion2vec": ("harness.engines.emotion2vec", "Emotion2vec")},
}
"""Kind, then name, to module and class; a module is imported when its engine is asked for. A name with dots is the
import path of a class of one's own, made like these from an `EngineSpec`."""


def parse_spec(
    text: str, *, language: str | None = None, device: Literal["auto", "cpu", "cuda"] = "auto", threads: int = 0
) -> EngineSpec:
    """`KIND:ENGINE[:MODEL]` as a spec; MODEL may hold further colons. Raises ConfigError naming the nearest."""
    kind, _, rest = text.partition(":")
    name, _, model = rest.partition(":")
    if kind not in get_args(Kind):
        raise ConfigError(f"{text}: no such kind of engine as {kind!r}; {nearest(kind, get_args(Kind))}")
    known = ENGINES[cast(Kind, kind)]
    if name not in known and "." not in name:
        raise ConfigError(f"{text}: no such engine as {name!r}; {nearest(name, known)}")
    return EngineSpec(
        kind=cast(Kind, kind), engine=name, model=model, language=language, device=device, threads=threads
    )


def make_engine(spec: EngineSpec) -> ClipEngine[Any]:
    """The engine of `spec`, not loaded yet. Raises PrerequisiteError naming what to install, ConfigError for a model
    that this engine cannot use."""
    own, _, own_name = spec.engine.rpartition(".")
    module, name = ENGINES[spec.kind].get(spec.engine, (own, own_name))
    try:
        made = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as exc:
        raise ConfigError(f"{spec.kind}:{spec.engine}: no such engine ({exc})") from exc
    engine: ClipEngine[Any] = made(spec)
    return engine
