"""What every live session has around it, whatever the user speaks into: the peer, the run directory, the turns put in
afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.core.clock import Clock
from harness.core.connector import Peer, PeerOptions
from harness.core.errors import ConfigError
from harness.core.run_directory import RunDirectory
from harness.live.annotation import Annotator, put_turns
from harness.run.bench import run_directories
from harness.run.calibration import stored_calibration
from harness.run.peers import DEFAULT_PEER, make_peer
from harness.run.quiet import Priority
from harness.run.session_plan import SessionOptions
from harness.run.suite import check_new, prepare_directory

SUITE = "live"
SESSION = "00000-live"


class LiveRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What `firstpacket live` was asked for, but for the device."""

    peer: str = DEFAULT_PEER
    options: PeerOptions = PeerOptions()
    session: SessionOptions = SessionOptions()
    push_to_talk: bool = False
    out: Path | None = None
    priority: Priority = "normal"


def live_peer(request: LiveRequest, clock: Clock) -> Peer:
    """The peer to speak with. Raises ConfigError for one that nobody can speak with, or not in that turn mode."""
    peer = make_peer(request.peer, request.options, clock)
    if peer.profile.upload:
        raise ConfigError(f"{peer.label} takes a whole query in one upload: there is no live session with it")
    turn = request.session.turn
    if turn not in peer.profile.turns and not peer.profile.continuous:
        can = " or ".join(peer.profile.turns) or "none"
        raise ConfigError(f"{peer.label} cannot do --turn {turn}; it has: {can}")
    return peer


def check_out(request: LiveRequest, peer: Peer) -> None:
    """Raises ConfigError for a directory that no new run can go into."""
    (directory,) = run_directories([peer], SUITE, request.out)
    check_new(directory)


def live_directory(request: LiveRequest, peer: Peer, device: dict[str, Any]) -> RunDirectory:
    """A new run directory with its `run.json`. device: what the user speaks into. Raises ConfigError."""
    (directory,) = run_directories([peer], SUITE, request.out)
    config = {
        "peer": {"kind": peer.kind, "label": peer.label, **peer.config},
        "session": msgspec.to_builtins(request.session),
        "push_to_talk": request.push_to_talk,
        "device": device,
    }
    prepare_directory(directory, peer, SUITE, config, [SESSION], resume=False, calibration=stored_calibration())
    return directory


def put_live_turns(directory: RunDirectory, annotator: Annotator) -> int:
    """Put its turns into each recorded session; how many there are (0 where nothing was recorded). Raises
    SessionFormatError or OSError; that recording then stays as it was."""
    return sum(put_turns(directory.sessions / name, annotator) for name in directory.finished())


@contextlib.contextmanager
def ending(stop: Callable[[], None]) -> Iterator[None]:
    """Inside a running loop: Ctrl-C, a closed terminal or a polite kill end the session, so that it is kept; a second
    Ctrl-C interrupts."""
    loop = asyncio.get_running_loop()
    names = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    caught: list[signal.Signals] = []

    def again() -> None:
        stop()
        release()

    def release() -> None:
        while caught:
            loop.remove_signal_handler(caught.pop())

    for each in names:
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(each, again)
            caught.append(each)
    try:
        yield
    finally:
        release()
