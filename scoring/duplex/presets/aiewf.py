"""aiewf-eval: voice to voice on the stereo recording.

voice_to_voice_ms = start of the first Silero span of the agent that starts after the user's - end of the user's last
Silero span in the turn, per turn; mean. Both lie on Silero's grid of 32 ms, so that a figure is right to about that.

The user's span is that which overlaps the turn last; the agent's must start before the next turn. An agent that is
already speaking when the user ends gives nothing.
Source: aiewf-eval, `analyze_ttfb_silero.py`; timing definitions, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.audio import NS_PER_MS
from harness.core.scorer import Unscored
from scoring.duplex.presets.material import NO_CONVERSATION, Material
from scoring.duplex.presets.preset import Figure, Measured, Preset, Tally
from scoring.duplex.presets.voices import Voices
from scoring.duplex.spans import Span, clip

FIGURES = ("voice_to_voice_ms",)
NOT_HEARD = Unscored(reason="Silero hears no user speech in this turn")


def compute(materials: Sequence[Material]) -> Measured:
    tally = Tally(FIGURES)
    notes: list[str] = []
    for material in materials:
        voices, turns = material.voices, material.user_turns
        if isinstance(voices, Unscored) or material.conversation is None:
            absent = voices if isinstance(voices, Unscored) else NO_CONVERSATION
            tally.add("voice_to_voice_ms", absent, material=material)
            continue
        notes.append(f"spans: {voices.detector}")
        for turn, after in zip(turns, [*(t.start_ns for t in turns[1:]), None], strict=False):
            value = _latency_ms(voices, turn, after)
            tally.add("voice_to_voice_ms", value, material=material, event=turn.event, at_ns=turn.end_ns)
    return tally.measured(notes)


def _latency_ms(voices: Voices, turn: Span, next_turn_ns: int | None) -> Figure:
    end_ns = user_end_ns(voices, turn)
    if isinstance(end_ns, Unscored):
        return end_ns
    start_ns = next((span.start_ns for span in voices.agent if span.start_ns > end_ns), None)
    if start_ns is None or (next_turn_ns is not None and start_ns >= next_turn_ns):
        return Unscored(reason="the agent does not start to speak between this turn and the next")
    return (start_ns - end_ns) / NS_PER_MS


def user_end_ns(voices: Voices, turn: Span) -> int | Unscored:
    """Where Silero hears the user end: of its last span that overlaps the turn."""
    spans = [span for span in voices.user if clip(span, turn.start_ns, turn.end_ns) is not None]
    return max(span.end_ns for span in spans) if spans else NOT_HEARD


PRESET = Preset(
    name="aiewf",
    source="aiewf-eval",
    says=(
        "From where Silero hears the user end to where it hears the agent begin, on the heard recording: what "
        "a listener waits, but on a 32 ms grid and by a detector whose onsets are its own."
    ),
    figures=FIGURES,
    compute=compute,
)
