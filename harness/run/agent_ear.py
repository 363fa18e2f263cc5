"""A session's ear: what is played of the agent goes to the process that hears, and what that finds to the director.

Keeps the zero-buffer playout model ahead of playout, knows pauses, stalls and flushes apart, and hears nothing itself
(`harness.run.listener` does, in a process of its own). What is told lies in the past or in the future; the director
sees what can still be met and records what cannot.
"""

from __future__ import annotations

from harness.core.audio import NS_PER_MS, NS_PER_S, samples_to_ns
from harness.core.events import (
    AudioReceived,
    CommandSent,
    Event,
    Interrupted,
    PlaybackState,
    ResponseDone,
    TextReceived,
)
from harness.core.profile import Profile
from harness.core.scenario import Directing, EndRule
from harness.run.ear_channel import Conclude, Concluded, Flush, FromEar, Sound, Started, Stopped
from harness.run.ear_desk import EarDesk

RUN_DRY_NS = 150 * NS_PER_MS
"""So long after playout ran dry what was spoken has ended; longer gaps are heard as silence of this length."""
HOLD_NS = 2_000 * NS_PER_MS
"""A pause inside a response that is not complete is no end below this (the sentences of an answer lie that far apart);
nor is a stall in one below `STALL_NS`."""
STALL_NS = 3_000 * NS_PER_MS
JUDGED_NS = 200 * NS_PER_MS
"""So long after it is heard, speech is known to be speech."""
ANNOUNCED_NS = 500 * NS_PER_MS
"""A continuous peer's word that it has ended counts for the speech that ends within this after it: what is on its way
still sounds, and a word that comes much earlier than the end is about something else than sound."""

RULES = {
    "run_dry_ms": RUN_DRY_NS // NS_PER_MS,
    "hold_ms": HOLD_NS // NS_PER_MS,
    "stall_ms": STALL_NS // NS_PER_MS,
    "announced_ms": ANNOUNCED_NS // NS_PER_MS,
}
"""The above, for the session's record."""


