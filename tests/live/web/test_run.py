"""`firstpacket live --web`: what it refuses, and the page from its address to the end."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import cli
from harness.core.clock import SystemClock
from harness.core.errors import ConfigError
from harness.live.run import LiveRequest
from harness.live.web.run import PageOptions, hold_page
from harness.live.web.server import Page

CLOCK = SystemClock()


def no_call(clock: Any) -> Any:
    raise AssertionError("nobody came")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "8000"], "--port: is where the page of --web is served; add --web"),
        (["--host", "0.0.0.0"], "--host: is where the page of --web is served; add --web"),
        (["--web", "--aec"], "--aec: the page asks its browser for that; leave it away with --web"),
        (["--web", "--rate", "48000"], "--rate: the page asks its browser for that; leave it away with --web"),
        (["--web", "--input", "1"], "--input: the page asks its browser for that; leave it away with --web"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(cli, ["live", *arguments])
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.loopback
def test_ctrl_c_ends_the_page_and_what_nobody_used_leaves_nothing(tmp_path: Path) -> None:
    pages: list[Page] = []

    def told(page: Page) -> None:
        pages.append(page)
        signal.raise_signal(signal.SIGINT)

    request = LiveRequest(out=tmp_path / "run")
    result = hold_page(request, PageOptions(), no_call, CLOCK, told)
    assert (result.directory, result.reasons, result.error) == (None, (), None)
    assert not (tmp_path / "run").exists()
    assert pages[0].url.startswith("http://127.0.0.1:")


@pytest.mark.unit
def test_a_peer_that_nobody_can_speak_with_is_told_before_anything_is_served() -> None:
    with pytest.raises(ConfigError, match="there is no live session with it"):
        hold_page(LiveRequest(peer="chat:http://127.0.0.1:1"), PageOptions(), no_call, CLOCK, lambda page: None)


@pytest.mark.unit
def test_a_directory_that_is_in_use_is_told_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(ConfigError, match="is no run directory: choose another --out"):
        hold_page(LiveRequest(out=tmp_path), PageOptions(), no_call, CLOCK, lambda page: pytest.fail("served"))
