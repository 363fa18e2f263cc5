"""Who may see the page."""

from __future__ import annotations

import pytest

from harness.live.web.doorkeeper import Doorkeeper

pytestmark = pytest.mark.unit


def door(host: str = "127.0.0.1", *, public: bool = False, port: int = 8123) -> Doorkeeper:
    made = Doorkeeper(host, public=public)
    made.port = port
    return made


@pytest.mark.parametrize("host", ["127.0.0.1:8123", "localhost:8123", "[::1]:8123", "127.0.0.2:8123"])
def test_this_machine_may_with_the_token(host: str) -> None:
    ours = door()
    assert ours.refuses(host, ours.token) == 0
    assert ours.refuses(host, ours.token, upgrade=True, origin=f"http://{host}") == 0


@pytest.mark.parametrize(
    "host",
    ["evil.example:8123", "127.0.0.1:8124", "127.0.0.1", "192.168.1.9:8123", "", "127.0.0.1:x", "a@127.0.0.1:8123"],
)
def test_another_name_or_address_may_not(host: str) -> None:
    ours = door()
    assert ours.refuses(host, ours.token) == 403


def test_without_the_token_there_is_nothing_to_see() -> None:
    ours = door()
    for token in ("", "x", ours.token[:-1], ours.token + "a", "\udcff"):
        assert ours.refuses("127.0.0.1:8123", token) == 404
    assert door().token != ours.token
    assert len(ours.token) >= 32


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://127.0.0.1:9", "https://127.0.0.1:8123"]
)
def test_a_socket_is_for_the_page_alone(origin: str | None) -> None:
    ours = door()
    assert ours.refuses("127.0.0.1:8123", ours.token, upgrade=True, origin=origin) == 403


def test_beyond_this_machine_addresses_and_the_given_name_may() -> None:
    ours = door("studio.local", public=True)
    for host in ("192.168.1.9:8123", "studio.local:8123"):
        assert ours.refuses(host, ours.token, upgrade=True, origin=f"https://{host}") == 0
    assert ours.refuses("evil.example:8123", ours.token) == 403
    assert ours.url("192.168.1.9") == f"https://192.168.1.9:8123/{ours.token}/"


def test_the_default_port_is_not_written() -> None:
    assert door(port=80).refuses("localhost", door().token) == 404
    assert door(public=True, port=443).refuses("192.168.1.9", "x") == 404


def test_the_page_may_ask_nobody_else() -> None:
    policy = door().headers("127.0.0.1:8123")["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "connect-src ws://127.0.0.1:8123;" in policy
    assert "unsafe" not in policy
