"""The services and servers that speak OpenAI Realtime in their own way: one row of data for each, no code.

What a row says is used by the codec (`openai_realtime`, `openai_session`), by the connector and by the docs. The two
sets of event names stand in `openai_names`. Source: protocol sheet; each row names its section.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from connectors.codecs.client import Opening
from connectors.codecs.openai_names import Dialect as Naming
from harness.core.errors import ConfigError, nearest
from harness.core.profile import Pacing, Profile, TurnControl

Shape = Literal["nested", "split", "flat", "unmute", "none"]
Coding = Literal["pcm16", "wav", "ogg_opus"]
ModelPlace = Literal["query", "session", "top"]

ALIASES = {"ga": "openai", "beta": "openai-beta"}


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One way to speak OpenAI Realtime.

    Where. url: of the service; `{target}` stands for what the user names after the peer's name. path: what a URL
    without a path means. hosts: names (or their ends) of the official hosts, to which the key in `key_env` may go.
    query: fixed parameters. model_place: where the model stands: URL, `session.model`, or beside `session`.

    Session. names: event and key names. shape: `nested` under `audio`; `split`, formats nested and the rest beside
    them; `flat`; unmute's own three keys; `none`, no session object at all. The first of each list of rates (Hz) is
    the default. manual: the turn detector that means manual turns (`absent`: the key is left out). modalities: empty
    where none is sent. transcription_model: empty where the key does not exist. session: keys that always go along.

    Audio. coding_in: what an append's bytes are (`wav`: each a whole file). audio_field: the delta's field. binary:
    audio may go as binary messages. ends_on: the event that ends an answer. bracketed: an utterance stands between
    two commits, the answer comes by itself. lacks: commands (by tag) that do not exist.

    limit_min: longest session in minutes, None where nobody says. note: what a user must know, one line.
    """

    name: str
    title: str
    section: str
    evidence: str = "golden only"

    url: str = ""
    path: str = "/v1/realtime"
    hosts: tuple[str, ...] = ()
    query: dict[str, str] = msgspec.field(default_factory=dict)
    key_env: str | None = None
    key_header: str = "Authorization"
    key_scheme: str = "Bearer "
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    subprotocols: tuple[str, ...] = ()
    model: str | None = None
    model_place: ModelPlace = "query"
    model_needed: bool = False

    names: Naming
    shape: Shape
    opening: Opening = "created_first"
    conversation_opens: bool = False
    input_rates_hz: tuple[int, ...] = (24_000,)
    output_rates_hz: tuple[int, ...] = (24_000,)
    input_rate_key: str = ""
    input_format: str = "pcm16"
    output_format: str = "pcm16"
    manual: Literal["null", "client_vad", "absent"] = "null"
    modalities: tuple[str, ...] = ()
    transcription_model: str = ""
    language_key: str = "language"
    session: dict[str, Any] = msgspec.field(default_factory=dict)

    coding_in: Coding = "pcm16"
    coding_out: Coding = "pcm16"
    audio_field: Literal["delta", "audio"] = "delta"
    binary: bool = False
    ends_on: Literal["response_done", "audio_done"] = "response_done"
    bracketed: bool = False
    text_kind: Literal["text", "transcript"] = "text"

    pacing: Pacing = "burst"
    turns: tuple[TurnControl, ...] = ("vad", "manual")
    text: Literal["before_audio", "with_audio"] = "before_audio"
    chunk_ms: int | None = None
    encoder_lookahead_samples: int = 0
    user_transcript: bool = True
    lacks: frozenset[str] = frozenset()
    limit_min: int | None = None
    note: str = ""

    @property
    def profile(self) -> Profile:
        """What a peer of this dialect can do, at its default rates."""
        return Profile(
            pacing=self.pacing,
            turns=self.turns,
            input_rate_hz=self.input_rates_hz[0],
            output_rate_hz=self.output_rates_hz[0],
            chunk_ms=self.chunk_ms,
            encoder_lookahead_samples=self.encoder_lookahead_samples,
            text=self.text,
            user_transcript=self.user_transcript,
            cancel="cancel" not in self.lacks,
            truncate="truncate" not in self.lacks,
            history="add_history" not in self.lacks,
        )


