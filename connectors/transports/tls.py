"""TLS begun on a connected transport, so that the one below stays in sight and a failure is told in words."""

from __future__ import annotations

import asyncio
import ssl

from connectors.transports.failures import plain
from harness.core.errors import ConnectorError

CERTIFICATE_HINT = "--set ca=FILE trusts a certificate of your own"
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING", "HTTP_REQUEST")


async def start_tls(
    raw: asyncio.WriteTransport, protocol: asyncio.Protocol, context: ssl.SSLContext, host: str, port: int, scheme: str
) -> asyncio.Transport:
    """The encrypted transport over `raw`, which is gone after a failure. scheme: of a URL without TLS.

    Raises ConnectorError.
    """
    try:
        encrypted = await asyncio.get_running_loop().start_tls(raw, protocol, context, server_hostname=host)
    except BaseException as exc:
        raw.abort()
        if not isinstance(exc, OSError):
            raise
        why = tls_failed(exc, scheme)
        cut_off = not isinstance(exc, ssl.SSLError)
        raise ConnectorError(f"TLS with {host}:{port} failed: {why}", kind="connect", retryable=cut_off) from exc
    assert encrypted is not None
    return encrypted


def tls_failed(exc: OSError, scheme: str) -> str:
    """Why TLS did not come about. scheme: what the peer's URL would begin with without TLS."""
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"{exc.verify_message}; {CERTIFICATE_HINT}"
    reason = exc.reason or "" if isinstance(exc, ssl.SSLError) else ""
    if reason in _NO_TLS or isinstance(exc, ConnectionError):
        return f"there seems to be no TLS there, try {scheme}://"
    return reason.replace("_", " ").lower() or plain(exc)
