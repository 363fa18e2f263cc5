"""The two sets of names of the OpenAI Realtime protocol as data: what differs between GA and beta, nothing else.

Source: protocol sheet, section 1.9. Names that are the same in both stand where they are used. Which service speaks
which stands in `openai_dialects`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Dialect = Literal["ga", "beta"]


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """Event types, content part types and session keys of one dialect.

    items: the events that announce a finished conversation item, in order.
    modalities: the session's and the response's key, with the value that means a spoken answer.
    """

    audio_delta: str
    audio_done: str
    transcript_delta: str
    transcript_done: str
    text_delta: str
    text_done: str
    item_added: str
    items: tuple[str, ...]
    assistant_text: str
    assistant_audio: str
    modalities: str
    spoken: tuple[str, ...]


GA = Names(
    audio_delta="response.output_audio.delta",
    audio_done="response.output_audio.done",
    transcript_delta="response.output_audio_transcript.delta",
    transcript_done="response.output_audio_transcript.done",
    text_delta="response.output_text.delta",
    text_done="response.output_text.done",
    item_added="conversation.item.added",
    items=("conversation.item.added", "conversation.item.done"),
    assistant_text="output_text",
    assistant_audio="output_audio",
    modalities="output_modalities",
    spoken=("audio",),
)

BETA = Names(
    audio_delta="response.audio.delta",
    audio_done="response.audio.done",
    transcript_delta="response.audio_transcript.delta",
    transcript_done="response.audio_transcript.done",
    text_delta="response.text.delta",
    text_done="response.text.done",
    item_added="conversation.item.created",
    items=("conversation.item.created",),
    assistant_text="text",
    assistant_audio="audio",
    modalities="modalities",
    spoken=("text", "audio"),
)

NAMES: dict[Dialect, Names] = {"ga": GA, "beta": BETA}

FATAL_CODES = frozenset(
    {
        "session_expired",
        "session_limit_reached",
        "invalid_api_key",
        "beta_api_shape_disabled",
        "model_not_found",
        "model_load_error",
    }
)
"""Errors after which the peer closes; most others leave the session open (sections 1.10, 5.7)."""
