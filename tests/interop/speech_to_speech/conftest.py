"""One server of Hugging Face for all tests of this folder, with models that are told what to say."""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.connectors.agent.talk import RATE_HZ, spoken
from tests.interop.environments import environment
from tests.interop.processes import free_port, serving

HERE = Path(__file__).parent
HEARD = "what should we do in the old town"
SAID = "Start at the river and walk up to the castle."
SPEECH_S = 1.5
PATIENCE_S = 30.0


class Server(NamedTuple):
    """port: where it listens. answer_s: length of each answer's speech. log: what it says."""

    port: int
    answer_s: float
    log: Path


@pytest.fixture
def server(running: Server) -> Server:
    """The server, past its last session: it holds one at a time and takes a moment to let go of it."""
    until_free(running)
    return running


def until_free(server: Server) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_free(server):
        assert time.monotonic() < deadline, "the server did not let go of its last session"
        time.sleep(0.02)


def is_free(server: Server) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/v1/pool", timeout=PATIENCE_S) as response:
        return bool(json.load(response)["in_use"] == 0)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    python = environment("speech_to_speech")
    folder = tmp_path_factory.mktemp("speech_to_speech")
    speech = folder / "speech.pcm"
    speech.write_bytes(spoken(seconds=SPEECH_S))
    backend, port, log = free_port(), free_port(), folder / "server.log"
    models = [sys.executable, HERE / "backend.py", str(backend), HEARD, SAID, speech]
    command = [python, HERE / "launch.py", str(port), f"http://127.0.0.1:{backend}/v1"]
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    with (
        serving(models, backend, log=folder / "backend.log"),
        serving(command, port, env=offline, log=log, cwd=folder),
    ):
        yield Server(port, len(speech.read_bytes()) / 2 / RATE_HZ, log)
