"""A client of DashScope's own package: three turns with whatever listens at a URL; prints what it saw as JSON.

Arguments: the URL without a query, a file of PCM16 at 24 kHz that is said. Needs nothing of this project.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
from pathlib import Path
from typing import Any

from dashscope.audio.qwen_omni import (
    AudioFormat,
    MultiModality,
    OmniRealtimeCallback,
    OmniRealtimeConversation,
)

PATIENCE_S = 30
CHUNK = 4800
"""100 ms."""
SILENCE = bytes(24_000 * 2)


class Seen(OmniRealtimeCallback):
    """Collects the events and lets the main thread wait for one."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._news = threading.Condition()

    def on_event(self, message: Any) -> None:
        with self._news:
            self.events.append(message)
            self._news.notify_all()

    def until(self, name: str, after: int = 0) -> int:
        """The position behind the first event `name` from position `after` on."""
        with self._news:
            found = self._news.wait_for(lambda: self._find(name, after), timeout=PATIENCE_S)
        if not found:
            raise TimeoutError(f"no {name} among {[event['type'] for event in self.events]}")
        return int(found)

    def _find(self, name: str, after: int) -> int | None:
        return next((i + 1 for i, event in enumerate(self.events) if i >= after and event["type"] == name), None)


def turn(events: list[dict[str, Any]]) -> dict[str, Any]:
    """One turn's events in short."""
    done = events[-1]["response"]
    deltas = [event for event in events if event["type"] == "response.audio.delta"]
    names = [event["type"] for event in events]
    return {
        "types": [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name],
        "audio_bytes": sum(len(base64.b64decode(event["delta"])) for event in deltas),
        "transcript": "".join(e["delta"] for e in events if e["type"] == "response.audio_transcript.delta"),
        "status": done["status"],
        "usage": done.get("usage"),
    }


def say(talk: OmniRealtimeConversation, pcm: bytes) -> None:
    for at in range(0, len(pcm), CHUNK):
        talk.append_audio(base64.b64encode(pcm[at : at + CHUNK]).decode())


def main(url: str, speech: bytes) -> dict[str, Any]:
    seen = Seen()
    talk = OmniRealtimeConversation(model="qwen3-omni-flash-realtime", callback=seen, url=url, api_key="none")
    talk.connect()
    at = seen.until("session.created")

    def settings(vad: bool, after: int) -> int:
        talk.update_session(
            output_modalities=[MultiModality.AUDIO, MultiModality.TEXT],
            voice="Cherry",
            input_audio_format=AudioFormat.PCM_24000HZ_MONO_16BIT,
            output_audio_format=AudioFormat.PCM_24000HZ_MONO_16BIT,
            enable_turn_detection=vad,
        )
        return seen.until("session.updated", after)

    begin = settings(True, at)
    say(talk, speech + SILENCE)
    end = seen.until("response.done", begin)
    heard = [turn(seen.events[begin:end])]

    begin = settings(False, end)
    say(talk, speech)
    talk.commit()
    talk.create_response(instructions="Be brief.")
    end = seen.until("response.done", begin)
    heard.append(turn(seen.events[begin:end]))

    begin = end
    talk.create_response()
    seen.until("response.audio.delta", begin)
    talk.cancel_response()
    end = seen.until("response.done", begin)
    heard.append(turn(seen.events[begin:end]))
    talk.close()
    errors = [event["error"] for event in seen.events if event["type"] == "error"]
    session = {"id": talk.get_session_id(), "last_response": talk.get_last_response_id()}
    return {"turns": heard, "errors": errors, **session, "first_audio_ms": talk.get_last_first_audio_delay()}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]).read_bytes())))
