"""The command line, run in this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from harness import cli


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Answer]


def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`firstpacket` with the given arguments: its exit code and what it printed."""

    def run(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["firstpacket", *map(str, arguments)])
        code: object = 0
        try:
            cli.main()
        except SystemExit as exc:
            code = exc.code or 0
        said = capsys.readouterr()
        assert isinstance(code, int)
        return Answer(code, said.out, said.err)

    return run
