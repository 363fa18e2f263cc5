"""What the GPUs draw and how busy they are, by `nvidia-smi`'s own loop, a few times a second, into the sessions."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

from harness.core.clock import Clock
from harness.core.connector import Sink
from harness.core.errors import PrerequisiteError
from harness.core.events import RawReceived

PERIOD_MS = 200
NAME = "gpu"
"""Name of the `RawReceived` events; their `usage` has `index`, `watts`, `utilization` (0 to 1) and `memory_mb`."""
_FIELDS = ("index", "power.draw", "utilization.gpu", "memory.used")
_MIB_MB = 1.048576


class PowerWatch(asyncio.Protocol):
    """Samples while it is started; each goes to every sink that listens at the time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sinks: list[Sink] = []
        self._rest = b""
        self._process: subprocess.Popen[bytes] | None = None
        self._transport: asyncio.ReadTransport | None = None

    async def start(self) -> None:
        """Raises PrerequisiteError without nvidia-smi."""
        program = shutil.which("nvidia-smi")
        if program is None:
            raise PrerequisiteError("power=true needs nvidia-smi, which comes with NVIDIA's driver")
        self._process = _spawn(program)
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: self, self._process.stdout)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def listen(self, sink: Sink) -> Callable[[], None]:
        """Hand each sample to `sink` from now; call what is returned to end it."""
        self._sinks.append(sink)
        return lambda: self._sinks.remove(sink)

    def data_received(self, data: bytes) -> None:
        t_ns = self._clock.now_ns()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            sample = parse(line.decode("ascii", "replace"))
            for sink in self._sinks if sample else ():
                sink(RawReceived(t_ns=t_ns, name=NAME, usage=sample))


def _spawn(program: str) -> subprocess.Popen[bytes]:
    options = (f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits", f"--loop-ms={PERIOD_MS}")
    return subprocess.Popen(
        [program, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def parse(line: str) -> dict[str, Any]:
    """One line of nvidia-smi; what a GPU does not tell (`[N/A]`) is left out, a line that is none gives nothing."""
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != len(_FIELDS) or not parts[0].isdigit():
        return {}
    scale = {"watts": 1.0, "utilization": 0.01, "memory_mb": _MIB_MB}
    sample: dict[str, Any] = {"index": int(parts[0])}
    for (name, factor), part in zip(scale.items(), parts[1:], strict=True):
        try:
            sample[name] = round(float(part) * factor, 3)
        except ValueError:
            continue
    return sample
