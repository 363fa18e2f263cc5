"""Language models and voices behind HTTP: the real API from a stub, refusals, keys, stops; settings that cannot be."""

from __future__ import annotations

import sys
import threading
import types

import numpy as np
import pytest
import soundfile

from connectors.local.models.cascade.llm import LlmOptions, make_llm
from connectors.local.models.cascade.model import Cascade
from connectors.local.models.cascade.presets import PRESETS
from connectors.local.models.cascade.tts import RATE_HZ, TtsOptions, make_voice
from harness.core.errors import ConfigError, ConnectorError, PrerequisiteError
from tests.connectors.local.cascade_stub import ENGLISH, stub_server

ASKED = [{"role": "user", "content": "Hello?"}]


@pytest.fixture(scope="module")
def server():
    with stub_server() as stub:
        yield stub


@pytest.fixture
def stub(server):
    fresh = type(server)()
    for name in ("refuse", "break_after", "token_s", "rate_hz", "wav", "tone_s"):
        setattr(server, name, getattr(fresh, name))
    server.asked, server.spoken, server.headers = [], [], []
    server.left_early.clear()
    return server


@pytest.fixture
def opened():
    """Hands an engine on, and closes its connections at the end."""
    engines = []

    def keep(engine):
        engines.append(engine)
        return engine

    yield keep
    for engine in engines:
        engine.endpoint.close()


def ask(llm):
    return llm.stream(ASKED, threading.Event())


def llm_of(stub, **more):
    return make_llm(LlmOptions(spec=stub.url, model="small", max_tokens=7, **more))


def test_tokens_come_one_by_one_and_the_request_is_the_api_s(stub, opened) -> None:
    assert list(ask(opened(llm_of(stub)))) == ENGLISH
    expected = {"model": "small", "messages": ASKED, "stream": True, "max_tokens": 7, "temperature": 0.0}
    assert stub.asked == [expected]


def test_a_key_reaches_the_server_and_no_message(stub, opened, monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret-123")
    llm = opened(llm_of(stub, key_env="MY_KEY"))
    list(ask(llm))
    assert stub.headers[0]["Authorization"] == "Bearer sk-very-secret-123"
    stub.refuse = 401
    with pytest.raises(ConnectorError, match="answered 401: no, ") as caught:
        list(ask(llm))
    assert "secret" not in str(caught.value) + str(llm.facts)


def test_an_error_inside_the_stream_and_a_server_that_is_not_there(stub, opened) -> None:
    stub.break_after = 2
    tokens = ask(opened(llm_of(stub)))
    assert [next(tokens), next(tokens)] == ENGLISH[:2]
    with pytest.raises(ConnectorError, match="failed in its answer: out of memory"):
        next(tokens)
    nobody = opened(make_llm(LlmOptions(spec="http://127.0.0.1:9/v1", model="m")))
    with pytest.raises(ConnectorError, match=r"llm=http://127.0.0.1:9/v1 gave no answer"):
        list(ask(nobody))


def test_a_stop_ends_the_request(stub, opened) -> None:
    stub.token_s = 30.0
    stop = threading.Event()
    tokens = opened(llm_of(stub)).stream(ASKED, stop)
    assert next(tokens) == ENGLISH[0]
    stop.set()
    assert list(tokens) == []
    assert stub.left_early.wait(5.0)


@pytest.mark.parametrize(("rate_hz", "wav"), [(24_000, False), (16_000, False), (22_050, True)])
def test_speech_is_whole_at_24_khz_whatever_comes(stub, opened, rate_hz: int, wav: bool) -> None:
    stub.rate_hz, stub.wav = rate_hz, wav
    declared = RATE_HZ if wav else rate_hz
    voice = opened(make_voice(TtsOptions(spec=stub.url, model="v", voice="anna,mei", rate_hz=declared)))
    sound = np.concatenate(list(voice.speak("你好。", "zh", None, threading.Event())))
    assert stub.spoken == [{"model": "v", "input": "你好。", "response_format": "pcm", "voice": "mei"}]
    assert abs(len(sound) - 0.3 * RATE_HZ) <= 2
    # A 440 Hz sine at half scale: its level and its zero crossings survive.
    inner = sound[2_400:4_800]
    assert np.sqrt(np.mean(inner**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.02)
    assert abs(int((np.diff(np.signbit(inner)) != 0).sum()) - 88) <= 1


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"preset": "vocalbench"}, "vocalbench-zh"),
        ({"asr": "whisper"}, "no such engine"),
        ({"llm": "transformers"}, "needs a model"),
        ({"llm": "ollama:x"}, "no such language model"),
        ({"llm": "http://127.0.0.1:1/v1"}, "llm_model"),
        ({"llm": "http://user:secret@127.0.0.1:1/v1", "llm_model": "m"}, "a URL holds no keys"),
        ({"tts": "espeak"}, "no such voice"),
        ({"tts": "transformers"}, "needs a model"),
        ({"tts": "cosyvoice2:dir"}, "tts_prompt_audio"),
        ({"silence_ms": -1}, "cannot be negative"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], complaint: str) -> None:
    base: dict[str, object] = {"llm": "http://127.0.0.1:1/v1", "llm_model": "m"}
    base = {} if "llm" in settings else base
    with pytest.raises(ConfigError, match=complaint) as caught:
        Cascade(**(base | settings))  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


def test_llama_cpp_without_its_package_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PrerequisiteError, match="pip install xllamacpp"):
        make_llm(LlmOptions(spec="llama.cpp"))


def test_the_preset_names_the_reference() -> None:
    named = PRESETS["vocalbench-zh"]
    assert [named[key].rpartition("/")[2] for key in ("asr", "llm")] == ["whisper-large-v3", "Qwen3-8B"]
    assert named["tts_model"] == "CosyVoice2-0.5B"


def test_cosyvoice_by_its_package(monkeypatch, tmp_path) -> None:
    """A stand-in with the package's own interface: packets of a stream, shape (1, n), at the model's rate."""
    soundfile.write(tmp_path / "prompt.wav", np.zeros((8_000, 2), dtype=np.float32), 8_000)
    asked = []

    class CosyVoice2:
        sample_rate = 24_000

        def __init__(self, folder: str) -> None:
            asked.append(folder)

        def inference_zero_shot(self, text, prompt_text, prompt, stream=False):
            asked.append((text, prompt_text, prompt.shape, stream))
            yield {"tts_speech": np.full((1, 600), 0.25, dtype=np.float32)}
            yield {"tts_speech": np.full((1, 300), 0.5, dtype=np.float32)}

    voice = make_voice(
        TtsOptions(spec="cosyvoice2:some/folder", prompt_audio=str(tmp_path / "prompt.wav"), prompt_text="你好")
    )
    with pytest.raises(PrerequisiteError, match="clone FunAudioLLM/CosyVoice"):
        voice.load()
    monkeypatch.setitem(sys.modules, "cosyvoice.cli.cosyvoice", types.SimpleNamespace(CosyVoice2=CosyVoice2))
    monkeypatch.setitem(sys.modules, "cosyvoice.cli", types.ModuleType("cosyvoice.cli"))
    monkeypatch.setitem(sys.modules, "cosyvoice", types.ModuleType("cosyvoice"))
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(from_numpy=lambda array: array))
    voice.load()
    packets = list(voice.speak("今天。", "zh", None, threading.Event()))
    assert [(len(packet), packet[0]) for packet in packets] == [(600, 0.25), (300, 0.5)]
    assert asked == ["some/folder", ("今天。", "你好", (1, 16_000), True)]
