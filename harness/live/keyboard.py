"""Single keys of a terminal, while a session runs. Nothing where there is no terminal, or no termios (Windows)."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self


class Keyboard:
    """`actions`: what each key does. Used inside the loop that measures; leaving gives the terminal back as it was."""

    def __init__(self, actions: Mapping[str, Callable[[], None]]) -> None:
        self._actions = actions
        self._before: list[Any] | None = None
        self._fd = -1

    @property
    def works(self) -> bool:
        """Whether keys are read."""
        return self._before is not None

    def __enter__(self) -> Self:
        try:
            import termios
            import tty

            fd = sys.stdin.fileno()
            if os.isatty(fd):
                self._before = termios.tcgetattr(fd)
                tty.setcbreak(fd)
                self._fd = fd
                asyncio.get_running_loop().add_reader(fd, self._pressed)
        except (ImportError, OSError, ValueError, NotImplementedError):
            self._before = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is None:
            return
        import termios

        asyncio.get_running_loop().remove_reader(self._fd)
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)
        self._before = None

    def _pressed(self) -> None:
        try:
            pressed = os.read(self._fd, 64).decode("utf-8", "replace")
        except BlockingIOError:
            return
        except OSError:
            pressed = ""
        if not pressed:  # the terminal is gone
            asyncio.get_running_loop().remove_reader(self._fd)
            return
        for key in pressed:
            if (action := self._actions.get(key.lower())) is not None:
                action()
