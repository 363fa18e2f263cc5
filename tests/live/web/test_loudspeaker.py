"""The way to the browser's loudspeaker, on the virtual clock: a packet every 20 ms, sound gathered first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.core.events import AudioReceived
from harness.live.speaker import Speaker
from harness.live.web.loudspeaker import Loudspeaker
from harness.run.pacer import Pacer
from harness.run.virtual import run_virtual, virtual_timer

pytestmark = pytest.mark.unit
MS = 1_000_000
RATE = 48_000


class Out:
    def __init__(self) -> None:
        self.packets: list[np.ndarray] = []

    def play(self, samples: np.ndarray) -> None:
        self.packets.append(samples)


def play(
    arrivals: list[tuple[int, int]], *, until_ms: int, continuous: bool = False, level: int = 1000
) -> tuple[list[tuple[int, np.ndarray]], float]:
    """arrivals: (ms, ms of sound). Returns ([(ms at which it left, packet)], wait_ms)."""

    async def main(clock: Any) -> tuple[list[tuple[int, np.ndarray]], float]:
        pacer, out, speaker, left = Pacer(clock, virtual_timer), Out(), Speaker(RATE), []
        made: Any = out
        loudspeaker = Loudspeaker(
            made, speaker, pacer, lambda samples, t_ns: left.append((t_ns // MS, samples)), continuous=continuous
        )
        loudspeaker.start()
        for at_ms, length_ms in arrivals:
            await pacer.until(at_ms * MS)
            samples = np.full(length_ms * RATE // 1000, level, np.int16)
            speaker.put(samples, RATE)
            loudspeaker.take(AudioReceived(t_ns=clock.now_ns(), samples=len(samples), rate_hz=RATE, pcm=b""))
        await pacer.until(until_ms * MS)
        loudspeaker.stop()
        assert all(a is b for a, (_, b) in zip(out.packets, left, strict=True))
        return left, loudspeaker.wait_ms

    return run_virtual(main)


def test_a_packet_leaves_every_20_ms_whatever_there_is_to_say() -> None:
    left, _ = play([], until_ms=101)
    assert [at for at, _ in left] == [0, 20, 40, 60, 80, 100]
    assert all(len(samples) == 960 and not samples.any() for _, samples in left)


def test_a_burst_leaves_with_the_next_packet() -> None:
    left, wait_ms = play([(50, 100)], until_ms=200)
    assert [at for at, samples in left if samples.any()] == [60, 80, 100, 120, 140]
    assert wait_ms == 10


def test_paced_sound_is_gathered_so_that_it_is_not_chopped() -> None:
    arrivals = [(51 + 20 * number + 7 * (number % 3), 20) for number in range(10)]  # up to 14 ms late
    left, wait_ms = play(arrivals, until_ms=400)
    loud = [at for at, samples in left if samples.any()]
    assert all(samples.all() for _, samples in left if samples.any())
    assert loud == list(range(loud[0], loud[0] + 200, 20))
    assert wait_ms == loud[0] - 51
    assert wait_ms <= 60


def test_a_single_short_sound_is_not_kept_back() -> None:
    left, wait_ms = play([(50, 10)], until_ms=200)
    assert [at for at, samples in left if samples.any()] == [100]
    assert wait_ms == 50


@pytest.mark.parametrize(("continuous", "level", "packets"), [(True, 50, 3), (True, 1000, 25), (False, 50, 25)])
def test_what_came_late_of_an_endless_stream_is_made_up_where_it_is_soundless(
    continuous: bool, level: int, packets: int
) -> None:
    # Half a second at once, after a stall: one packet leaves now, two stay as the cushion.
    left, _ = play([(100, 500)], until_ms=900, continuous=continuous, level=level)
    assert sum(bool(samples.any()) for _, samples in left) == packets
