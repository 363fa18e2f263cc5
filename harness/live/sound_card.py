"""Sound cards through PortAudio (extra `mic`): which there are, which is meant, and one full-duplex stream."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from harness.core.audio import ms_to_samples
from harness.core.clock import Clock
from harness.core.errors import ConfigError, PrerequisiteError, nearest
from harness.live.device import Block, DeviceFacts, Fill

BLOCK_MS = 10
"""Also what the echo canceller takes at once."""
RATES_HZ = (48_000, 24_000, 44_100, 16_000)
"""Tried in this order, then the devices' own."""
NO_DEVICE = (
    "no sound device with a microphone and a loudspeaker was found: plug one in (Linux: is a sound server running?), "
    "or speak through a browser with --web"
)


class ListedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """One device as PortAudio lists it. index: what `--input` and `--output` take. is_default: for input or output."""

    index: int
    name: str
    host: str
    inputs: int
    outputs: int
    rate_hz: int
    default_input: bool = False
    default_output: bool = False


@functools.cache
def _portaudio() -> Any:
    try:
        import sounddevice
    except ImportError as exc:
        raise PrerequisiteError("a sound card needs the extra mic: pip install 'firstpacket[mic]'") from exc
    except OSError as exc:
        raise PrerequisiteError(
            "PortAudio is not installed: apt install libportaudio2 (Debian, Ubuntu), brew install portaudio (macOS); "
            "or speak through a browser with --web"
        ) from exc
    return sounddevice


def list_devices() -> list[ListedDevice]:
    """All devices, empty where there is none. Raises PrerequisiteError without PortAudio."""
    portaudio = _portaudio()
    hosts = portaudio.query_hostapis()
    chosen = [_default(portaudio, kind) for kind in ("input", "output")]
    return [
        ListedDevice(
            index=index,
            name=found["name"],
            host=hosts[found["hostapi"]]["name"],
            inputs=found["max_input_channels"],
            outputs=found["max_output_channels"],
            rate_hz=round(found["default_samplerate"]),
            default_input=index == chosen[0],
            default_output=index == chosen[1],
        )
        for index, found in enumerate(portaudio.query_devices())
    ]


def _default(portaudio: Any, kind: str) -> int:
    try:
        return int(portaudio.query_devices(kind=kind)["index"])
    except (portaudio.PortAudioError, ValueError):
        return -1


def pick(devices: list[ListedDevice], wish: str | None, *, capture: bool) -> ListedDevice:
    """The device that is meant: by index, by a part of its name, or the default one.

    Raises PrerequisiteError where there is none at all, ConfigError where the wish names none, or several.
    """
    option = "--input" if capture else "--output"
    able = [each for each in devices if (each.inputs if capture else each.outputs)]
    if not able:
        raise PrerequisiteError(NO_DEVICE)
    if wish is None:
        return next((each for each in able if (each.default_input if capture else each.default_output)), able[0])
    if wish.isdigit():
        found = [each for each in able if each.index == int(wish)]
    else:
        exact = [each for each in able if each.name.lower() == wish.lower()]
        found = exact or [each for each in able if wish.lower() in each.name.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(f"{each.index} {each.name}" for each in found[:6])
        raise ConfigError(f"{option} {wish}: several devices are called so ({several}); give the number")
    known = [each.name for each in able]
    raise ConfigError(f"{option} {wish}: no such device; {nearest(wish, known)} (--list-devices shows all)")


class SoundCard:
    """One full-duplex stream of two devices, or of one. Opened here, so that its latencies are known before it starts.

    Raises ConfigError for a rate that the devices do not take, PrerequisiteError for ones that cannot be opened.
    """

    def __init__(self, clock: Clock, capture: ListedDevice, playback: ListedDevice, rate_hz: int | None = None) -> None:
        self._clock = clock
        self._portaudio = _portaudio()
        rate_hz = self._rate(capture, playback, rate_hz)
        block = ms_to_samples(BLOCK_MS, rate_hz)
        self._fill: Fill | None = None
        self._deliver: Callable[[Block], None] | None = None
        self._ended: Callable[[], None] | None = None
        try:
            self._stream = self._portaudio.Stream(
                samplerate=rate_hz,
                blocksize=block,
                device=(capture.index, playback.index),
                channels=1,
                dtype="int16",
                latency="low",
                callback=self._callback,
                finished_callback=self._finished,
            )
        except self._portaudio.PortAudioError as exc:
            raise PrerequisiteError(
                f"{_both(capture, playback)} cannot be opened ({_why(exc)}): another program may hold it; "
                "--list-devices shows others"
            ) from exc
        latency_in_s, latency_out_s = self._stream.latency
        self.facts = DeviceFacts(
            input=capture.name,
            output=playback.name,
            host=capture.host,
            rate_hz=rate_hz,
            block_samples=block,
            input_latency_ms=round(latency_in_s * 1000, 3),
            output_latency_ms=round(latency_out_s * 1000, 3),
            anchor=f"PortAudio callback less its reported input latency of {latency_in_s * 1000:.1f} ms",
        )

    def start(self, fill: Fill, deliver: Callable[[Block], None], ended: Callable[[], None]) -> None:
        self._fill, self._deliver, self._ended = fill, deliver, ended
        try:
            self._stream.start()
        except self._portaudio.PortAudioError as exc:
            raise PrerequisiteError(f"the sound device does not start: {_why(exc)}") from exc

    def stop(self) -> None:
        self._ended = None
        with suppress(self._portaudio.PortAudioError):
            self._stream.abort()
        with suppress(self._portaudio.PortAudioError):
            self._stream.close()

    def _callback(self, captured: Any, out: Any, frames: int, time: Any, status: Any) -> None:
        """In PortAudio's thread: moves samples, and nothing else."""
        handed_ns = self._clock.now_ns()
        if self._fill is None or self._deliver is None:
            return
        played, _ = self._fill(frames)
        out[:, 0] = played
        lost, gap = bool(status.input_overflow), bool(status.output_underflow)
        self._deliver(Block(captured[:, 0].copy(), handed_ns, played, lost, gap))

    def _finished(self) -> None:
        if self._ended is not None:
            self._ended()

    def _rate(self, capture: ListedDevice, playback: ListedDevice, asked_hz: int | None) -> int:
        tried = (asked_hz,) if asked_hz else (*RATES_HZ, capture.rate_hz, playback.rate_hz)
        for rate_hz in tried:
            try:
                self._portaudio.check_input_settings(capture.index, 1, "int16", samplerate=rate_hz)
                self._portaudio.check_output_settings(playback.index, 1, "int16", samplerate=rate_hz)
            except self._portaudio.PortAudioError:
                continue
            return rate_hz
        own = f"{capture.rate_hz:,} and {playback.rate_hz:,} Hz are their own"
        if asked_hz:
            raise ConfigError(f"--rate {asked_hz}: {_both(capture, playback)} cannot do that; {own}")
        raise PrerequisiteError(f"{_both(capture, playback)} have no sample rate in common; {own}: choose others")


def _both(capture: ListedDevice, playback: ListedDevice) -> str:
    return capture.name if capture.index == playback.index else f"{capture.name} with {playback.name}"


def _why(exc: Exception) -> str:
    """PortAudio's own words, on one line."""
    return " ".join(str(exc.args[0] if exc.args else exc).split())
