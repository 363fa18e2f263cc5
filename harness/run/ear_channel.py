"""Messages between the measuring process and the process that hears agents; framed as in `harness.run.channel`.

number: of the ear. epoch: counts the flushes of its session; what is told of an earlier one is out of date.
"""

from __future__ import annotations

import msgspec


class Sound(msgspec.Struct, frozen=True, tag="sound", array_like=True):
    """What is heard next. start_ns: when its first sample is heard; None: silence that stands for a pause, of `samples`
    samples and without pcm (PCM16 at `rate_hz`). part: of a response that is not complete."""

    number: int
    epoch: int
    rate_hz: int
    samples: int
    start_ns: int | None
    part: bool = False
    pcm: bytes = b""


class Conclude(msgspec.Struct, frozen=True, tag="conclude", array_like=True):
    """Nothing follows for now: speech that is still going on ends with what was heard, at `end_ns` at the latest.

    final: the peer said so."""

    number: int
    epoch: int
    end_ns: int
    final: bool


class Flush(msgspec.Struct, frozen=True, tag="flush", array_like=True):
    """Forget what was not heard yet; `epoch` begins."""

    number: int
    epoch: int


class Forget(msgspec.Struct, frozen=True, tag="forget", array_like=True):
    """The session is over."""

    number: int


class Started(msgspec.Struct, frozen=True, tag="started", array_like=True):
    """Speech begins at `t_ns`. again: it is the speech that was told before, of which more says better where."""

    number: int
    epoch: int
    t_ns: int
    again: bool = False


class Stopped(msgspec.Struct, frozen=True, tag="stopped", array_like=True):
    """Speech ends at `t_ns`; more may follow. part: the response is not complete."""

    number: int
    epoch: int
    t_ns: int
    part: bool


class Concluded(msgspec.Struct, frozen=True, tag="concluded", array_like=True):
    """The answer to `Conclude`. t_ns: end of the speech that was still going on, None if there was none."""

    number: int
    epoch: int
    t_ns: int | None
    final: bool


class Progress(msgspec.Struct, frozen=True, tag="progress", array_like=True):
    """messages: how many were done with since the process began, as far as none before them is left."""

    messages: int


ToEar = Sound | Conclude | Flush | Forget
FromEar = Started | Stopped | Concluded | Progress
_to_ear = msgspec.msgpack.Decoder(ToEar)
_from_ear = msgspec.msgpack.Decoder(FromEar)


def for_ear(body: bytes) -> ToEar:
    return _to_ear.decode(body)


def from_ear(body: bytes) -> FromEar:
    return _from_ear.decode(body)
