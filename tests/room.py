"""The machine as a room that several pytest workers share: exact tests have it alone, others have it together.

An `exact` test compares instants with a truth, or asserts that nothing was late: beside other work on the same cores
it would prove less. Locks are files (`flock`), so a worker that dies leaves nothing locked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


class Room:
    """One worker's view of the room, whose locks lie in `folder`: `enter` before a test, `leave` after it.

    The door is held by whoever waits for the room alone, so that newcomers queue behind it and it does not starve.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._room: TextIO = (folder / "room").open("w")
        self._alone = False

    def enter(self, *, alone: bool) -> None:
        """Waits until nobody else is in the room (`alone`), or nobody is in it alone."""
        import fcntl

        if self._alone:
            return
        with self._door():
            fcntl.flock(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        self._alone = alone

    def leave(self, *, next_alone: bool = False) -> None:
        """A test that has the room alone hands it to the next one of the same worker, if that needs it alone too."""
        import fcntl

        if self._alone and next_alone:
            return
        fcntl.flock(self._room, fcntl.LOCK_UN)
        self._alone = False

    def close(self) -> None:
        self._room.close()

    @contextlib.contextmanager
    def _door(self) -> Iterator[None]:
        import fcntl

        with (self.folder / "door").open("w") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            yield
