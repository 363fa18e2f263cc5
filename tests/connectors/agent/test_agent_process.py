"""`python -m connectors.agent`: its one line, its exits, its end with its parent, TLS, and the truth on disk."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from connectors.agent import Agent, Knobs, serve
from harness.core.errors import ConfigError
from tests.connectors.agent.talk import Talk, talking

pytestmark = pytest.mark.loopback
ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "connectors.agent"]


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    process = subprocess.Popen(
        [*COMMAND, "--exit-with-stdin", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.stdin.close() if process.stdin else None
        process.wait(30)
        process.stdout.close()
        process.stderr.close() if process.stderr else None


class Remote(Agent):
    """An agent in another process, as far as `talking` needs it."""

    def __init__(self, url: str) -> None:
        self.url = url


def test_a_turn_with_the_process_and_its_truth_on_disk(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"

    async def turn(url: str) -> Talk:
        async with talking(Remote(url)) as talk:
            await talk.manual()
            await talk.ask()
            await talk.until("response.done")
            return talk

    with running("--truth", str(truth), "--set", "think_ms=5", "--set", "answer_s=0.3") as (process, line):
        assert line["pid"] == process.pid
        assert line["ca"] is None
        assert line["url"].startswith("ws://127.0.0.1:")
        talk = asyncio.run(turn(line["url"]))
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0
        assert process.stdout is not None
        assert process.stdout.read() == ""
    rows = [json.loads(row) for row in truth.read_text().splitlines()]
    assert sum(row["samples"] for row in rows if row["type"] == "write") == len(talk.audio()) // 2
    assert {"open", "ready", "append", "endpoint", "response", "done", "close"} <= {row["type"] for row in rows}


def test_tls_with_its_own_authority() -> None:
    async def turn(url: str, ca: str) -> None:
        context = ssl.create_default_context(cafile=ca)
        async with talking(Remote(url), ssl=context) as talk:
            await talk.manual()
            await talk.ask()
            await talk.until("response.done")

    with running("--tls", "--set", "think_ms=5", "--set", "answer_s=0.3") as (_, line):
        assert line["url"].startswith("wss://")
        asyncio.run(turn(line["url"], line["ca"]))
        assert Path(line["ca"]).exists()
    assert not Path(line["ca"]).exists()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--set", "thinkms=5"], "the agent has no knob 'thinkms': did you mean think_ms?"),
        (["--set", "think_ms"], "--set think_ms: must be KNOB=VALUE"),
        (["--host", "0.0.0.0"], "0.0.0.0 is not a loopback address: the agent answers anyone, so this needs --public"),
        (["--prot", "x"], "unrecognized arguments: --prot x"),
        (["--truth", "/no/such/folder/t.jsonl"], "cannot write the truth log /no/such/folder/t.jsonl: No such file or"),
    ],
)
def test_wrong_options_exit_2_with_one_line(arguments: list[str], line: str) -> None:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


def test_missing_answers_exit_3(tmp_path: Path) -> None:
    command = [*COMMAND, "--answers", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1


def test_a_taken_port_is_a_clear_error() -> None:
    async def twice() -> None:
        async with serve() as agent:
            port = int(agent.url.rpartition(":")[2].partition("/")[0])
            with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1 port {port}"):
                async with serve(Knobs(), port=port):
                    pass

    asyncio.run(twice())
