"""Which engines a run is scored with: the user's choice, opened with their caches in the run directory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Literal

import msgspec

from harness.core.errors import PrerequisiteError
from harness.core.run_directory import RunDirectory
from harness.engines.clip_engine import Kind
from harness.engines.registry import parse_spec
from scoring.benchmarks.benchmark import Stage
from scoring.judge.client import Judge, Usage
from scoring.judge.options import JudgeOptions
from scoring.pipeline.gather import SPEECH, Engines
from scoring.pipeline.score import cache_path
from scoring.speech.stage import SpeechStage
from scoring.stage_cache import StageCache

NONE, RECORDED = "none", "recorded"
DEFAULTS: Mapping[Stage, str] = {"asr": "faster-whisper", "mos": "distillmos", "emotion": NONE}
"""What runs anywhere from pinned packages. emotion2vec's weights come from a hub, so it has to be asked for."""
ASKED_FOR: Mapping[Stage, str] = {
    "asr": "--asr none",
    "mos": "--mos none",
    "emotion": "no emotion engine: choose one with --emotion emotion2vec",
    "judge": "no judge: name one with --judge URL --judge-model NAME",
}
"""Why a stage has no engine when nobody chose one."""


class EngineChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Engine lines without their kind (`faster-whisper:whisper-base`), `none`, or empty for the default; asr knows
    `recorded` as well: what came with imported recordings.

    language: what ASR is told; None lets it decide, which is the published way. workers: processes of an engine on a
    CPU; None for its own choice.
    """

    asr: str = ""
    mos: str = ""
    emotion: str = ""
    language: str | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    workers: int | None = None
    judge: JudgeOptions | None = None

    def line(self, stage: Stage) -> str:
        chosen = {"asr": self.asr, "mos": self.mos, "emotion": self.emotion}[stage]
        return chosen or DEFAULTS[stage]


class OpenEngines:
    """The engines of one scoring; a context manager, as they hold processes, threads and files.

    Leaving it after an error drops what the judge was still asked. Raises ConfigError for an engine that does not
    exist; PrerequisiteError for one that was asked for and cannot run (a default that cannot run is left out, and the
    result says why).
    """

    def __init__(self, choice: EngineChoice, run: RunDirectory) -> None:
        self._choice = choice
        self._run = run
        self._stack = ExitStack()
        self._judge: Judge | None = None

    def __call__(self, needed: frozenset[Stage]) -> Engines:
        """Open what is needed and chosen."""
        missing: dict[Stage, str] = {}
        speech: dict[Stage, SpeechStage] = {}
        recorded = self._choice.asr == RECORDED
        for stage in SPEECH:
            if stage in needed and not (stage == "asr" and recorded):
                opened = self._open(stage)
                if isinstance(opened, SpeechStage):
                    speech[stage] = opened
                else:
                    missing[stage] = opened
        if "judge" in needed:
            if self._choice.judge is None:
                missing["judge"] = ASKED_FOR["judge"]
            else:
                cache = self._cache("judge", self._choice.judge.name)
                self._judge = self._stack.enter_context(Judge(self._choice.judge, cache))
        name = self._choice.judge.name if self._choice.judge else ""
        return Engines(speech=speech, judge=self._judge, judge_name=name, missing=missing, recorded=recorded)

    @property
    def usage(self) -> Usage | None:
        """What the judge was asked, if there is one."""
        return self._judge.usage if self._judge else None

    def _open(self, stage: Kind) -> SpeechStage | str:
        """The stage, or why there is none."""
        line = self._choice.line(stage)
        if line == NONE:
            return ASKED_FOR[stage]
        language = self._choice.language if stage == "asr" else None
        spec = parse_spec(f"{stage}:{line}", language=language, device=self._choice.device)
        try:
            opened = SpeechStage(spec, self._cache(stage, line), workers=self._choice.workers)
        except PrerequisiteError as exc:
            if line == DEFAULTS[stage]:
                return str(exc)
            raise
        return self._stack.enter_context(opened)

    def _cache(self, stage: Stage, engine: str) -> StageCache:
        return self._stack.enter_context(StageCache(cache_path(self._run, stage, engine)))

    def __enter__(self) -> OpenEngines:
        self._stack.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.__exit__(*exc)  # type: ignore[arg-type]
