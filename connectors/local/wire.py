"""What harness and worker say to each other: msgpack records in frames.

Towards the worker go the harness's own commands, back come its own events, stamped `produced_ns` by the worker; the
harness fills in when they arrived. `session` numbers the sessions of one worker from 1.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from connectors.local.framing import frame
from connectors.local.model import Declaration
from harness.core.commands import AnyCommand, Configure
from harness.core.events import AnyEvent

ALIVE_PERIOD_S = 0.25


class Hello(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """First frame: which model to load. path: directories to import from, after the worker's own. place: the
    `package.module:Class` that the harness knows `target` to stand for (empty: the worker finds it)."""

    target: str
    settings: dict[str, str]
    path: tuple[str, ...]
    place: str = ""


class Begin(msgspec.Struct, frozen=True, tag=True, array_like=True):
    session: int
    configure: Configure


class Do(msgspec.Struct, frozen=True, tag=True, array_like=True):
    session: int
    command: AnyCommand


class End(msgspec.Struct, frozen=True, tag=True, array_like=True):
    session: int


class Described(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The class was found and its settings accepted; loading begins."""

    declaration: Declaration


class Loaded(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """took_ns: of `load`; warm_ns: of `warm_up`."""

    took_ns: int
    warm_ns: int
    facts: dict[str, Any]


class Emitted(msgspec.Struct, frozen=True, tag=True, array_like=True):
    session: int
    event: AnyEvent


class Ended(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """facts: as they are now (the peak of memory has grown)."""

    session: int
    facts: dict[str, Any]


class Failed(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The worker's last frame. kind: whose fault it is. code: `model_error`, `out_of_memory`, `behind`."""

    kind: Literal["config", "prerequisite", "model"]
    code: str
    message: str


class Alive(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Sent every `ALIVE_PERIOD_S` while there is work. step_ns: how long the present step has lasted."""

    step_ns: int


ToWorker = Hello | Begin | Do | End
FromWorker = Described | Loaded | Emitted | Ended | Failed | Alive

_encoder = msgspec.msgpack.Encoder()
decode_to_worker = msgspec.msgpack.Decoder(ToWorker).decode
decode_from_worker = msgspec.msgpack.Decoder(FromWorker).decode


def encode(record: ToWorker | FromWorker) -> bytes:
    """`record` as a whole frame."""
    return frame(_encoder.encode(record))
