"""A voice bot made of pipecat's own parts behind its SmallWebRTC: `python bot.py PORT HEARD SAID SPEECH`.

Theirs: the offer's handler, the transport, Silero, the turn logic, RTVI. Told what to do: the recogniser (it
understands HEARD), the language model (it writes SAID word by word), the voice (the file SPEECH, PCM16 at 24 kHz).
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import aioice.ice
import uvicorn
from fastapi import FastAPI
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.frames.frames import (
    Frame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
    UserStoppedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.audio.vad_processor import VADProcessor
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.transports.base_transport import TransportParams
from pipecat.transports.smallwebrtc.connection import SmallWebRTCConnection
from pipecat.transports.smallwebrtc.request_handler import SmallWebRTCRequest, SmallWebRTCRequestHandler
from pipecat.transports.smallwebrtc.transport import SmallWebRTCTransport
from pipecat.turns.user_start import VADUserTurnStartStrategy
from pipecat.turns.user_stop import SpeechTimeoutUserTurnStopStrategy
from pipecat.turns.user_turn_processor import UserTurnProcessor
from pipecat.turns.user_turn_strategies import UserTurnStrategies
from pipecat.utils.time import time_now_iso8601
from pipecat.workers.runner import WorkerRunner

VOICE_HZ = 24_000
BLOCK = 4800
"""100 ms of speech a frame."""
PAUSE_S = 0.3
"""Silence that ends a turn, beyond the detector's own."""


class Recogniser(FrameProcessor):
    """Understands the same whenever speech ends."""

    def __init__(self, heard: str) -> None:
        super().__init__()
        self._heard = heard

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        await self.push_frame(frame, direction)
        if isinstance(frame, VADUserStoppedSpeakingFrame) and direction is FrameDirection.DOWNSTREAM:
            await self.push_frame(TranscriptionFrame(self._heard, "user", time_now_iso8601(), finalized=True))


class Voice(FrameProcessor):
    """Writes and speaks the same answer to every turn."""

    def __init__(self, said: str, speech: bytes) -> None:
        super().__init__()
        self._said, self._speech = said, speech

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        await self.push_frame(frame, direction)
        if isinstance(frame, UserStoppedSpeakingFrame) and direction is FrameDirection.DOWNSTREAM:
            for each in self._answer():
                await self.push_frame(each)

    def _answer(self) -> list[Frame]:
        words = [LLMTextFrame(f"{word} ") for word in self._said.split()]
        blocks = [self._speech[at : at + BLOCK] for at in range(0, len(self._speech), BLOCK)]
        sound = [TTSAudioRawFrame(audio=block, sample_rate=VOICE_HZ, num_channels=1) for block in blocks]
        written = [LLMFullResponseStartFrame(), *words, LLMFullResponseEndFrame()]
        return [*written, TTSStartedFrame(), *sound, TTSStoppedFrame()]


def pipeline(connection: SmallWebRTCConnection, heard: str, said: str, speech: bytes) -> PipelineWorker:
    """One call's bot; it ends with its call."""
    sound = TransportParams(audio_in_enabled=True, audio_out_enabled=True, audio_out_sample_rate=VOICE_HZ)
    transport = SmallWebRTCTransport(connection, sound)
    turns = UserTurnStrategies(
        start=[VADUserTurnStartStrategy()], stop=[SpeechTimeoutUserTurnStopStrategy(user_speech_timeout=PAUSE_S)]
    )
    parts = [
        transport.input(),
        VADProcessor(vad_analyzer=SileroVADAnalyzer()),
        Recogniser(heard),
        UserTurnProcessor(user_turn_strategies=turns),
        Voice(said, speech),
        transport.output(),
    ]
    worker = PipelineWorker(Pipeline(parts))

    @transport.event_handler("on_client_disconnected")
    async def gone(*_: Any) -> None:
        await worker.cancel()

    return worker


def app(heard: str, said: str, speech: bytes) -> FastAPI:
    api = FastAPI()
    calls = SmallWebRTCRequestHandler()
    running: set[asyncio.Task[None]] = set()

    async def begin(connection: SmallWebRTCConnection) -> None:
        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(pipeline(connection, heard, said, speech))
        task = asyncio.create_task(runner.run())
        running.add(task)
        task.add_done_callback(running.discard)

    @api.post("/api/offer")
    async def offer(asked: dict[str, Any]) -> Any:
        return await calls.handle_web_request(SmallWebRTCRequest.from_dict(asked), begin)

    @api.get("/running")
    async def count() -> int:
        return len(running)

    return api


if __name__ == "__main__":
    aioice.ice.get_host_addresses = lambda *_, **__: ["127.0.0.1"]
    port, heard, said, speech = sys.argv[1:]
    uvicorn.run(app(heard, said, Path(speech).read_bytes()), host="127.0.0.1", port=int(port))
