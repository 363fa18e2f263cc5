"""ICE over 127.0.0.1: aioice leaves loopback addresses out; inside `loopback_only` it gathers that one alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from aioice import ice

_only: ContextVar[bool] = ContextVar("loopback_only", default=False)
_gathered = ice.get_host_addresses


def _addresses(use_ipv4: bool, use_ipv6: bool) -> list[str]:
    return ["127.0.0.1"] if _only.get() else _gathered(use_ipv4, use_ipv6)


# Asked for by every gathering in the process; whoever is not inside `loopback_only` sees no difference.
ice.get_host_addresses = _addresses


@contextlib.contextmanager
def loopback_only() -> Iterator[None]:
    """Connections whose candidates are gathered in this block, by this task, use 127.0.0.1 and nothing else."""
    token = _only.set(True)
    try:
        yield
    finally:
        _only.reset(token)
