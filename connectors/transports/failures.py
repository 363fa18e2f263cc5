"""Why a connection could not be made, in words for a person: without addresses, numbers or names of exceptions."""

from __future__ import annotations

import os
import socket
import ssl

NO_HTTP = "no HTTP server there"


def plain(exc: BaseException) -> str:
    """What the system or a library says, in one line."""
    if isinstance(exc, ConnectionRefusedError):
        return "connection refused, nothing listens there"
    if isinstance(exc, ConnectionResetError | BrokenPipeError | ConnectionAbortedError):
        return "the connection was cut off"
    if isinstance(exc, socket.gaierror):
        return "no such host"
    if isinstance(exc, OSError) and not isinstance(exc, ssl.SSLError) and exc.errno:
        return os.strerror(exc.errno).lower()
    return " ".join(str(exc).split()) or type(exc).__name__
