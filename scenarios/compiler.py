"""Compiling: a scenario, clips and a seed become a script, that is events with their samples and drawn delays.

Pure and deterministic. What is only known while the agent speaks is left to `scenarios.director`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import msgspec
import numpy as np

from harness.core.audio import NS_PER_MS, Int16, audio_sha256, float_to_int16, int16_to_float, ms_to_samples
from harness.core.errors import ConfigError
from scenarios.clip import Clip, read_only
from scenarios.impairments.impair import impair
from scenarios.impairments.noise import babble, pink, white
from scenarios.impairments.seeded import generator
from scenarios.impairments.spec import Spec, parse_specs
from scenarios.scenario import Scenario, UserEvent
from scenarios.scenario_file import check_clips

GENERATED_DB = -30.0
"""Level of a generated noise before its gain, dBFS: clearly heard beside bundled speech at -19."""
NOISE_TEXT = "generated"
BABBLE_FROM_S = 0.8
"""Speech that a clip must have to be a voice in a babble, in seconds."""


class ScriptEvent(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One event, ready to be put. clip: at the script's rate, gain and impairments applied. delay_ns: from the anchor
    to the clip's `speech_start`, jitter drawn. speech_at: position of `speech_start` in the user's stream, where it is
    known before the session (None: it hangs on the agent). audio_sha256: of the clip's samples as they are here."""

    plan: UserEvent
    clip: Clip
    delay_ns: int
    speech_at: int | None
    impairment: str = ""
    audio_sha256: str = ""

    @property
    def speech_samples(self) -> int:
        return self.clip.speech_end - self.clip.speech_start


