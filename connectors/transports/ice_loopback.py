"""ICE over 127.0.0.1: aioice leaves loopback addresses out; inside `loopback_only` it gathers that one alone, inside
`loopback_too` that one besides this machine's others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Literal

from aioice import ice

LOOPBACK = "127.0.0.1"
_wanted: ContextVar[Literal["", "only", "too"]] = ContextVar("loopback_wanted", default="")
_gathered = ice.get_host_addresses


def _addresses(use_ipv4: bool, use_ipv6: bool) -> list[str]:
    if _wanted.get() == "only":
        return [LOOPBACK]
    found = _gathered(use_ipv4, use_ipv6)
    return [LOOPBACK, *found] if _wanted.get() == "too" else found


# Asked for by every gathering in the process; whoever is not inside a block below sees no difference.
ice.get_host_addresses = _addresses


@contextlib.contextmanager
def loopback_only() -> Iterator[None]:
    """Connections whose candidates are gathered in this block, by this task, use 127.0.0.1 and nothing else."""
    with _want("only"):
        yield


@contextlib.contextmanager
def loopback_too() -> Iterator[None]:
    """Connections whose candidates are gathered in this block, by this task, use 127.0.0.1 besides the others."""
    with _want("too"):
        yield


@contextlib.contextmanager
def _want(which: Literal["only", "too"]) -> Iterator[None]:
    token = _wanted.set(which)
    try:
        yield
    finally:
        _wanted.reset(token)
