"""The worker's process group: what the model started ends with the worker."""

from __future__ import annotations

import contextlib
import os
import signal


def kill_group(leader: int) -> None:
    """Kill the process `leader` and all that belongs to the group that it leads; nothing if there are none left."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS says the latter of zombies
            os.killpg(leader, signal.SIGKILL)


def leave(code: int) -> None:
    """End this process at once, and with it whatever it started if it leads a group (then by a signal)."""
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(code)