_ANY_RATE = (24_000, 8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000)
_GA: dict[str, Any] = {
    "names": "ga",
    "shape": "nested",
    "modalities": ("audio",),
    "transcription_model": "gpt-4o-mini-transcribe",
    "session": {"type": "realtime"},
}
_BETA: dict[str, Any] = {"names": "beta", "shape": "flat", "modalities": ("text", "audio")}

_ROWS = (
    Dialect(
        name="openai",
        title="OpenAI Realtime (GA names)",
        section="1",
        url="wss://api.openai.com/v1/realtime",
        hosts=("api.openai.com",),
        key_env="OPENAI_API_KEY",
        model="gpt-realtime",
        limit_min=60,
        **_GA,
    ),
    Dialect(
        name="openai-beta",
        title="older servers with OpenAI's beta names",
        section="1.9",
        url="wss://api.openai.com/v1/realtime",
        hosts=("api.openai.com",),
        key_env="OPENAI_API_KEY",
        headers={"OpenAI-Beta": "realtime=v1"},
        model="gpt-realtime",
        transcription_model="whisper-1",
        note="OpenAI itself has switched this shape off (close code 4000)",
        **_BETA,
    ),
    Dialect(
        name="azure",
        title="Azure OpenAI Realtime (GA)",
        section="4.1",
        url="wss://{target}.openai.azure.com/openai/v1/realtime",
        path="/openai/v1/realtime",
        hosts=(".openai.azure.com",),
        key_env="AZURE_OPENAI_API_KEY",
        key_header="api-key",
        key_scheme="",
        model_needed=True,
        limit_min=30,
        note="--model is the deployment's name",
        **_GA,
    ),
    Dialect(
        name="azure-voice-live",
        title="Azure Voice Live",
        section="4.2",
        url="wss://{target}.services.ai.azure.com/voice-live/realtime",
        path="/voice-live/realtime",
        hosts=(".services.ai.azure.com", ".cognitiveservices.azure.com"),
        query={"api-version": "2026-07-15"},
        key_env="AZURE_VOICELIVE_API_KEY",
        key_header="api-key",
        key_scheme="",
        model_needed=True,
        input_rates_hz=(24_000, 8_000, 16_000),
        input_rate_key="input_audio_sampling_rate",
        transcription_model="azure-speech",
        note='an Azure voice is an object: --set session={"voice":{"type":"azure-standard","name":…}}',
        **_BETA,
    ),
    Dialect(
        name="xai",
        title="xAI Grok Voice",
        section="4.3",
        url="wss://api.x.ai/v1/realtime",
        hosts=("api.x.ai",),
        key_env="XAI_API_KEY",
        model="grok-voice-latest",
        names="ga",
        shape="split",
        conversation_opens=True,
        input_rates_hz=_ANY_RATE,
        output_rates_hz=_ANY_RATE,
        transcription_model="grok-transcribe",
        language_key="language_hint",
        binary=True,
        limit_min=60,
        note="sources disagree on manual turns (section 15): if no answer comes, take --turn vad",
    ),
    Dialect(
        name="stepfun",
        title="StepFun Realtime",
        section="4.4",
        url="wss://api.stepfun.com/v1/realtime",
        hosts=("api.stepfun.com", "api.stepfun.ai"),
        key_env="STEP_API_KEY",
        model="stepaudio-2.5-realtime",
        manual="absent",
        lacks=frozenset({"truncate"}),
        limit_min=30,
        note="the step-audio-2 family wants the voice named in the instructions too",
        **_BETA,
    ),
    Dialect(
        name="qwen-omni",
        title="Qwen-Omni-Realtime (Alibaba Model Studio)",
        section="4.5",
        url="wss://dashscope.aliyuncs.com/api-ws/v1/realtime",
        path="/api-ws/v1/realtime",
        hosts=("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", ".maas.aliyuncs.com"),
        key_env="DASHSCOPE_API_KEY",
        model="qwen3-omni-flash-realtime",
        input_rates_hz=(16_000,),
        transcription_model="gummy-realtime-v1",
        language_key="",
        chunk_ms=100,
        lacks=frozenset({"truncate", "add_history"}),
        limit_min=30,
        note="whether it takes text history is unverified (section 15)",
        **_BETA,
    ),
    Dialect(
        name="glm",
        title="GLM-Realtime (Zhipu)",
        section="4.6",
        url="wss://open.bigmodel.cn/api/paas/v4/realtime",
        path="/api/paas/v4/realtime",
        hosts=("open.bigmodel.cn",),
        key_env="ZHIPUAI_API_KEY",
        model="glm-realtime-flash",
        model_place="session",
        input_rates_hz=(16_000,),
        input_format="wav",
        output_format="pcm",
        manual="client_vad",
        session={"beta_fields": {"chat_mode": "audio"}},
        coding_in="wav",
        lacks=frozenset({"truncate", "add_history"}),
        note="facts of May 2025; each append is a WAV file of its own, 44 bytes of header each",
        **_BETA,
    ),
    Dialect(
        name="vllm-omni",
        title="vllm-omni, full duplex",
        section="5.3",
        url="ws://127.0.0.1:8000/v1/realtime",
        query={"duplex": "1"},
        names="ga",
        shape="nested",
        input_rates_hz=(16_000,),
        pacing="input_clocked",
        user_transcript=False,
        note="without a turn detector the model decides itself when it speaks, also before a commit",
    ),
    Dialect(
        name="vllm-omni-turns",
        title="vllm-omni 0.30 without duplex: one utterance, one answer",
        section="5.2",
        url="ws://127.0.0.1:8000/v1/realtime",
        query={"duplex": "0"},
        model_place="top",
        model_needed=True,
        names="ga",
        shape="none",
        opening="created_only",
        input_rates_hz=(16_000,),
        audio_field="audio",
        ends_on="audio_done",
        bracketed=True,
        turns=("manual",),
        user_transcript=False,
        lacks=frozenset({"cancel", "truncate", "add_history", "clear_input"}),
        note="the answer's end is its response.output_audio.done; no history between turns",
    ),
    Dialect(
        name="hf-s2s",
        title="Hugging Face speech-to-speech",
        section="5.5",
        evidence="interop-tested",
        url="ws://127.0.0.1:8765/v1/realtime",
        lacks=frozenset({"truncate", "add_history"}),
        note="a cascade: the transcript is the language model's text; one session at a time",
        **_GA,
    ),
    Dialect(
        name="speaches",
        title="speaches",
        section="5.6",
        url="ws://127.0.0.1:8000/v1/realtime",
        query={"intent": "conversation"},
        model_needed=True,
        limit_min=30,
        note="--model is the language model; --set transcription_model=… names the recogniser",
        **_BETA,
    ),
    Dialect(
        name="localai",
        title="LocalAI",
        section="5.7",
        url="ws://127.0.0.1:8080/v1/realtime",
        model_needed=True,
        note="--model is the pipeline, which names the recogniser; loading it delays session.created",
        **_GA | {"transcription_model": ""},
    ),
    Dialect(
        name="unmute",
        title="Kyutai unmute",
        section="5.4",
        url="ws://127.0.0.1:8000/v1/realtime",
        subprotocols=("realtime",),
        names="beta",
        shape="unmute",
        opening="configure_first",
        coding_in="ogg_opus",
        coding_out="ogg_opus",
        ends_on="audio_done",
        text_kind="transcript",
        pacing="paced",
        turns=("vad",),
        text="with_audio",
        chunk_ms=20,
        encoder_lookahead_samples=60,
        lacks=frozenset({"commit", "create_response", "clear_input", "cancel", "truncate", "add_history"}),
        note="the answer's end is its response.audio.done; what stands behind an interruption is cut",
    ),
)

DIALECTS: dict[str, Dialect] = {row.name: row for row in _ROWS}


def dialect_of(name: str | Dialect) -> Dialect:
    """The row called `name` (`ga` and `beta` are OpenAI's two). Raises ConfigError with the nearest name."""
    if isinstance(name, Dialect):
        return name
    found = DIALECTS.get(ALIASES.get(name, name))
    if found is None:
        raise ConfigError(f"no dialect called {name!r}: {nearest(name, [*DIALECTS, *ALIASES])}")
    return found
