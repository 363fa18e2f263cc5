"""Opening a session over WebSocket: a codec, an address and the settings become a connection that is set up."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.codecs.client import ClientCodec
from connectors.endpoint import Endpoint
from connectors.session import CodecConnection
from connectors.transports.websocket import open_websocket
from harness.core.clock import Clock
from harness.core.commands import Configure
from harness.core.connector import PeerOptions, Sink
from harness.core.events import ConnectionPhase, RoundTrip


async def open_session(
    codec: ClientCodec,
    endpoint: Endpoint,
    configure: Configure,
    sink: Sink,
    *,
    clock: Clock,
    options: PeerOptions,
    output_rate_hz: int = 0,
    headers: Mapping[str, str] | None = None,
    subprotocols: tuple[str, ...] = (),
) -> CodecConnection:
    """Connect and set up; whoever opens it closes it. output_rate_hz: what was asked for (0: nothing). headers: in the
    place of the endpoint's own. Raises ConnectorError, with the key still in it where the peer repeats it."""
    connection = CodecConnection(codec, sink, clock, output_rate_hz=output_rate_hz, wire=options.wire)
    connection.transport = await open_websocket(
        endpoint.url,
        clock=clock,
        on_message=connection.on_message,
        on_phase=lambda phase, t_ns: sink(ConnectionPhase(t_ns=t_ns, phase=phase)),
        on_rtt=lambda t_ns, rtt_ns: sink(RoundTrip(t_ns=t_ns, rtt_ns=rtt_ns)),
        on_closed=connection.on_closed,
        headers=endpoint.headers() if headers is None else headers,
        subprotocols=subprotocols,
        tls=endpoint.tls(),
        timeout_s=options.timeout_s,
    )
    try:
        await connection.configure(configure, options.timeout_s)
    except BaseException:
        await connection.close()
        raise
    return connection
