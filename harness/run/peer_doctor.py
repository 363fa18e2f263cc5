"""`doctor --peer`: says one query to a peer with the user's own key, records it, and has the recording checked."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from harness.core.clock import SystemClock
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError
from harness.core.profile import Profile
from harness.core.query import Query
from harness.core.session.reader import load_session
from harness.run.bench import run_async
from harness.run.peer_check import PeerCheck, check_turn
from harness.run.peers import make_peer
from harness.run.rig import Rig
from harness.run.runner import SessionRunner
from harness.run.session_plan import SessionOptions, SessionPlan

SESSION = "doctor"


class PeerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to look at, and how. turn None: the peer's own default. out: where the recording is kept; None: nowhere."""

    peer: str
    options: PeerOptions = PeerOptions()
    session: SessionOptions = SessionOptions()
    turn: str | None = None
    out: Path | None = None


def examine_peer(request: PeerRequest, query: Query) -> PeerCheck:
    """Hold one session of one turn and check it. A peer that fails is a finding, not an exception.

    Raises ConfigError (a peer or turn mode that cannot be, a used `out`) and PrerequisiteError (a missing key).
    """
    if request.out is not None and (request.out / SESSION).exists():
        raise ConfigError(f"--out {request.out}: already holds a recording; name another directory")
    with tempfile.TemporaryDirectory(prefix="firstpacket-doctor-") as scratch:
        sessions = request.out or Path(scratch)
        run_async(lambda: _hold(request, query, sessions))
        session = load_session(sessions / SESSION)
        check = check_turn(session.header, session.events, session.agent)
    kept = str(sessions / SESSION) if request.out is not None else ""
    return msgspec.structs.replace(check, recording=kept)


async def _hold(request: PeerRequest, query: Query, sessions: Path) -> None:
    clock = SystemClock()
    peer = make_peer(request.peer, request.options, clock)
    turn = _turn(request.turn, peer.profile, peer.label)
    options = msgspec.structs.replace(request.session, turn=turn)
    plan = SessionPlan(id=SESSION, queries=(query.at_rate(peer.profile.input_rate_hz),))
    async with Rig(clock) as rig, peer:
        await SessionRunner(rig, peer, options, plan, sessions).run()


def _turn(asked: str | None, profile: Profile, label: str) -> str:
    if asked is None:
        return profile.turns[0] if profile.turns else "vad"
    if asked not in profile.turns:
        raise ConfigError(f"{label} cannot do --turn {asked}; it has: {' or '.join(profile.turns) or 'none'}")
    return asked
