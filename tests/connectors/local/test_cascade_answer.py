"""Threads and queue of one answer of the cascade, with engines made by hand."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from connectors.local.model import Audio, Mark, Pause, Text, UserTranscript
from connectors.local.models.cascade.answer import LOOK_S, STAGES, Answer
from tests.connectors.local.cascade_stub import FakeLlm, FakeVoice

TOKENS = ["It is", " sunny.", " Take a", " hat."]


def answer(llm, voice, hear=lambda: "How is it?", busy=None, **options):
    opening = [{"role": "system", "content": "Be short."}]
    busy = busy or (threading.Lock(), threading.Lock())
    return Answer(hear, llm, voice, opening, voice_name=None, busy=busy, **options)


def shown(outputs):
    """Marks by name, texts, transcripts and a word for each packet, without the pauses."""
    words = {
        Audio: lambda o: "packet",
        Mark: lambda o: o.name,
        Text: lambda o: o.text,
        UserTranscript: lambda o: o.text,
    }
    return [words[type(output)](output) for output in outputs if not isinstance(output, Pause)]


def test_stages_come_in_order_and_text_before_its_sound() -> None:
    llm, voice = FakeLlm(TOKENS), FakeVoice()
    made = shown(answer(llm, voice).outputs())
    assert made[:4] == ["asr", "How is it?", "first_token", "It is"]
    assert [each for each in made if each in STAGES] == list(STAGES)
    assert [each for each in made if each in TOKENS] == TOKENS
    assert made.count("packet") == 2
    assert voice.said == [("It is sunny.", "en"), ("Take a hat.", "en")]
    assert llm.messages == [[{"role": "system", "content": "Be short."}, {"role": "user", "content": "How is it?"}]]


def test_the_first_clause_is_heard_before_the_last_token_exists() -> None:
    llm = FakeLlm(TOKENS, hold=3)
    outputs = answer(llm, FakeVoice()).outputs()
    made = []
    while "packet" not in made:
        made += shown([next(outputs)])
    assert llm.given == 3
    llm.release.set()
    assert shown(outputs)[0] == " hat."


@pytest.mark.parametrize("where", ["asr", "llm", "tts"])
def test_a_step_is_short_whatever_an_engine_does_and_closing_stops_it(where: str) -> None:
    held = threading.Event()
    llm, voice = FakeLlm(TOKENS, hold=1 if where == "llm" else None), FakeVoice(5.0 if where == "tts" else 0.0)

    def hear() -> str:
        if where == "asr":
            held.wait(5.0)
        return "How is it?"

    outputs = answer(llm, voice, hear).outputs()
    steps = []
    while len(steps) < 20:
        began = time.monotonic()
        next(outputs)
        steps.append(time.monotonic() - began)
    outputs.close()
    held.set()
    llm.release.set()
    # The engine would take five seconds; a step is 20 ms and what a busy machine adds.
    assert sorted(steps)[len(steps) // 2] < 5 * LOOK_S
    assert sum(steps) < 4.0


def test_an_abandoned_answer_is_out_of_the_engines_before_the_next_begins() -> None:
    busy = (threading.Lock(), threading.Lock())
    llm = FakeLlm(TOKENS, hold=1)
    first = answer(llm, FakeVoice(), busy=busy).outputs()
    while "It is" not in shown([next(first)]):
        pass
    first.close()
    second_llm = FakeLlm(["Yes."])
    second = answer(second_llm, FakeVoice(), busy=busy).outputs()
    assert shown([next(second), next(second)]) == []
    llm.release.set()
    assert shown(second)[-1] == "packet"
    assert llm.given == 1


@pytest.mark.parametrize("where", ["asr", "llm", "tts"])
def test_what_an_engine_raises_comes_out_of_the_answer(where: str) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError(f"{where} broke")

    llm, voice = FakeLlm(TOKENS), FakeVoice()
    if where == "llm":
        llm.stream = fail  # type: ignore[assignment, method-assign]
    if where == "tts":
        voice.speak = fail  # type: ignore[assignment, method-assign]
    with pytest.raises(RuntimeError, match=f"{where} broke"):
        list(answer(llm, voice, fail if where == "asr" else lambda: "So?").outputs())


def test_a_failure_is_never_overtaken_by_the_end_of_the_answer() -> None:
    """The voice has nothing to say then, and ends the answer from its own thread."""

    def fail() -> str:
        raise RuntimeError("asr broke")

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(150):
            with pytest.raises(RuntimeError, match="asr broke"):
                list(answer(FakeLlm(TOKENS), FakeVoice(), fail).outputs())
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize(
    ("where", "said"), [("asr", "the recognizer"), ("llm", "the language model"), ("tts", "the voice")]
)
def test_an_engine_that_hangs_ends_the_answer(where: str, said: str) -> None:
    held = threading.Event()
    llm, voice = FakeLlm(TOKENS, hold=1 if where == "llm" else None), FakeVoice(5.0 if where == "tts" else 0.0)

    def hear() -> str:
        if where == "asr":
            held.wait(5.0)
        return "How is it?"

    with pytest.raises(TimeoutError, match=f"{said} gave nothing for 0.1 s"):
        list(answer(llm, voice, hear, silent_s=0.1).outputs())
    held.set()
    llm.release.set()


def test_a_turn_without_words_is_answered_by_nothing() -> None:
    llm = FakeLlm(TOKENS)
    assert shown(answer(llm, FakeVoice(), lambda: "").outputs()) == ["asr", ""]
    assert llm.messages == []


def test_chinese_answers_have_the_chinese_voice_even_in_latin_letters() -> None:
    voice = FakeVoice()
    shown(answer(FakeLlm(["我用它写代码。", "Python 3.", " OK."]), voice).outputs())
    assert [language for _, language in voice.said] == ["zh", "zh", "zh"]
