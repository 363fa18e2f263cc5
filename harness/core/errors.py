"""The error tree of every room.

HarnessError
 ├─ ConfigError          the user asked for something impossible (exit code 2, printed without traceback)
 ├─ PrerequisiteError    something must be installed or set first (exit code 3, printed without traceback)
 ├─ ConnectorError       a peer or the way to it failed; `kind` and `retryable` say how
 ├─ SessionFormatError   a session or run directory cannot be read
 └─ ScoringError         a scorer met a session that it cannot score

Third-party errors are mapped at the boundary with `raise ... from exc`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Literal

SHORTEST_NEAR = 3
"""Letters that a wrong name must have before another is called near."""
FailureKind = Literal["connect", "protocol", "peer", "timeout"]


class HarnessError(Exception):
    """Base of all errors that firstpacket raises on purpose; `str()` is one clear line."""


class ConfigError(HarnessError):
    """A flag, a file or a configuration key is wrong. The message says what to do."""


class PrerequisiteError(HarnessError):
    """A package, a model, a device or an environment variable is missing. The message says how to get it."""


class ConnectorError(HarnessError):
    """The peer, or the way to it, failed.

    kind: `connect` (never reached), `protocol` (what came was not understood), `peer` (the peer said no),
    `timeout` (nothing came). retryable: the same call may succeed later. code: the peer's own code, if any.
    retry_after_s: how long the peer asks us to stay away, if it does.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind,
        retryable: bool = False,
        code: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.kind: FailureKind = kind
        self.retryable = retryable
        self.code = code


class SessionFormatError(HarnessError):
    """A session or run directory is not one, is damaged, or was written by a newer version."""


class ScoringError(HarnessError):
    """A scorer cannot work on this session; a merely missing score is `Unscored`, not an error."""


def nearest(wrong: str, known: Iterable[str]) -> str:
    """One clause for an unknown name: the nearest right one, or all of them (for one of a letter or two, which is near
    to anything).

    >>> nearest("think_m", ["think_ms", "chunk_ms"])
    'did you mean think_ms?'
    """
    names = sorted(known)
    close = difflib.get_close_matches(wrong, names, n=1, cutoff=0.6) if len(wrong) >= SHORTEST_NEAR else []
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(names)}"
