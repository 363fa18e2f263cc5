"""A model whose worker runs under another Python: what only that one has is found, what it lacks is said."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from connectors.local import settings
from harness.core.commands import CreateResponse
from harness.core.errors import ConfigError, PrerequisiteError
from harness.core.events import TextReceived
from tests.connectors.local.local_driver import local, talking

pytestmark = pytest.mark.loopback

MODEL = """
import sys
from connectors.local.model import Declaration, LocalModel, Text

class Where(LocalModel):
    def __init__(self, *, rate_hz: int = 16000):
        self.rate_hz = rate_hz

    @property
    def declaration(self):
        return Declaration(output_rate_hz=self.rate_hz)

    def push_audio(self, pcm):
        return None

    def end_turn(self):
        yield Text(sys.prefix)
        yield Text(" ".join(name for name in ("soxr", "websockets") if name in sys.modules or has(name)))

def has(name):
    from importlib.util import find_spec
    return find_spec(name) is not None
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment with msgspec, numpy and one module of its own, and without the harness."""
    folder = tmp_path_factory.mktemp("elsewhere") / "venv"
    packages = bare(folder)
    for kept in sorted(Path(np.__file__).parents[1].glob("*")):
        if kept.name.startswith(("numpy", "msgspec")):
            (packages / kept.name).symlink_to(kept)
    (packages / "only_there.py").write_text(MODEL)
    return folder


def bare(folder):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    return packages


def said(environment, target="only_there:Where"):
    async def scenario():
        async with local(target, python=environment, rate_hz=8000) as peer, talking(peer, "manual") as talk:
            talk.do(CreateResponse())
            await talk.answer()
        return peer, [event.text for event in talk.of(TextReceived)]

    return asyncio.run(scenario())


def test_the_worker_runs_there_with_what_is_there_only(environment):
    peer, (prefix, ours) = said(environment)
    assert os.path.realpath(prefix) == os.path.realpath(environment)
    assert ours == ""
    assert peer.config == {
        "target": "only_there:Where",
        "python": str(environment),
        "rate_hz": "8000",
        "facts": {},
    }


def test_the_question_before_the_run_is_asked_there_too(environment):
    assert local("only_there:Where", python=environment / "bin" / "python", rate_hz=8000).profile.output_rate_hz == 8000


def test_a_name_that_only_this_python_knows_works_there(environment, monkeypatch):
    class Point:
        value = "only_there:Where"

    monkeypatch.setattr(settings, "found", lambda group: {"where": Point} if group == settings.MODELS else {})
    peer, (prefix, _) = said(environment, target="where")
    assert os.path.realpath(prefix) == os.path.realpath(environment)
    assert peer.label == "local-where"


def test_a_python_that_cannot_run_a_worker_is_refused_with_the_way_out(tmp_path):
    bare(tmp_path / "empty")
    with pytest.raises(PrerequisiteError, match=r"has no msgspec and no numpy: .*/bin/python -m pip install msgspec"):
        local("only_there:Where", python=tmp_path / "empty")


@pytest.mark.parametrize(
    ("python", "said"), [("no-such-python", "no such program"), ("true", "does not run as a Pyth")]
)
def test_what_is_no_python_is_one_clear_line(python, said):
    with pytest.raises(ConfigError, match=said):
        local("only_there:Where", python=python)
