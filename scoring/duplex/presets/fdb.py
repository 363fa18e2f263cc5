"""Full-Duplex-Bench, v1 and v1.5, on a recording with any number of turns.

v1 works on files with one turn each; here every user turn is such a file: it lasts to the next turn's start, and the
words that start in it (for an interruption: from its end on, as their crop does) are the answer.

    v1_turn_tor, v1_turn_latency_s              turns that begin while the agent is silent
    v1_interrupt_tor, v1_interrupt_latency_s    turns that begin while it speaks (pauses of 0.5 s included)
    v1_pause_tor                                turns of a category with "pause": words that start before the turn ends
    v1_backchannel_tor, _per_s, _jsd            Silero segments of the agent that start inside a user turn
    v15_stop_s, v15_response_s                  Silero spans of both channels, joined; see `fdb_spans`

TOR is the share of turns taken, latency a mean over taken turns with negatives clamped to 0. Word times come from
whichever recogniser is at hand and is named: not comparable with published figures unless it is the same one; a
recogniser's first word may be hundreds of ms off the sound. `_jsd` is the distance to when people backchannel and needs
their distribution, which their data has.
Source: Full-Duplex-Bench v1 (arXiv 2503.04721), v1.5 (arXiv 2507.23159); timing definitions, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.audio import NS_PER_S
from harness.core.scorer import Unscored
from scoring.duplex.presets import fdb_spans, fdb_words
from scoring.duplex.presets.material import NO_CONVERSATION, Material
from scoring.duplex.presets.preset import Measured, Preset, Tally
from scoring.duplex.presets.voices import Voices
from scoring.duplex.presets.words import Word, Words
from scoring.duplex.spans import UserSpan, merge

FIGURES = (
    "v1_turn_tor",
    "v1_turn_latency_s",
    "v1_interrupt_tor",
    "v1_interrupt_latency_s",
    "v1_pause_tor",
    "v1_backchannel_tor",
    "v1_backchannel_per_s",
    "v1_backchannel_jsd",
    "v15_stop_s",
    "v15_response_s",
)
NO_DISTRIBUTION = Unscored(reason="needs the distribution of people's backchannels")
NOT_TAKEN = Unscored(reason="the turn was not taken")


def compute(materials: Sequence[Material]) -> Measured:
    tally = Tally(FIGURES)
    notes: list[str] = []
    for material in materials:
        if isinstance(material.words, Words):
            notes.append(f"words: {material.words.asr}")
        if isinstance(material.voices, Voices):
            notes.append(f"segments: {material.voices.detector}")
        if material.conversation is None:
            for figure in FIGURES[:8]:
                tally.add(figure, NO_CONVERSATION, material=material)
        for index, turn in enumerate(material.user_turns):
            _turn(tally, material, index, turn)
            _backchannels(tally, material, turn)
        _timing(tally, material)
    return tally.measured(notes)


def _turn(tally: Tally, material: Material, index: int, turn: UserSpan) -> None:
    conversation = material.conversation
    if conversation is None:
        return
    interrupts = any(span.holds(turn.start_ns) for span in merge(conversation.agent, fdb_spans.AGENT_GAP_NS))
    kind = "interrupt" if interrupts else "turn"
    words = material.words
    tor = f"v1_{kind}_tor"
    if isinstance(words, Unscored):
        tally.add(tor, words, material=material)
        tally.add(f"v1_{kind}_latency_s", words, material=material)
        return
    begin_ns = turn.end_ns if interrupts else turn.start_ns if index else min(conversation.begin_ns, turn.start_ns)
    after = material.user_turns[index + 1].start_ns if index + 1 < len(material.user_turns) else None
    said = _starting(words, begin_ns, after)
    taken = fdb_words.takes_turn(said)
    latency = fdb_words.latency_s(said, turn.end_ns) if taken else NOT_TAKEN
    tally.add(tor, float(taken), material=material, event=turn.event, at_ns=turn.end_ns)
    tally.add(f"v1_{kind}_latency_s", latency, material=material, event=turn.event, at_ns=turn.end_ns)
    if "pause" in turn.category:
        inside = fdb_words.takes_turn(_starting(words, turn.start_ns, turn.end_ns))
        tally.add("v1_pause_tor", float(inside), material=material, event=turn.event, at_ns=turn.start_ns)


def _backchannels(tally: Tally, material: Material, turn: UserSpan) -> None:
    names = ("v1_backchannel_tor", "v1_backchannel_per_s", "v1_backchannel_jsd")
    voices, words = material.voices, material.words
    if isinstance(voices, Unscored):
        for name in names:
            tally.add(name, voices, material=material)
        return
    segments = [span for span in voices.agent if turn.holds(span.start_ns)]
    tor = words if isinstance(words, Unscored) else float(fdb_words.takes_over(segments, words.words))
    rate = len(fdb_words.considered(segments)) * NS_PER_S / turn.length_ns
    people = material.backchannels
    distance = fdb_words.timing_distance(segments, turn, people) if people else NO_DISTRIBUTION
    for name, value in zip(names, (tor, rate, distance), strict=True):
        tally.add(name, value, material=material, event=turn.event, at_ns=turn.start_ns)


def _timing(tally: Tally, material: Material) -> None:
    voices = material.voices
    if isinstance(voices, Unscored):
        tally.add("v15_stop_s", voices, material=material)
        tally.add("v15_response_s", voices, material=material)
        return
    for figure, find in (("v15_stop_s", fdb_spans.stops), ("v15_response_s", fdb_spans.responses)):
        for span in find(voices.user, voices.agent):
            tally.add(figure, span.length_ns / NS_PER_S, material=material, at_ns=span.start_ns)


def _starting(words: Words, begin_ns: int, end_ns: int | None) -> list[Word]:
    return [word for word in words.words if begin_ns <= word.start_ns and (end_ns is None or word.start_ns < end_ns)]


PRESET = Preset(
    name="fdb",
    source="Full-Duplex-Bench v1 and v1.5",
    says=(
        "v1 waits for the first recognised word, so its latency moves with the recogniser and an early agent counts as "
        "0 s; v1.5 joins Silero spans across half a second and calls every overlap a stop, whoever stopped."
    ),
    figures=FIGURES,
    compute=compute,
)
