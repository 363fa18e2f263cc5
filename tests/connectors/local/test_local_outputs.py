"""What a model declares and yields is checked where it runs, and a wrong type is told in the model's own terms."""

from __future__ import annotations

import numpy as np
import pytest

from connectors.local.model import (
    Audio,
    Declaration,
    Done,
    LocalModel,
    Mark,
    Pause,
    Text,
    UserSpeechStarted,
    UserTranscript,
)
from connectors.local.outputs import as_int16, checked, declared, facts_of
from harness.core.errors import ConfigError


class Model(LocalModel):
    def __init__(self, declaration=None, facts=None):
        self._declaration, self._facts = declaration, facts

    @property
    def declaration(self):
        return self._declaration

    @property
    def facts(self):
        return self._facts

    def push_audio(self, pcm):
        return None


@pytest.mark.parametrize(
    "output",
    [
        Text("a"),
        Text("a", 5),
        Audio(np.zeros(4, dtype=np.int16), 5),
        UserSpeechStarted(),
        UserTranscript("a"),
        Mark("asr"),
        Pause(0),
        Done({"tokens": 3}),
    ],
)
def test_what_is_right_passes(output):
    assert checked(output) is output


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (Text(5), "a Text with a wrong value: Expected `str`, got `int`"),
        (Text("a", 1.5), "produced_ns"),
        (Text("a", np.int64(5)), "a Text with a wrong value"),
        (Audio(np.zeros(4), 1.5), "produced_ns=1.5, it must be an int"),
        (UserTranscript(None), "a UserTranscript with a wrong value: Expected `str`, got `null`"),
        (UserSpeechStarted(1.5), "audio_ms"),
        (Pause("soon"), "until_ns"),
        (Done({"tokens": "3"}), "usage"),
        ("words", "yielded a str where none belongs"),
        (None, "yielded a NoneType where none belongs"),
    ],
)
def test_what_is_wrong_is_told(output, said):
    with pytest.raises(TypeError) as told:
        checked(output)
    assert said in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Declaration(output_rate_hz=24), "output_rate_hz=24, which is no sample rate"),
        (lambda: Declaration(input_rate_hz="24000"), "input_rate_hz='24000', which is no sample rate"),
        (lambda: Declaration(output_rate_hz=24e3), "output_rate_hz=24000.0, which is no sample rate"),
        (lambda: Declaration(unit_samples=-5), "unit_samples=-5, it cannot be negative"),
        (lambda: Declaration(step_limit_s=0), "step_limit_s=0, it must be above 0"),
        (lambda: Declaration(load_limit_s=float("nan")), "load_limit_s=nan, it must be above 0"),
        (lambda: Declaration(sessions=0), "sessions=0"),
        (lambda: Declaration(turns=()), "no turn mode"),
        (lambda: Declaration(turns="vad"), "Expected `array`, got `str` - at `$.turns`"),
        (lambda: Declaration(pacing="fast"), "Invalid enum value 'fast' - at `$.pacing`"),
        (lambda: None, "Model.declaration gives a NoneType, not a Declaration"),
    ],
)
def test_a_declaration_that_cannot_be_is_one_line(made, said):
    with pytest.raises(ConfigError) as told:
        declared(Model(made()))
    assert said in str(told.value)


def test_a_declaration_and_facts_come_through():
    assert declared(Model(Declaration(sessions=3))).sessions == 3
    assert facts_of(Model(facts={"dtype": "bfloat16", "blocks": (1, 2)})) == {"dtype": "bfloat16", "blocks": (1, 2)}


@pytest.mark.parametrize("facts", [None, {"dtype": np.dtype("int16")}])
def test_facts_that_no_header_holds_say_that_they_are_facts(facts):
    with pytest.raises(TypeError, match="the model's facts: "):
        facts_of(Model(facts=facts))


def test_sound_is_mono_int16_or_float():
    assert as_int16(Audio(np.array([0.5, -1.0], dtype=np.float32))).tolist() == [16384, -32768]
    for samples, error in ((np.zeros((4, 2), np.int16), TypeError), (np.zeros(4, np.int32), TypeError)):
        with pytest.raises(error):
            as_int16(Audio(samples))
    with pytest.raises(ValueError, match="not finite"):
        as_int16(Audio(np.array([np.nan])))
