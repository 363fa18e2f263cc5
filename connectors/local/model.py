"""What you write to have a speech-to-speech model measured: subclass `LocalModel`, then `--peer local:module:Class`.

The model lives in a process of its own; the worker calls it from one thread only and stamps everything that it
yields, on the harness's clock, at the moment it is yielded. A *step* is the time between two yields (or a whole
`push_audio`): keep steps short, as an interruption is noticed between steps. `README.md` here has an example.

Nothing in this module is slow to import: import torch and the like in your own module, load weights in `load`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from harness.core.audio import Float32, Int16
from harness.core.errors import ConfigError
from harness.core.profile import Pacing, TurnControl

RATES_HZ = (8_000, 192_000)

# --- what the model declares and is told --------------------------------------------------------------------------


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """What the harness must know before the first sample; see `harness.core.profile.Profile` for the terms.

    input_rate_hz, output_rate_hz: mono, int16. pacing: `burst` (as fast as it computes), `paced` (in real time),
    `input_clocked` (one output step per input unit). turns: the turn modes it has, the default first. unit_samples:
    `push_audio` gets blocks of exactly this many input samples (0: as they come). unit_delay: units of
    input before the first of output. continuous: it has no turns;
    text and audio come from `push_audio` and `end_turn` is never called. text: its order against the audio.
    sessions: held at once; a model that declares more than one has `seat` and `batch`.
    step_limit_s: a step that lasts longer is a hang. load_limit_s: the same for `load`.
    """

    input_rate_hz: int = 24_000
    output_rate_hz: int = 24_000
    pacing: Pacing = "burst"
    turns: tuple[TurnControl, ...] = ("vad", "manual")
    unit_samples: int = 0
    unit_delay: int = 0
    continuous: bool = False
    text: Literal["none", "before_audio", "with_audio", "text_after_audio"] = "before_audio"
    user_transcript: bool = False
    sessions: int = 1
    step_limit_s: float = 10.0
    load_limit_s: float = 600.0

    def __post_init__(self) -> None:
        for name in ("input_rate_hz", "output_rate_hz"):
            rate_hz = getattr(self, name)
            if not isinstance(rate_hz, int) or not RATES_HZ[0] <= rate_hz <= RATES_HZ[1]:
                raise ConfigError(f"the model declares {name}={rate_hz!r}, which is no sample rate")
        for name in ("unit_samples", "unit_delay"):
            if getattr(self, name) < 0:
                raise ConfigError(f"the model declares {name}={getattr(self, name)}, it cannot be negative")
        for name in ("step_limit_s", "load_limit_s"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"the model declares {name}={getattr(self, name)}, it must be above 0")
        if self.sessions < 1:
            raise ConfigError(f"the model declares sessions={self.sessions}, it must hold one at least")
        if not self.turns and not self.continuous:
            raise ConfigError("the model declares no turn mode and is not continuous")


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for in one session. silence_ms: how much silence ends a turn in `vad` mode (None: yours)."""

    turn: TurnControl
    instructions: str | None = None
    voice: str | None = None
    language: str | None = None
    silence_ms: int | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


# --- what the model yields ----------------------------------------------------------------------------------------


class Text(msgspec.Struct, frozen=True):
    """One token, or piece, of the answer's text. produced_ns: when it was known, by `SystemClock`, if another thread of
    yours knew it before you yield it (0: now)."""

    text: str
    produced_ns: int = 0


class Audio(msgspec.Struct, frozen=True):
    """A packet of the answer: mono, shape (n,), int16, or float32 in [-1, 1), at the declared output rate, on the
    host (not on a device): it counts as produced when it is yielded, or at `produced_ns`, as with `Text`."""

    samples: Int16 | Float32 | npt.NDArray[np.float64]
    produced_ns: int = 0


class UserSpeechStarted(msgspec.Struct, frozen=True):
    """The user began to speak (`vad` mode). An answer under way is interrupted: don't yield it for a backchannel.
    audio_ms: where in the session's audio, if known."""

    audio_ms: int | None = None


class UserSpeechStopped(msgspec.Struct, frozen=True):
    """The user's turn is over (`vad` mode): the worker calls `end_turn` next."""

    audio_ms: int | None = None


class UserTranscript(msgspec.Struct, frozen=True):
    """What the model understood of the user's speech; never the answer."""

    text: str
    final: bool = True


class Mark(msgspec.Struct, frozen=True):
    """A stage of the model's own was finished (`asr`, `first_clause`); kept in the session with its instant."""

    name: str


class Pause(msgspec.Struct, frozen=True):
    """Nothing before `until_ns` of `SystemClock`: audio goes on being heard meanwhile, where a sleep would block it."""

    until_ns: int


class Done(msgspec.Struct, frozen=True):
    """The answer is over; the end of `end_turn`'s iterator says the same. usage: counts of your own."""

    usage: dict[str, int] | None = None


Output = Text | Audio | UserSpeechStarted | UserSpeechStopped | UserTranscript | Mark | Pause | Done


# --- the model ----------------------------------------------------------------------------------------------------


class LocalModel(ABC):
    """A speech-to-speech model. Its `__init__` takes the `--set` settings (and `--model` as `model`) as keyword
    arguments, converted to their annotated types; unknown ones are refused. It must be quick and load nothing.

    Any exception ends the session and the process, and is shown; the next session gets a fresh process.
    """

    @property
    def declaration(self) -> Declaration:
        """May depend on the settings, not on what `load` finds."""
        return Declaration()

    @property
    def facts(self) -> dict[str, Any]:
        """For the session header: device, dtype, revision, whether weights are random; see
        `connectors.local.facts.model_facts`. Read after `warm_up` and after each session."""
        return {}

    def load(self) -> None:  # noqa: B027  optional
        """Bring the weights in. Called once in a process. Raises PrerequisiteError for what is missing."""

    def warm_up(self) -> None:  # noqa: B027  optional
        """Run once, so that no session pays for compilation, kernels and caches. Called once after `load`."""

    def start(self, session: Session) -> None:  # noqa: B027  optional
        """A new session: forget the last one."""

    @abstractmethod
    def push_audio(self, pcm: Int16) -> Iterable[Output] | None:
        """Hear user audio, shape (n,), at the input rate. One step: return or yield what there is, don't answer here
        unless the model is continuous. Called during an answer too."""

    def end_turn(self) -> Iterator[Output] | None:
        """Answer what was heard since the last turn: a generator, one yield a step. Audio that waits is pushed before
        its first step. When the answer is interrupted the generator is closed: `GeneratorExit` rises at the yield."""
        return iter(())

    def seat(self, number: int) -> LocalModel:
        """For `sessions` above 1: what holds the sessions of seat `number` (0 and up) with these weights. Asked for
        once each, after `warm_up`; only `start`, `push_audio`, `end_turn` and `interrupt` of it are used.
        Its `end_turn` may give None: then the answer comes from `batch`, which ends it with `Done`."""
        raise NotImplementedError(f"{type(self).__name__} declares several sessions and has no seat()")

    def batch(self) -> Iterable[tuple[int, Output]] | None:
        """For `sessions` above 1: one step for all seats that have something to compute, as (seat, output). Called
        after orders (audio, an ended turn) were carried out and again as long as it gives anything."""
        return None

    def interrupt(self) -> None:  # noqa: B027  optional
        """The answer was cut off: drop what was prepared. Called after the generator was closed."""