class Script(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A scenario for one session at one rate. Events in the scenario's order."""

    scenario: Scenario
    rate_hz: int
    seed: int
    repeat: int
    events: tuple[ScriptEvent, ...]

    @cached_property
    def static(self) -> Int16:
        """The part that hangs on no agent, mixed, shape (n,): what a peer that never speaks hears before a timeout."""
        placed = [(event, event.speech_at) for event in self.events if event.speech_at is not None]
        starts = [at - event.clip.speech_start for event, at in placed]
        ends = [start + len(event.clip.samples) for start, (event, _) in zip(starts, placed, strict=True)]
        mixed = np.zeros(max(ends, default=0), dtype=np.int32)
        for start, end, (event, _) in zip(starts, ends, placed, strict=True):
            mixed[max(start, 0) : end] += event.clip.samples[max(-start, 0) :]
        return np.clip(mixed, -32768, 32767).astype(np.int16)

    @property
    def cues(self) -> tuple[ScriptEvent, ...]:
        """The events whose place is found during the session."""
        return tuple(event for event in self.events if event.speech_at is None)


def compile_script(
    scenario: Scenario,
    clips: Sequence[Clip],
    *,
    rate_hz: int,
    seed: int = 0,
    repeat: int = 0,
    impairments: Sequence[str] = (),
) -> Script:
    """The script of `scenario` at the peer's input rate.

    clips: of the pack, at any rate; each is resampled as a whole. impairments: specs that are applied to `say` and
    `other_speaker` after the scenario's own, at `rate_hz`, so that a ratio holds in what the peer hears. Delays and
    noises are drawn by generators that are named after seed, scenario, repeat and event: nothing else moves them.
    Raises ConfigError with the place in the file: a missing clip, a speech that overlaps more than what it is after.
    """
    check_clips(scenario, {clip.id for clip in clips})
    by_id = {clip.id: clip for clip in clips}
    specs = [spec for text in (*scenario.impairments, *impairments) for spec in parse_specs(text)]
    events: dict[str, ScriptEvent] = {}
    for plan in scenario.events:
        try:
            event = _event(plan, by_id, clips, rate_hz, f"{seed}/{scenario.id}/{repeat}/{plan.id}", specs)
        except ConfigError as exc:
            raise ConfigError(f"{plan.where}: {exc}") from exc
        events[plan.id] = msgspec.structs.replace(event, speech_at=_place(event, events.get(plan.after), rate_hz))
    _check_one_mouth([event for event in events.values() if event.plan.source == "say"])
    return Script(scenario=scenario, rate_hz=rate_hz, seed=seed, repeat=repeat, events=tuple(events.values()))


def _event(
    plan: UserEvent, by_id: dict[str, Clip], clips: Sequence[Clip], rate_hz: int, name: str, specs: Sequence[Spec]
) -> ScriptEvent:
    low, high = plan.jitter_ms
    jitter_ns = int(generator("jitter", name).integers(low * NS_PER_MS, high * NS_PER_MS, endpoint=True))
    clip = _generated(plan, clips, rate_hz, name) if plan.generated else by_id[plan.clip].at_rate(rate_hz)
    clip = _louder(clip, plan.gain_db)
    impaired = impair(clip, () if plan.source == "noise" else specs, seed=name, voices=_voices(clips, rate_hz, specs))
    return ScriptEvent(
        plan=plan,
        clip=impaired.clip,
        delay_ns=plan.delay_ms * NS_PER_MS + jitter_ns,
        speech_at=None,
        impairment=impaired.applied,
        audio_sha256=audio_sha256(impaired.clip.samples),
    )


def _place(event: ScriptEvent, after: ScriptEvent | None, rate_hz: int) -> int | None:
    """Position of the speech in the stream, if it is known already."""
    plan = event.plan
    delay = round(event.delay_ns * rate_hz / 1_000_000_000)
    if plan.at == "session_start":
        return delay
    if plan.at == "user_end" and after is not None:
        if -delay > after.speech_samples:
            longest = after.speech_samples * 1000 // rate_hz
            raise ConfigError(f"{plan.where}: delay_ms goes back before {after.plan.id!r} begins ({longest} ms long)")
        return None if after.speech_at is None else after.speech_at + after.speech_samples + delay
    return None


def _check_one_mouth(said: Sequence[ScriptEvent]) -> None:
    """What is found to overlap only during the session waits there until the user has finished."""
    placed = sorted(
        ((event.speech_at, event) for event in said if event.speech_at is not None), key=lambda each: each[0]
    )
    for (at, earlier), (then, later) in pairwise(placed):
        if then < at + earlier.speech_samples:
            raise ConfigError(
                f"{later.plan.where}: {later.plan.id!r} begins while the user still says {earlier.plan.id!r}"
            )


def _generated(plan: UserEvent, clips: Sequence[Clip], rate_hz: int, name: str) -> Clip:
    n = ms_to_samples(plan.duration_ms, rate_hz)
    random = generator("noise", name)
    if plan.clip == "babble":
        noise = babble(n, rate_hz, _spoken(clips), random)
    else:
        noise = pink(n, rate_hz, random) if plan.clip == "pink" else white(n, random)
    samples = read_only(float_to_int16(noise * 10.0 ** (GENERATED_DB / 20.0)))
    return Clip(
        id=plan.clip,
        text="",
        language="",
        voice="",
        sha256=audio_sha256(samples),
        rate_hz=rate_hz,
        samples=samples,
        speech_start=0,
        speech_end=n,
        source=NOISE_TEXT,
        annotator=NOISE_TEXT,
    )


def _louder(clip: Clip, gain_db: float) -> Clip:
    if gain_db == 0.0:
        return clip
    factor = 10.0 ** (gain_db / 20.0)
    samples = read_only(float_to_int16(int16_to_float(clip.samples).astype(np.float64) * factor))
    return msgspec.structs.replace(clip, samples=samples, sha256=audio_sha256(samples))


def _voices(clips: Sequence[Clip], rate_hz: int, specs: Sequence[Spec]) -> Sequence[Clip]:
    return _spoken(clips) if any(spec.variant == "babble" for spec in specs) else ()


def _spoken(clips: Sequence[Clip]) -> list[Clip]:
    """Clips that a babble can be mixed from: words, not a sound (whose text stands in brackets) nor a mere "mm-hm"."""
    return [
        clip
        for clip in clips
        if not clip.text.startswith("[") and clip.speech_end - clip.speech_start >= BABBLE_FROM_S * clip.rate_hz
    ]
