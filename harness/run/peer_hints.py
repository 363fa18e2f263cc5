"""What to try when a peer departs from the expected order of events: one line for each kind of failure."""

from __future__ import annotations

import re

from harness.core.events import PeerError
from harness.core.retry import RATE_LIMIT_CODES
from harness.core.session.header import Header

_OTHER_PROTOCOL = "another protocol or dialect is spoken there: check the URL's path, and see `firstpacket peers`"
_BY_WORDS = (
    (r"TLS .*certificate|\bca=FILE", "trust its certificate with --set ca=FILE, or any with --insecure"),
    (r"^the proxy ", "check HTTPS_PROXY (HTTP_PROXY without TLS), and exempt the peer with NO_PROXY"),
    (
        r"no (HTTP|WebSocket) server there|no TLS there",
        "check the address, its port, and its scheme (with or without TLS)",
    ),
    (r"nothing listens there|no such host", "check the address and its port: has the server been started?"),
)
"""Of our own transports, whose errors have the code `connect` or `protocol`."""
_OWN_CODES = ("connect", "protocol")
_FOREIGN = re.compile(
    r"(unknown|unsupported|unrecogni[sz]ed|no such) (client )?(event|message)\b"
    r"|\b(event|message) type .{0,60}(unknown|not supported|unsupported|not recogni[sz]ed)"
    r"|invalid value: .{0,60}supported values are: .{0,20}session\.update",
    re.IGNORECASE,
)
_BY_CODE = {
    "400": "the path may be another protocol's (see `firstpacket peers`), or a setting is refused: leave --set away",
    "closed": "the peer gave up in the middle: check the URL's scheme and path; its own log may say why",
    "405": _OTHER_PROTOCOL,
    "415": _OTHER_PROTOCOL,
    "422": _OTHER_PROTOCOL,
    "426": _OTHER_PROTOCOL,
    "401": "check the key: {key}",
    "invalid_api_key": "check the key: {key}",
    "403": "the key is known but may not use this model or service: {key}",
    "404": "check the URL's path and --model {model}",
    "model_not_found": "check --model {model}",
    "invalid_model": "check --model {model}",
    "unreadable": _OTHER_PROTOCOL,
    "unsupported_audio_format": "ask for PCM16, with --set session=… where the peer takes it",
    "insufficient_quota": "the account behind the key has no credit left",
    "timeout": "is the address right, and does a proxy or firewall stand between? --timeout waits longer",
    "beta_api_shape_disabled": "the service no longer takes the beta dialect: use --set dialect=ga",
    "session_limit_reached": "all sessions of the server are taken: try again later",
}
_BY_STEP = {
    "reach": "check the address, HTTPS_PROXY and NO_PROXY, and for your own certificate --set ca=FILE",
    "session": "another protocol or dialect may be spoken there: see `firstpacket peers`; check --model {model}; "
    "--timeout waits longer",
    "configured": "a setting may be refused: leave --voice, --instructions and --set away, or try another dialect",
    "audio sent": "the peer ended the session or stopped reading while the query was being said",
    "end of speech heard": "the peer's VAD found no end: {other_turn}a longer silence may be needed",
    "commit confirmed": "the peer may not know manual turns: {other_turn}see its section in the docs",
    "answer begun": "the query was taken and nothing followed: {other_turn}--timeout waits longer",
    "audio": "the peer answered without audio: ask for spoken output (modalities, voice) where it takes such settings",
    "audible": "the answer is silence: ask for another voice, or listen to agent.flac in the recording",
    "done": "the answer did not end as it should: a longer --timeout tells a slow end from a missing one",
    "close": "the peer may allow one answer a session: keep --turns-per-session at 1",
}


def is_foreign(message: str) -> bool:
    """Whether the peer says that it does not know a message of ours."""
    return _FOREIGN.search(message) is not None


def hint_for(step: str, error: PeerError | None, header: Header, *, understood: bool = True) -> str:
    """A line of advice, by the peer's own code or words where they are known ones, else by the step. Empty where none
    is known. understood: some message of the peer was, or none came."""
    code, message = (error.code, error.message) if error else ("", "")
    config = header.peer.config
    key_env, model = config.get("key_env"), config.get("model")
    other = next((turn for turn in header.profile.turns if turn != header.mode), None)
    if code.lower() in RATE_LIMIT_CODES:
        return "the account's rate limit is reached: wait, or raise it"
    if not understood or (is_foreign(message) and step != "commit confirmed"):
        return _OTHER_PROTOCOL
    if step == "session" and code == "timeout":  # we were let in: no firewall stands between
        code = ""
    worded = (hint for words, hint in _BY_WORDS if code in _OWN_CODES and re.search(words, message))
    template = next(worded, "") or _BY_CODE.get(code) or _BY_STEP.get(step, "")
    return template.format(
        key=f"the environment variable {key_env}" if key_env else "--key-env names its environment variable",
        model=f"(now {model})" if model else "NAME",
        other_turn=f"try --turn {other}; " if other else "",
    )
