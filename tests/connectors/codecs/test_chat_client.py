"""The client's chat-completions codec against frames written by hand, a whole turn for each dialect.

An answer is one stream: what a chunk means depends on those before it, so turns are read from their start.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import wave
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.codecs.chat_chunks import Failure, read_failure
from connectors.codecs.chat_completions import ChatCompletionsClient
from connectors.codecs.chat_dialects import DIALECTS
from connectors.codecs.sse import SseEvent, SseReader
from harness.core.commands import AddHistory, AppendAudio, Configure, CreateResponse, Truncate
from harness.core.errors import ConfigError
from harness.core.events import AnyEvent, AudioReceived, Event, PeerError, ResponseDone, ResponseStarted, TextReceived
from tests.connectors.codecs.golden_frames import mutated, rows

pytestmark = pytest.mark.unit
TURNS = {"openai": "chat_openai", "dashscope": "chat_dashscope", "vllm-omni": "chat_vllm"}
PCM = bytes([1, 0, 2, 0, 3, 0])


def client(dialect: str = "openai", **options: Any) -> ChatCompletionsClient:
    codec = ChatCompletionsClient(DIALECTS[dialect], **options)
    codec.begin()
    return codec


def data_of(row: dict[str, Any]) -> bytes:
    return row["data"].encode() if "data" in row else json.dumps(row["frame"], ensure_ascii=False).encode()


def bare(events: list[Event]) -> list[Event]:
    return [
        msgspec.structs.replace(
            event, t_ns=0, **({"first_byte_ns": 0, "wire_bytes": 0} if "wire_bytes" in dir(event) else {})
        )
        for event in events
    ]


def golden(turn: list[dict[str, Any]]) -> list[Event]:
    return [msgspec.convert({"t_ns": 0, **event}, AnyEvent) for row in turn for event in row["events"]]


def read(codec: ChatCompletionsClient, turn: list[bytes]) -> list[Event]:
    return bare([event for data in turn for event in codec.decode(data, 20, 10)])


@pytest.mark.parametrize("dialect", TURNS)
def test_a_turn_becomes_the_golden_events(dialect: str) -> None:
    turn = rows(TURNS[dialect])
    assert read(client(dialect), [data_of(row) for row in turn]) == golden(turn)


@pytest.mark.parametrize("dialect", TURNS)
def test_each_mutation_is_noticed(dialect: str) -> None:
    turn = rows(TURNS[dialect])
    changed = [index for index, row in enumerate(turn) if row.get("mutant")]
    assert changed
    for index in changed:
        frames = [data_of(row) for row in turn]
        frames[index] = json.dumps(mutated(turn[index])).encode()
        assert read(client(dialect), frames) != golden(turn), turn[index]["kind"]


@pytest.mark.parametrize("dialect", TURNS)
def test_unknown_fields_change_nothing(dialect: str) -> None:
    turn = rows(TURNS[dialect])
    frames = [data_of({"frame": {"new": {"deep": [1]}} | row["frame"]} if "frame" in row else row) for row in turn]
    assert read(client(dialect), frames) == golden(turn)


@pytest.mark.parametrize("dialect", TURNS)
def test_truncated_chunks_are_unreadable(dialect: str) -> None:
    for row in rows(TURNS[dialect])[:-1]:
        whole = data_of(row)
        for cut in (0, 1, len(whole) // 2, len(whole) - 1):
            (event,) = client(dialect).decode(whole[:cut], 2, 1)
            assert isinstance(event, PeerError)
            assert event.code == "unreadable"
            assert "\n" not in event.message


@given(st.data())
def test_any_split_of_the_stream_gives_the_same_events(data: st.DataObject) -> None:
    dialect = data.draw(st.sampled_from(sorted(TURNS)))
    turn = rows(TURNS[dialect])
    stream = b"".join(b": comment\n\ndata: " + data_of(row) + b"\r\n\r\n" for row in turn)
    bounds = [0, *sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=30))), len(stream)]
    reader, codec = SseReader(), client(dialect)
    events: list[Event] = []
    for t_ns, (a, b) in enumerate(itertools.pairwise(bounds), 1):
        for event in reader.feed(stream[a:b], t_ns):
            found = codec.take(event)
            assert {each.t_ns for each in found} == {t_ns}
            events += found
    assert bare(events) == golden(turn)


@given(st.binary(min_size=1, max_size=60), st.lists(st.integers(0, 80), max_size=8))
def test_base64_cut_anywhere_gives_the_same_samples(pcm: bytes, cuts: list[int]) -> None:
    text = base64.b64encode(pcm).decode()
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    codec, heard = client(), b""
    for a, b in itertools.pairwise(bounds):
        chunk = {"id": "c", "choices": [{"delta": {"audio": {"data": text[a:b]}}}]}
        heard += b"".join(e.pcm for e in codec.decode(json.dumps(chunk).encode(), 1, 1) if isinstance(e, AudioReceived))
    assert heard == (pcm[: len(pcm) & ~1] if pcm[:4] != b"RIFF" else heard)


@pytest.mark.parametrize("row", rows("chat_requests"), ids=lambda row: row["dialect"])
def test_commands_become_the_golden_request(row: dict[str, Any]) -> None:
    codec = ChatCompletionsClient(DIALECTS[row["dialect"]])
    assert codec.encode(Configure(turn="manual", instructions="Be brief.")) == []
    assert codec.encode(AppendAudio(pcm=PCM)) == []
    (body,) = codec.encode(CreateResponse())
    assert json.loads(body) == row["frame"]
    data = json.loads(body)["messages"][-1]["content"][0]["input_audio"]["data"]
    with wave.open(io.BytesIO(base64.b64decode(data.rpartition(",")[2]))) as file:
        assert file.getparams()[:4] == (1, 2, DIALECTS[row["dialect"]].input_rate_hz, 3)
        assert file.readframes(3) == PCM


def request(codec: ChatCompletionsClient) -> dict[str, Any]:
    codec.encode(AppendAudio(pcm=PCM))
    (body,) = codec.encode(CreateResponse())
    codec.begin()
    decoded: dict[str, Any] = json.loads(body)
    return decoded


def answer(codec: ChatCompletionsClient, *, finish: str = "stop") -> list[Event]:
    said = {"id": "c1", "choices": [{"delta": {"audio": {"id": "audio_1", "transcript": "Noon.", "data": "AQA="}}}]}
    end = {"id": "c1", "choices": [{"delta": {}, "finish_reason": finish}]}
    return read(codec, [json.dumps(said).encode(), json.dumps(end).encode(), b"[DONE]"])


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ("text", {"role": "assistant", "content": "Noon."}),
        ("audio_id", {"role": "assistant", "audio": {"id": "audio_1"}}),
        ("none", None),
    ],
)
def test_earlier_turns_go_along(history: Any, said: dict[str, Any] | None) -> None:
    codec = ChatCompletionsClient(DIALECTS["openai"], history=history)
    codec.encode(AddHistory(role="assistant", text="Hello."))
    first = request(codec)
    answer(codec)
    second = request(codec)
    kept = [first["messages"][-1], said] if said else []
    assert second["messages"] == [first["messages"][0], *kept, second["messages"][-1]]


def test_a_turn_that_failed_leaves_no_history() -> None:
    codec = ChatCompletionsClient(DIALECTS["openai"])
    request(codec)
    codec.failed("closed", "gone", 5)
    assert len(request(codec)["messages"]) == 1


def test_settings_are_laid_over_the_request() -> None:
    codec = ChatCompletionsClient(DIALECTS["openai"], extra={"audio": {"speed": 2}, "temperature": 0})
    codec.encode(Configure(voice="ash", model="gpt-audio-mini", extra={"temperature": 1}))
    body = request(codec)
    assert (body["model"], body["temperature"]) == ("gpt-audio-mini", 1)
    assert body["audio"] == {"voice": "ash", "format": "pcm16", "speed": 2}


def test_what_the_protocol_has_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="have no Truncate"):
        client().encode(Truncate(item="x", audio_end_ms=1))


def test_a_second_answer_of_the_same_name_is_another_one() -> None:
    codec = client()
    first = answer(codec)
    codec.begin()
    second = answer(codec)
    names = [event.response for event in first + second if isinstance(event, ResponseStarted)]
    assert names == ["c1", "c1#2"]
    assert {event.response for event in second if isinstance(event, AudioReceived | ResponseDone)} == {"c1#2"}


@pytest.mark.parametrize(
    ("finish", "status"), [("stop", "completed"), ("length", "incomplete"), ("tool_calls", "completed")]
)
def test_finish_reasons(finish: str, status: str) -> None:
    done = answer(client(), finish=finish)[-1]
    assert isinstance(done, ResponseDone)
    assert (done.status, done.reason) == (status, finish)


def test_finish_and_end_without_done_is_an_end() -> None:
    codec = client()
    codec.decode(b'{"id":"c","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}', 1, 1)
    (done,) = codec.ended(7)
    assert isinstance(done, ResponseDone)
    assert (done.t_ns, done.status) == (7, "completed")
    assert codec.ended(8) == []


def test_an_end_without_a_word_is_incomplete_and_an_empty_answer_has_failed() -> None:
    codec = client()
    codec.decode(b'{"id":"c","choices":[{"delta":{"content":"a"}}]}', 1, 1)
    (done,) = codec.ended(7)
    assert isinstance(done, ResponseDone)
    assert (done.status, done.reason) == ("incomplete", "no finish_reason")
    error, failed = client().ended(7)
    assert isinstance(error, PeerError)
    assert isinstance(failed, ResponseDone)
    assert (error.code, failed.status) == ("empty", "failed")


def test_audio_after_the_end_keeps_its_response() -> None:
    codec = client()
    answer(codec)
    late = codec.decode(b'{"id":"c1","choices":[{"delta":{"audio":{"data":"AQA="}}}]}', 9, 9)
    assert [(type(event), event.response) for event in late if isinstance(event, AudioReceived)] == [
        (AudioReceived, "c1")
    ]


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b'{"error":{"message":"too\\nbusy","type":"server_error","code":null}}', "server_error", "too busy"),
        (b'{"error":{"message":"slow down","code":429}}', "429", "slow down"),
        (b'{"error":"engine died"}', "", "engine died"),
        (b'{"object":"error","message":"bad","code":400}', "400", "bad"),
    ],
)
def test_an_error_in_the_stream_ends_the_answer(data: bytes, code: str, message: str) -> None:
    codec = client()
    codec.decode(b'{"id":"c","choices":[{"delta":{"content":"a"}}]}', 1, 1)
    error, done = codec.decode(data, 2, 2)
    assert isinstance(error, PeerError)
    assert (error.code, error.message, error.fatal) == (code, message, False)
    assert isinstance(done, ResponseDone)
    assert (done.response, done.status) == ("c", "failed")
    assert not [event for event in codec.decode(b"[DONE]", 3, 3) if isinstance(event, ResponseDone)]


def test_an_event_called_error_is_one() -> None:
    events = client().take(SseEvent(b'{"code":"Throttling","message":"wait"}', 2, 1, "error"))
    assert isinstance(events[0], PeerError)
    assert (events[0].code, events[0].message) == ("Throttling", "wait")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"error":{"code":"invalid_api_key","message":"no"}}', Failure("invalid_api_key", "no")),
        (b'{"code":"InvalidApiKey","message":"no","request_id":"1"}', Failure("InvalidApiKey", "no")),
        (b'{"detail":"Not Found"}', Failure("", "Not Found")),
        (b"<h1>502\nBad Gateway</h1>", Failure("", "<h1>502 Bad Gateway</h1>")),
        (b"\xff\xfe", Failure("", "��")),
        (b"", Failure("", "")),
    ],
)
def test_refusals_of_any_shape(body: bytes, expected: Failure) -> None:
    assert read_failure(body) == expected


@pytest.mark.parametrize(
    ("status", "own", "wait_s", "code", "words", "fatal"),
    [
        (401, "invalid_api_key", None, "invalid_api_key", "HTTP 401: why", True),
        (429, "insufficient_quota", None, "insufficient_quota", "HTTP 429: why", False),
        (429, "Throttling.RateQuota", 2.5, "429", "HTTP 429: why (Throttling.RateQuota); try again in 2.5 s", False),
        (503, "", 4.0, "503", "HTTP 503: why; try again in 4 s", False),
    ],
)
def test_refusals(status: int, own: str, wait_s: float | None, code: str, words: str, fatal: bool) -> None:
    error, done = client().refused(status, Failure(own, "why"), wait_s, 9)
    assert isinstance(error, PeerError)
    assert (error.code, error.message, error.fatal, error.t_ns) == (code, words, fatal, 9)
    assert isinstance(done, ResponseDone)
    assert done.status == "failed"


@pytest.mark.parametrize(
    "data",
    [
        b'{"id":"c","choices":[{"delta":{"audio":{"data":"****"}}}]}',
        b'{"id":"c","choices":[{"delta":{"content":["a"]}}]}',
        b'{"id":"c","choices":{"delta":1}}',
        b'{"id":7,"choices":[]}',
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_nonsense_is_an_event_and_never_raises(data: bytes) -> None:
    events = client().decode(data, 2, 1)
    assert any(isinstance(event, PeerError) and event.code == "unreadable" for event in events)


def test_audio_that_cannot_be_read_is_said() -> None:
    chunk = {
        "id": "c",
        "modality": "audio",
        "choices": [{"delta": {"content": "AAAA"}, "audio_metadata": {"format": "mp3"}}],
    }
    events = client("vllm-omni").decode(json.dumps(chunk).encode(), 1, 1)
    assert [event.code for event in events if isinstance(event, PeerError)] == ["unsupported_audio_format"]
    assert not [event for event in events if isinstance(event, AudioReceived)]


@pytest.mark.parametrize("dialect", ["openai", "vllm-omni"])
def test_a_whole_answer_is_read_as_well(dialect: str) -> None:
    file = io.BytesIO()
    with wave.open(file, "wb") as wav:
        wav.setnchannels(1)
        wav.setsampwidth(2)
        wav.setframerate(16_000)
        wav.writeframes(PCM)
    audio = {"id": "audio_1", "data": base64.b64encode(file.getvalue()).decode(), "expires_at": 1}
    spoken = {"role": "assistant", "content": None, "audio": audio | {"transcript": "Noon."}}
    choices: list[dict[str, Any]] = [{"index": 0, "message": spoken, "finish_reason": "stop"}]
    if dialect == "vllm-omni":  # the audio in a second choice, section 12.3
        text = {"index": 0, "message": {"content": "Noon."}, "finish_reason": "stop"}
        choices = [text, {"index": 0, "message": {"audio": audio | {"transcript": ""}}, "finish_reason": "stop"}]
    codec = client(dialect, output_rate_hz=16_000)
    events = codec.decode(json.dumps({"id": "c", "object": "chat.completion", "choices": choices}).encode(), 1, 1)
    events += codec.ended(2)
    assert [event.text for event in events if isinstance(event, TextReceived)] == ["Noon."]
    (heard,) = [event for event in events if isinstance(event, AudioReceived)]
    assert (heard.pcm, heard.rate_hz) == (PCM, 16_000)
    assert isinstance(events[-1], ResponseDone)
    assert events[-1].status == "completed"


def test_a_cancelled_answer_that_had_not_begun_is_none() -> None:
    assert client().cancelled(5) == []
    codec = client()
    codec.decode(b'{"id":"c","choices":[{"delta":{"content":"a"}}]}', 1, 1)
    (done,) = codec.cancelled(5)
    assert isinstance(done, ResponseDone)
    assert done.status == "cancelled"
