"""Live sessions at the page, from the page's address to the finished recordings."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

import msgspec

from harness.core.clock import Clock
from harness.core.connector import Peer
from harness.core.errors import ConnectorError, HarnessError
from harness.core.run_directory import RunDirectory
from harness.live.run import LiveRequest, check_out, ending, live_directory, live_peer
from harness.live.web.call import NewCall
from harness.live.web.server import Page, serve_page
from harness.live.web.studio import Studio
from harness.run.bench import run_async
from harness.run.rig import Rig


class PageOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where the page is served. port 0: any free one."""

    host: str = "127.0.0.1"
    port: int = 0


class PageResult(msgspec.Struct, frozen=True, kw_only=True):
    """directory: None where no session was held. reasons: why the peer ended sessions by itself, or had none. error: of
    the last one, where the peer never heard anything. fault: what stopped the recording."""

    directory: RunDirectory | None
    reasons: tuple[str, ...] = ()
    error: ConnectorError | None = None
    fault: HarnessError | None = None


def hold_page(
    request: LiveRequest, options: PageOptions, new_call: NewCall, clock: Clock, on_page: Callable[[Page], None]
) -> PageResult:
    """Serve the page until Ctrl-C; each session that is begun there is kept. on_page: gets the address.

    Raises HarnessError.
    """
    peer = live_peer(request, clock)
    check_out(request, peer)
    return run_async(lambda: _serve(request, options, new_call, clock, on_page, peer))


async def _serve(
    request: LiveRequest,
    options: PageOptions,
    new_call: NewCall,
    clock: Clock,
    on_page: Callable[[Page], None],
    peer: Peer,
) -> PageResult:
    async with AsyncExitStack() as stack:
        rig = await stack.enter_async_context(Rig(clock, asked=request.priority))
        await stack.enter_async_context(peer)
        studio = Studio(rig, peer, request.session, partial(live_directory, request, peer), new_call)
        studio.push_to_talk = request.push_to_talk
        page = await stack.enter_async_context(serve_page(studio, host=options.host, port=options.port))
        stack.enter_context(ending(studio.over.set))
        gc.collect()
        gc.freeze()
        stack.callback(gc.unfreeze)
        on_page(page)
        await studio.over.wait()
    reasons = tuple(result.reason for result in studio.results if result.reason)
    errors = [result.error for result in studio.results]
    return PageResult(
        directory=studio.directory,
        reasons=reasons,
        error=errors[-1] if errors and all(errors) else None,
        fault=studio.fault,
    )
