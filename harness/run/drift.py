"""The proof that a stream does not drift: the real microphone and pacer on the virtual clock, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable

from harness.core.audio import samples_to_ns
from harness.core.clock import VirtualClock
from harness.core.commands import Command
from harness.core.events import AudioSent, Event, StreamStarted
from harness.run.microphone import Cue, Microphone
from harness.run.pacer import Pacer, Slots
from harness.run.virtual import run_virtual, virtual_timer

RATE_HZ = 24_000
CHUNK_SAMPLES = 480


class Sink:
    """A connection that takes everything at once."""

    def prepare(self, command: Command) -> Command:
        return command

    def send(self, prepared: Command) -> int:
        return 0

    def when_drained(self, callback: Callable[[int], None]) -> None:
        callback(0)

    def ping(self) -> None: ...

    async def close(self) -> None: ...


def drift_ns(chunks: int) -> int:
    """Greatest distance, over a stream of `chunks` chunks of 20 ms, between a send and the instant at which its last
    sample exists, ns; 0 is the only right answer."""
    events: list[Event] = []

    async def main(clock: VirtualClock) -> None:
        pacer = Pacer(clock, virtual_timer)
        microphone = Microphone(
            Sink(),
            pacer=pacer,
            slots=Slots(),
            record=events.append,
            on_failure=lambda error: None,
            rate_hz=RATE_HZ,
            chunk_samples=CHUNK_SAMPLES,
        )
        start_ns = microphone.start(Cue(chunks * CHUNK_SAMPLES, lambda: None))
        await pacer.until(start_ns + samples_to_ns((chunks + 1) * CHUNK_SAMPLES, RATE_HZ))

    run_virtual(main)
    start = next(event for event in events if isinstance(event, StreamStarted))
    sent = [event for event in events if isinstance(event, AudioSent)]
    if len(sent) != chunks:
        raise AssertionError(f"{len(sent)} of {chunks} chunks were sent")
    ends = (samples_to_ns(event.sample + event.samples, RATE_HZ) for event in sent)
    return max(abs(event.started_ns - start.t_ns - end) for event, end in zip(sent, ends, strict=True))