class AgentEar:
    """`take` each event of the session; `listen` once a chunk; `close` at its end."""

    def __init__(self, director: Directing, desk: EarDesk, profile: Profile) -> None:
        self._director = director
        self._desk = desk
        self._flush_on = frozenset(profile.flush_on)
        self._turns = not profile.continuous
        self._says_stopped = profile.playback_state
        self._epoch = 0
        self._dry = True
        self._open = False
        self._end_ns = 0
        self._resumed_ns = 0  # when it was heard again after the last stall
        self._closed: set[str] = set()
        self._part = False  # of a response that is not complete
        self._speaking = False
        self._goes_on = False
        self._pause_ns: int | None = None  # when the response that is not complete fell silent
        self._announced_ns: int | None = None
        self._announced: EndRule = ""
        self.spoke = False
        """Whether the agent was ever heard to speak."""
        self.deaf = ""
        """Why nothing is heard any more, "" while it is."""
        self.unheard = 0
        """Packets that the process which hears had no time for."""
        self._number = desk.open(self)
        desk.send(Flush(self._number, self._epoch))  # a listener that is ready before the first sound

    def take(self, event: Event) -> None:
        """An event of the session, in order of arrival; returns at once."""
        if event.__struct_config__.tag in self._flush_on:
            self._flush(event.t_ns)
        if isinstance(event, AudioReceived):
            if event.samples > 0 and event.response not in self._closed:
                self._packet(event)
        elif isinstance(event, ResponseDone | Interrupted):
            if event.response:
                self._closed.add(event.response)
            if isinstance(event, ResponseDone):
                self._done(event.t_ns)
        elif isinstance(event, CommandSent) and event.command == "cancel" and event.detail.get("response"):
            self._closed.add(str(event.detail["response"]))
        elif isinstance(event, PlaybackState):
            if event.state == "stopped" and not self._turns:
                self._announce(event.t_ns, "playback_stopped")
        elif isinstance(event, TextReceived) and not self._turns and event.text.strip():
            self._director.agent_wrote(event.t_ns)

    def listen(self, now_ns: int) -> None:
        """Once a chunk: what ran dry, or has been silent for long, has ended."""
        dry_ns = STALL_NS if self._part else RUN_DRY_NS
        if self._open and now_ns >= self._end_ns + dry_ns:
            self._conclude(final=False)
        elif self._pause_ns is not None and self._held(now_ns, self._pause_ns):
            self._director.agent_stopped(self._pause_ns)
            self._pause_ns = None

    def told(self, message: FromEar) -> None:
        """What the process found; of sound that was flushed since then, nothing counts."""
        if isinstance(message, Started | Stopped | Concluded) and message.epoch == self._epoch:
            if isinstance(message, Started):
                self._started(message)
            elif isinstance(message, Stopped):
                self._stopped(message)
            else:
                self._concluded(message)

    def lost(self, why: str) -> None:
        self.deaf = why

    def dropped(self) -> None:
        self.unheard += 1

    def close(self) -> None:
        self._desk.close(self._number)

    def _held(self, now_ns: int, pause_ns: int) -> bool:
        """Whether a pause has become an end: in what the peer sent and was played it lasts so long (stalls apart), and
        nothing that might end it is still to be judged."""
        played_ns = min(now_ns - JUDGED_NS, self._end_ns)
        return self._desk.behind_ns() <= JUDGED_NS and played_ns >= max(pause_ns, self._resumed_ns) + HOLD_NS

    def _packet(self, event: AudioReceived) -> None:
        start_ns = event.t_ns if self._dry else max(self._end_ns, event.t_ns)
        if self._open and start_ns > self._end_ns:
            pause_ns = min(start_ns - self._end_ns, RUN_DRY_NS)
            samples = pause_ns * event.rate_hz // NS_PER_S
            self._desk.send(Sound(self._number, self._epoch, event.rate_hz, samples, None, self._part))
            self._resumed_ns = start_ns
        self._dry, self._open = False, True
        self._part = self._turns and bool(event.response)
        self._end_ns = start_ns + samples_to_ns(event.samples, event.rate_hz)
        sound = Sound(self._number, self._epoch, event.rate_hz, event.samples, start_ns, self._part, event.pcm)
        self._desk.send(sound)

    def _flush(self, t_ns: int) -> None:
        """What would be heard from `t_ns` on is dropped. Sound that was heard before and not judged yet is not missed:
        the process is ahead of playout, or behind by less than speech has to last."""
        if self._dry or self._end_ns <= t_ns:
            return
        self._epoch += 1
        self._end_ns, self._dry, self._open = t_ns, True, False
        self._part, self._pause_ns, self._speaking = False, None, False
        self._director.agent_flushed(t_ns)
        self._desk.send(Flush(self._number, self._epoch))

    def _done(self, t_ns: int) -> None:
        if self._turns:
            self._conclude(final=True)
        elif not self._says_stopped:
            self._announce(t_ns, "response_done")

    def _announce(self, t_ns: int, rule: EndRule) -> None:
        """A continuous peer says that it has ended: its sound may still be on its way, and flows on in any case."""
        self._announced_ns, self._announced = t_ns, rule
        if not self._speaking:
            self._director.agent_stopped(t_ns, final=rule)

    def _started(self, message: Started) -> None:
        """After a pause in a response the speech goes on that was told before."""
        if not message.again:
            self._goes_on = self._pause_ns is not None
        self.spoke, self._speaking, self._pause_ns = True, True, None
        if not self._goes_on:
            self._director.agent_started(message.t_ns)

    def _stopped(self, message: Stopped) -> None:
        self._speaking = False
        if message.part:
            self._pause_ns = message.t_ns
            return
        told = self._announced_ns is not None and message.t_ns <= self._announced_ns + ANNOUNCED_NS
        self._announced_ns = None
        self._director.agent_stopped(message.t_ns, final=self._announced if told else "")

    def _conclude(self, *, final: bool) -> None:
        """Nothing follows what was sent, for now."""
        self._open = self._part = False
        self._desk.send(Conclude(self._number, self._epoch, self._end_ns, final))

    def _concluded(self, message: Concluded) -> None:
        stopped_ns = self._pause_ns if message.t_ns is None else message.t_ns
        if message.final or stopped_ns is not None:
            end_ns = self._end_ns if stopped_ns is None else stopped_ns
            self._director.agent_stopped(end_ns, final="response_done" if message.final else "")
        self._pause_ns, self._speaking = None, False
