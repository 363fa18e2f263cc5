"""A pipecat bot: SmallWebRTC, its own Silero VAD and RTVI; says one recording whenever the user has stopped speaking.

Arguments: port, file of PCM16 at 24 kHz. Runs in the environment `pipecat`, so it imports nothing of this project.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from aiohttp import web
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.audio.vad.vad_analyzer import VADParams
from pipecat.frames.frames import (
    Frame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
    UserStartedSpeakingFrame,
    UserStoppedSpeakingFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.audio.vad_processor import VADProcessor
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.processors.frameworks.rtvi import RTVIObserver, RTVIProcessor
from pipecat.transports.base_transport import TransportParams
from pipecat.transports.smallwebrtc.connection import SmallWebRTCConnection
from pipecat.transports.smallwebrtc.request_handler import SmallWebRTCRequest, SmallWebRTCRequestHandler
from pipecat.transports.smallwebrtc.transport import SmallWebRTCTransport
from pipecat.workers.runner import WorkerRunner

RATE_HZ = 24_000
STEP = RATE_HZ // 25 * 2
STOP_S = 0.6
SAID = "Start at the river."


class Answerer(FrameProcessor):
    """Stands where recogniser, model and voice would."""

    def __init__(self, pcm: bytes) -> None:
        super().__init__()
        self._pcm = pcm

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        await self.push_frame(frame, direction)
        if isinstance(frame, VADUserStartedSpeakingFrame):
            await self.push_frame(UserStartedSpeakingFrame())
        elif isinstance(frame, VADUserStoppedSpeakingFrame):
            audio = [
                TTSAudioRawFrame(audio=self._pcm[at : at + STEP], sample_rate=RATE_HZ, num_channels=1)
                for at in range(0, len(self._pcm), STEP)
            ]
            said = [LLMFullResponseStartFrame(), LLMTextFrame(SAID), LLMFullResponseEndFrame()]
            for each in [UserStoppedSpeakingFrame(), *said, TTSStartedFrame(), *audio, TTSStoppedFrame()]:
                await self.push_frame(each)


async def hold(connection: SmallWebRTCConnection, pcm: bytes) -> None:
    params = TransportParams(audio_in_enabled=True, audio_out_enabled=True, audio_out_sample_rate=RATE_HZ)
    transport = SmallWebRTCTransport(webrtc_connection=connection, params=params)
    rtvi = RTVIProcessor(transport=transport)
    vad = VADProcessor(vad_analyzer=SileroVADAnalyzer(params=VADParams(stop_secs=STOP_S)))
    steps = Pipeline([transport.input(), vad, rtvi, Answerer(pcm), transport.output()])
    worker = PipelineWorker(steps, params=PipelineParams(), observers=[RTVIObserver(rtvi)], enable_rtvi=False)

    @rtvi.event_handler("on_client_ready")
    async def ready(processor: RTVIProcessor) -> None:
        await processor.set_bot_ready()

    @transport.event_handler("on_client_disconnected")
    async def gone(*_: object) -> None:
        await worker.cancel()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()


def main() -> None:
    port, pcm = int(sys.argv[1]), Path(sys.argv[2]).read_bytes()
    handler = SmallWebRTCRequestHandler(ice_servers=[])
    calls: list[asyncio.Task[None]] = []

    async def offer(request: web.Request) -> web.Response:
        async def begin(connection: SmallWebRTCConnection) -> None:
            calls.append(asyncio.get_running_loop().create_task(hold(connection, pcm)))

        answer = await handler.handle_web_request(SmallWebRTCRequest.from_dict(await request.json()), begin)
        return web.json_response(answer)

    app = web.Application()
    app.router.add_post("/api/offer", offer)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


if __name__ == "__main__":
    main()
